#!/usr/bin/env python3
"""Runs ONNX's own node tests through firnc and firn-run, as files, and compares values, types and shapes.

A case passes when its outputs are right. It may be refused (exit status 1) with a message that names an operator of the model; every
other end is a fault, a crash above all. expected_failures.txt lists the cases that do not pass, with reasons; a listed case that passes
fails the run too.
"""
import argparse
import collections
import json
import pathlib
import shutil
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import product
from expectations import Expectations

HEADER = '''Node tests of ONNX that do not pass, `name: reason`. test/conformance/node_tests.py checks both ways;
with --update it adds the new ones and removes those that pass.'''


def write_value(path, value, type_proto, name):
    """One input or output in the form its type has in ONNX's test data."""
    if type_proto.HasField('optional_type'):
        proto = numpy_helper.from_optional(value, name)
    elif type_proto.HasField('sequence_type'):
        proto = numpy_helper.from_list(value, name)
    elif isinstance(value, onnx.TensorProto):
        proto = onnx.TensorProto()
        proto.CopyFrom(value)
        proto.name = name
    else:
        proto = numpy_helper.from_array(np.asarray(value), name)
    path.write_bytes(proto.SerializeToString())


def lay_out(folder):
    """Writes all cases as FOLDER/NAME/{model.onnx,test_data_set_0}, once for each version of onnx. Returns their names."""
    stamp = folder / f'onnx-{onnx.__version__}'
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # the generators overflow on purpose
            cases = list(load_model_tests(kind='node'))
        for case in cases:
            data = folder / case.name / 'test_data_set_0'
            data.mkdir(parents=True)
            (folder / case.name / 'model.onnx').write_bytes(case.model.SerializeToString())
            inputs, outputs = case.data_sets[0]
            for kind, values, infos in (('input', inputs, case.model.graph.input), ('output', outputs, case.model.graph.output)):
                for i, (value, info) in enumerate(zip(values, infos)):
                    write_value(data / f'{kind}_{i}.pb', value, info.type, info.name)
        stamp.write_text('\n'.join(sorted(case.name for case in cases)))
    return stamp.read_text().split('\n')


def first_error(message):
    """The first line of a message that says what is wrong, short enough for a list."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    line = next((line for line in lines if 'error' in line), lines[0] if lines else '(no message)')
    return line.split('model.onnx: ', 1)[-1][:200]


class Case:
    """One node test and how it ended: 'passed', 'refused', 'wrong', 'silent' (refused without naming an operator) or 'crash'."""

    def __init__(self, folder, name, rtol=1e-3, atol=1e-7):
        self.folder, self.name, self.rtol, self.atol = folder / name, name, rtol, atol
        self.end, self.why, self.seconds = '', '', 0.
        self.code = ''  # 'generated', 'reference', 'both', 'neither' (views and what folds away): what ran it
        names = product.model_operators(self.folder / 'model.onnx')
        # What a refusal must name: an operator, or an input where its type is the reason.
        graph = onnx.load(self.folder / 'model.onnx').graph
        self.names = names | {f"input '{value.name}'" for value in graph.input}
        self.output_types = [value.type for value in graph.output]
        self.operator = next(iter(names)) if len(names) == 1 else '(several)'

    def judge(self, tools, options):
        start = time.monotonic()
        self.end, self.why = self.execute(tools, options)
        self.seconds = time.monotonic() - start
        return self

    def execute(self, tools, options):
        artifact, got, data = self.folder / 'model.firn', self.folder / 'got', self.folder / 'test_data_set_0'
        shutil.rmtree(got, ignore_errors=True)
        artifact.unlink(missing_ok=True)
        got.mkdir()
        report = self.folder / 'report.json'
        result = tools.compile(self.folder / 'model.onnx', artifact, f'--report={report}', *options)
        if result.status == product.DONE:
            result = tools.run(artifact, data, got)
        if result.status == product.REJECTED:
            named = any(name in result.message for name in self.names)
            return ('refused' if named else 'silent'), first_error(result.message)
        if result.status != product.DONE:
            return 'crash', f'{result.describe()}: {first_error(result.message)}'
        try:
            why = product.compare_outputs(got, data, self.rtol, self.atol, self.output_types)
        except Exception as error:
            why = f'cannot compare: {error}'
        kinds = {step['generated'] for step in json.loads(report.read_text()).get('steps', [])}
        self.code = 'both' if len(kinds) == 2 else 'neither' if not kinds else 'generated' if True in kinds else 'reference'
        return ('wrong', why) if why else ('passed', '')


def write_facts(path, cases):
    """What docs/operators.md says of each operator: versions and element types by the schemas, the rest by the tests of it alone."""
    facts = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.deprecated:
            continue
        fact = facts.setdefault(f'{schema.domain or "ai.onnx"}::{schema.name}', {'versions': [], 'types': [], 'tests': 0, 'passed': 0, 'code': []})
        fact['versions'] = sorted({*fact['versions'], schema.since_version})
        if schema.since_version == fact['versions'][-1]:  # the types of the first input, or of what a generator gives
            formals = [*schema.inputs, *schema.outputs]
            fact['types'] = sorted(formals[0].types) if formals else []
    for case in cases:
        names = {f'{node.domain or "ai.onnx"}::{node.op_type}' for node in onnx.load(case.folder / 'model.onnx').graph.node}
        fact = facts.get(names.pop()) if len(names) == 1 else None
        if fact:
            fact['tests'] += 1
            fact['passed'] += case.end == 'passed'
            fact['code'] = sorted({*fact['code'], case.code} - {''})
    path.write_text('{\n' + ',\n'.join(f'{json.dumps(name)}: {json.dumps(fact)}' for name, fact in sorted(facts.items())) + '\n}\n')


def print_counts(cases):
    """How each operator fares; models of several nodes are one line."""
    table = collections.defaultdict(collections.Counter)
    for case in cases:
        table[case.operator][case.end] += 1
    for operator, ends in sorted(table.items()):
        faults = ', '.join(f'{count} {end}' for end, count in ends.items() if end != 'passed')
        print(f'{operator:28} {ends["passed"]:4} of {sum(ends.values()):4}' + (f'   {faults}' if faults else ''))


def judge_all(cases, tools, options, show_failures=False):
    """Runs the cases; crashes, and other failures where wanted, are printed as they come. Returns {name: why} of those that fail."""
    start = time.monotonic()
    for done, case in enumerate(product.parallel(lambda c: c.judge(tools, options), cases), 1):
        if case.end == 'crash':
            print(f'CRASH {case.name}: {case.why}', flush=True)
        elif show_failures and case.end != 'passed':
            print(f'{case.end} {case.name}: {case.why}', flush=True)
        if done % 200 == 0:
            print(f'… {done} of {len(cases)}, {time.monotonic() - start:.0f} s', flush=True)
    return {case.name: f'{case.end}: {case.why}' for case in cases if case.end != 'passed'}


def surprises_of(cases, failures, expectations, names):
    """What does not end as listed. Neither a crash nor a refusal without a reason may be listed away."""
    return [*expectations.surprises(failures, [case.name for case in cases]), *expectations.unknown(names),
            *(f'FAILED {case.name}: {case.end}: {case.why}' for case in cases
              if case.end in ('crash', 'silent') and case.name in expectations.reasons)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder (default: build/dev)')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/node', help='where the cases are laid out')
    parser.add_argument('--only', default='', metavar='TEXT', help='cases with TEXT in their name')
    parser.add_argument('--sample', type=int, metavar='N', help='about N of them, spread over the alphabet')
    parser.add_argument('--options', default='', help='options for firnc, e.g. -O0')
    parser.add_argument('--update', action='store_true', help='rewrite expected_failures.txt and operators.json')
    parser.add_argument('--failures', action='store_true', help='print every failure, listed or not')
    args = parser.parse_args()

    tools = product.Tools(args.build)
    names = lay_out(args.work)
    cases = [Case(args.work, name) for name in names if args.only in name]
    cases = cases[::max(1, len(cases) // args.sample)] if args.sample else cases
    start = time.monotonic()
    failures = judge_all(cases, tools, args.options.split(), args.failures)
    ends = collections.Counter(case.end for case in cases)
    expectations = Expectations(HERE / 'expected_failures.txt')
    if args.update:
        expectations.write(failures, {case.name for case in cases}, HEADER)
        expectations = Expectations(HERE / 'expected_failures.txt')
        if not args.only and not args.sample:
            write_facts(HERE / 'operators.json', cases)
    surprises = surprises_of(cases, failures, expectations, names)
    print_counts(cases)
    print('\n'.join(surprises))
    print(', '.join(f'{count} {end}' for end, count in ends.most_common()), f'in {time.monotonic() - start:.0f} s;',
          f'{100 * ends["passed"] / max(1, len(cases)):.1f} % pass; {len(surprises)} not as expected')
    print(f'{ends["passed"]} passed, {len(cases) - ends["passed"]} failed')
    return 1 if surprises else 0


if __name__ == '__main__':
    sys.exit(main())
