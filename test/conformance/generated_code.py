#!/usr/bin/env python3
"""Lists the operators that still run on reference kernels: compiles ONNX's node tests (and other models) and counts.

    generated_code.py [--build DIR] [--only TEXT] [--models FILE…] [--why]

One line per operator and element type: how many node tests have a step on its reference kernel, of how many that compile,
and with --why what the emitter said. Models of several operators count for the operators of their steps. A list for people
and no test: it fails only where a model cannot be compiled at all.
"""
import argparse
import collections
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx
from onnx import TensorProto

import product
from node_tests import lay_out


def check(tools, model):
    """What `firnc --check` says about a model as JSON, or None where it is refused."""
    result = product.run([tools.bin / 'firnc', model, '--check', '--diagnostics=json'], 300)
    return json.loads(result.message) if result.status == product.DONE else None


def operator_of(step):
    """'NAME (ai.onnx::Pad)' is 'Pad', other domains in full."""
    return re.search(r'\(([^()]*)\)$', step).group(1).removeprefix('ai.onnx::')


def element_type(path):
    """Of the first input, else of the first output."""
    graph = onnx.load(path, load_external_data=False).graph
    for value in [*graph.input, *graph.output]:
        if value.type.HasField('tensor_type'):
            return TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    return 'other'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/node')
    parser.add_argument('--only', default='', metavar='TEXT', help='node tests with TEXT in their name')
    parser.add_argument('--models', nargs='+', type=pathlib.Path, help='these files instead of the node tests')
    parser.add_argument('--why', action='store_true', help='what the emitters said, by operator')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    models = args.models or [args.work / name / 'model.onnx' for name in lay_out(args.work) if args.only in name]

    tests, reasons, whole, refused = collections.Counter(), collections.defaultdict(collections.Counter), 0, 0
    for model, report in zip(models, product.parallel(lambda path: check(tools, path), models)):
        if report is None:
            refused += 1
            continue
        steps = report['reference_steps']
        whole += not steps
        if args.models and steps:
            print(f'{model}: {report["kernels"]} kernels; reference: {", ".join(steps)}')
        for key in {(operator_of(step), element_type(model)) for step in steps}:
            tests[key] += 1
            for entry in report.get('without_generated_code', []):
                reasons[key[0]][entry['why']] += 1
    for (operator, element), count in sorted(tests.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f'{count:5}  {operator:28} {element}')
        if args.why:
            for why, times in reasons.pop(operator, {}).items():
                print(f'       {times:4} {why}')
    print(f'{whole} of {len(models)} models on generated code alone, {refused} refused')
    return 0 if refused < len(models) else 1


if __name__ == '__main__':
    sys.exit(main())
