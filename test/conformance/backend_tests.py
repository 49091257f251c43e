#!/usr/bin/env python3
"""Runs the other backend tests of the onnx wheel like its node tests: models of PyTorch's exporter, simple graphs, light zoo models.

The light models keep the topology of published networks and make their weights while running (ConstantOfShape); their input is the
wheel's own dummy data. backend_expected_failures.txt lists the cases that do not pass, with reasons, checked both ways.
"""
import argparse
import collections
import json
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx
import onnx.backend.test
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

import product
from expectations import Expectations
from node_tests import Case, judge_all, print_counts, surprises_of

DATA = pathlib.Path(onnx.backend.test.__file__).parent / 'data'
KINDS = ('simple', 'pytorch-operator', 'pytorch-converted')
HEADER = '''Backend tests of ONNX (simple, pytorch-operator, pytorch-converted, light) that do not pass, `name: reason`.
test/conformance/backend_tests.py checks both ways; with --update it adds the new ones and removes those that pass.'''


def lay_out_light(folder):
    """The light models as folders, with the inputs that the wheel's outputs were made from. Returns {name: relative tolerance}."""
    tolerances = {}
    for description in sorted((DATA / 'real').glob('*/data.json')):
        about = json.loads(description.read_text())
        model_name, model_file = about['model_name'], DATA / 'light' / pathlib.Path(about['url']).name
        name = f'light_{model_name}'
        tolerances[name] = about.get('rtol', 1e-3)
        data = folder / name / 'test_data_set_0'
        if data.exists():
            continue
        data.mkdir(parents=True)
        shutil.copyfile(model_file, folder / name / 'model.onnx')
        model = onnx.load(model_file)
        weights = {tensor.name for tensor in model.graph.initializer}
        for i, value in enumerate(value for value in model.graph.input if value.name not in weights):
            array = Runner.generate_dummy_data(value, seed=0, name=model_name, random=False)
            (data / f'input_{i}.pb').write_bytes(numpy_helper.from_array(array, value.name).SerializeToString())
        shutil.copyfile(model_file.with_name(f'light_{model_name}_output_0.pb'), data / 'output_0.pb')
    return tolerances


def lay_out(folder):
    """Copies every case to FOLDER/NAME, once for each version of onnx. Returns {name: relative tolerance}."""
    if not (folder / f'onnx-{onnx.__version__}').exists():
        shutil.rmtree(folder, ignore_errors=True)
        for kind in KINDS:
            for case in (path.parent for path in (DATA / kind).glob('*/model.onnx')):
                shutil.copytree(case, folder / case.name)
    tolerances = {path.parent.name: 1e-3 for path in folder.glob('test_*/model.onnx')}
    tolerances.update(lay_out_light(folder))
    (folder / f'onnx-{onnx.__version__}').touch()
    return tolerances


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder (default: build/dev)')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/backend', help='where the cases are laid out')
    parser.add_argument('--only', default='', metavar='TEXT', help='cases with TEXT in their name')
    parser.add_argument('--options', default='', help='options for firnc, e.g. -O0')
    parser.add_argument('--update', action='store_true', help='rewrite backend_expected_failures.txt')
    parser.add_argument('--failures', action='store_true', help='print every failure, listed or not')
    args = parser.parse_args()

    tools = product.Tools(args.build)
    tolerances = lay_out(args.work)
    cases = [Case(args.work, name, rtol) for name, rtol in sorted(tolerances.items()) if args.only in name]
    start = time.monotonic()
    failures = judge_all(cases, tools, args.options.split(), args.failures)
    path = HERE / 'backend_expected_failures.txt'
    if args.update:
        Expectations(path).write(failures, {case.name for case in cases}, HEADER)
    surprises = surprises_of(cases, failures, Expectations(path), tolerances)
    print_counts(cases)
    print('\n'.join(surprises))
    ends = collections.Counter(case.end for case in cases)
    print(', '.join(f'{count} {end}' for end, count in ends.most_common()), f'in {time.monotonic() - start:.0f} s;',
          f'{100 * ends["passed"] / max(1, len(cases)):.1f} % pass; {len(surprises)} not as expected')
    print(f'{ends["passed"]} passed, {len(cases) - ends["passed"]} failed')
    return 1 if surprises else 0


if __name__ == '__main__':
    sys.exit(main())
