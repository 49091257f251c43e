#!/usr/bin/env python3
"""Lists the operators that still run on reference kernels: compiles ONNX's node tests (and other models) and counts.

    generated_code.py [--build DIR] [--only TEXT] [--freeze] [--run] [--models FILE…] [--why]

One line per operator and element type: how many node tests have a step on its reference kernel, and with --why what the
emitters said. Node tests pass axes, sizes and weights as inputs, which real models hardly ever do: --freeze makes constants
of all inputs but the first, and --run checks the values that the compiled models give. Exit status 1 if a value is wrong.
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx
from onnx import TensorProto

import product
from node_tests import Case, lay_out


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


def freeze(source, target):
    """The node test in `source` with all tensors but the first input as constants. False where nothing can be frozen."""
    model = onnx.load(source / 'model.onnx')
    inputs = list(model.graph.input)
    kept = 0
    if len(inputs) < 2 or any(not value.type.HasField('tensor_type') for value in inputs):
        return False
    shutil.rmtree(target, ignore_errors=True)
    data = target / 'test_data_set_0'
    data.mkdir(parents=True)
    for path in (source / 'test_data_set_0').glob('output_*.pb'):
        shutil.copy(path, data)
    del model.graph.input[:]
    for i, value in enumerate(inputs):
        path = source / 'test_data_set_0' / f'input_{i}.pb'
        if i == 0:
            model.graph.input.append(value)
            shutil.copy(path, data / f'input_{kept}.pb')
            kept += 1
            continue
        tensor = product.load_tensor(path)
        tensor.name = value.name
        model.graph.initializer.append(tensor)
    (target / 'model.onnx').write_bytes(model.SerializeToString())
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/node')
    parser.add_argument('--only', default='', metavar='TEXT', help='node tests with TEXT in their name, or that match it as a pattern')
    parser.add_argument('--freeze', action='store_true', help='all inputs but the first are constants; tests of one input are left out')
    parser.add_argument('--run', action='store_true', help='run the compiled models too and compare')
    parser.add_argument('--models', nargs='+', type=pathlib.Path, help='these files instead of the node tests')
    parser.add_argument('--why', action='store_true', help='what the emitters said, by operator')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    folder = args.work
    names = [] if args.models else [name for name in lay_out(args.work) if re.search(args.only, name)]
    if args.freeze:
        folder = args.work.parent / 'frozen'
        names = [name for name in names if freeze(args.work / name, folder / name)]
    models = args.models or [folder / name / 'model.onnx' for name in names]

    tests, reasons, whole, refused = collections.Counter(), collections.defaultdict(collections.Counter), 0, 0
    examples = {}
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
            examples.setdefault(key, model.parent.name)
            for entry in report.get('without_generated_code', []):
                reasons[key[0]][entry['why']] += 1
    for (operator, element), count in sorted(tests.items(), key=lambda entry: (-entry[1], entry[0])):
        print(f'{count:5}  {operator:28} {element:10} {examples[operator, element]}')
        if args.why:
            for why, times in reasons.pop(operator, {}).items():
                print(f'       {times:4} {why}')
    wrong = 0
    if args.run:
        cases = [Case(folder, name) for name in names]
        for case in product.parallel(lambda case: case.judge(tools, []), cases):
            if case.end not in ('passed', 'refused'):
                wrong += 1
                print(f'{case.end.upper()} {case.name}: {case.why}')
    print(f'{whole} of {len(models)} models on generated code alone, {refused} refused' + (f', {wrong} wrong' if args.run else ''))
    return 1 if wrong or refused == len(models) else 0


if __name__ == '__main__':
    sys.exit(main())
