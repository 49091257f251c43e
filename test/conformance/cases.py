#!/usr/bin/env python3
"""Runs the small checked models of test/conformance/cases through firnc and firn-run, by the rules of their README."""
import argparse
import json
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx

import product
from expectations import Expectations

TIMEOUT = 20
HEADER = '''Cases of test/conformance/cases that do not end as their meta.json says, `name: reason`.
test/conformance/cases.py checks both ways; with --update it adds the new ones and removes those that pass.'''


def refusal_fault(message, meta, folder):
    """What is missing from the message of a refusal, or ''."""
    text = message.replace(str(folder), '')
    missing = [pattern for pattern in meta.get('error_mentions', []) if not re.search(pattern, text)]
    if not text.strip():
        return 'refused without a message'
    return f'the message does not match {", ".join(missing)}: {text.strip().splitlines()[0][:160]}' if missing else ''


def judge(tools, folder, work, options):
    """Why the case does not end as it should, or ''."""
    meta = json.loads((folder / 'meta.json').read_text())
    got = work / folder.name
    shutil.rmtree(got, ignore_errors=True)
    got.mkdir(parents=True)
    result = tools.compile(folder / 'model.onnx', got / 'model.firn', *options, timeout=TIMEOUT)
    if result.status == product.DONE:
        result = tools.run(got / 'model.firn', folder / 'test_data_set_0', got, timeout=TIMEOUT)
    if result.status == product.REJECTED:
        if meta['outcome'] == 'value':
            return 'refused: ' + result.message.replace(str(folder), '').strip()[:200].replace('\n', ' ')
        return refusal_fault(result.message, meta, folder)
    if result.status != product.DONE:
        return f'CRASH {result.describe()}: {result.message.strip()[-200:]}' if result.crashed or result.status is None else (
            f'{result.describe()}: {result.message.strip()[:200]}')
    if meta['outcome'] == 'error':
        return 'was not refused'
    faults = []
    types = [value.type for value in onnx.load(folder / 'model.onnx', load_external_data=False).graph.output]
    for wanted in [folder / 'test_data_set_0', *sorted(folder.glob('alternative_*'))]:
        fault = product.compare_outputs(got, wanted, meta['rtol'], meta['atol'], types)
        if not fault:
            return ''
        faults.append(fault)
    return faults[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder (default: build/dev)')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/cases', help='where outputs go')
    parser.add_argument('--only', default='', metavar='TEXT', help='cases with TEXT in their name')
    parser.add_argument('--levels', nargs='+', default=['0', '3'], help='optimisation levels (default: 0 3)')
    parser.add_argument('--update', action='store_true', help='rewrite cases_expected_failures.txt')
    args = parser.parse_args()

    tools = product.Tools(args.build)
    everything = sorted(path.parent for path in (HERE / 'cases').glob('*/meta.json'))
    jobs = [(folder, level) for folder in everything if args.only in folder.name for level in args.levels]
    failures = {}
    for (folder, level), why in zip(jobs, product.parallel(
            lambda job: judge(tools, job[0], args.work / job[1], [f'-O{job[1]}']), jobs)):
        if why and folder.name not in failures:
            failures[folder.name] = f'-O{level}: {" ".join(why.split())}'
    ran = {folder.name for folder, _ in jobs}
    path = HERE / 'cases_expected_failures.txt'
    if args.update:
        Expectations(path).write(failures, ran, HEADER)
    expectations = Expectations(path)
    surprises = list(expectations.surprises(failures, sorted(ran))) + list(expectations.unknown(f.name for f in everything))
    surprises += [f'FAILED {name}: {why}' for name, why in failures.items() if 'CRASH' in why and name in expectations.reasons]
    print('\n'.join(surprises))
    print(f'{len(ran) - len(failures)} passed, {len(failures)} failed')
    return 1 if surprises else 0


if __name__ == '__main__':
    sys.exit(main())
