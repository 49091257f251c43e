#!/usr/bin/env python3
"""docs/cli.md tells the truth: each tool has the options that it lists and no others, and ends with the exit statuses that it promises."""
import argparse
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import product

CASE = HERE.parent / 'conformance/cases/matmul_vector_times_batch'
EVERYWHERE = {'--help', '--version', '-h'}


def documented():
    """{tool: its options} of docs/cli.md."""
    tools = {}
    for section in re.split(r'^## ', (product.ROOT / 'docs/cli.md').read_text(), flags=re.MULTILINE)[1:]:
        rows = [row.split('|')[1] for row in section.splitlines() if row.startswith('| `-')]
        tools[section.split(':')[0]] = {option for row in rows for option in re.findall(r'`(-O|--?[a-z][\w-]*)', row)}
    return tools


def offered(tool):
    """The options of a tool's help text, where each begins a line after two spaces."""
    text = product.run([tool, '--help']).message
    heads = re.findall(r'^  (-[^\s{]*)', text, flags=re.MULTILINE)  # without the value of a bare option: --check{text}
    return {option for head in heads for option in head.split(',')} - EVERYWHERE


def statuses(tools, work):
    """(what, command, the status it must end with)"""
    artifact, damaged, text = work / 'good.firn', work / 'damaged.firn', work / 'text.onnx'
    firnc, run, bench, inspect, opt = (tools.bin / name for name in ('firnc', 'firn-run', 'firn-bench', 'firn-inspect', 'firn-opt'))
    model, data, wrong = CASE / 'model.onnx', CASE / 'test_data_set_0', work / 'wrong'
    wrong.mkdir(exist_ok=True)
    text.write_text('this is no model')
    yield 'a model compiles', [firnc, model, '-o', artifact, '--proof'], 0
    damaged.write_bytes(artifact.read_bytes()[:-1])
    tensor = product.load_tensor(data / 'output_0.pb')
    tensor.raw_data = bytes(len(tensor.raw_data))
    (wrong / 'output_0.pb').write_bytes(tensor.SerializeToString())
    for tool in (firnc, run, bench, inspect, opt):
        yield 'help', [tool, '--help'], 0
        yield 'version', [tool, '--version'], 0
        yield 'an unknown option', [tool, model, '--no-such-option'], 2
        yield 'no file', [tool], 2
        yield 'a missing file', [tool, work / 'missing.onnx', *(['-o', work / 'out.onnx'] if tool in (firnc, opt) else [])], 3
    yield 'a file that is no model', [firnc, text, '-o', work / 'x.firn'], 1
    yield 'an output that cannot be written', [firnc, model, '-o', work / 'no/such/folder/x.firn'], 3
    yield 'a malformed dimension', [firnc, model, '-o', work / 'x.firn', '--dim', 'batch'], 2
    yield 'an unknown level', [firnc, model, '-o', work / 'x.firn', '-O9'], 2
    yield 'an unknown target', [firnc, model, '-o', work / 'x.firn', '--target', 'vax'], 2
    yield 'a run', [run, artifact, '--inputs', data], 0
    yield 'right outputs', [run, artifact, '--inputs', data, '--compare', data], 0
    yield 'other outputs', [run, artifact, '--inputs', data, '--compare', wrong], 4
    yield 'a proof that holds', [run, artifact, '--verify'], 0
    yield 'a damaged file', [run, damaged, '--inputs', data], 1
    yield 'missing inputs', [run, artifact], 1
    yield 'an optimised model', [opt, model, '-o', work / 'optimised.onnx'], 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/cli')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    args.work.mkdir(parents=True, exist_ok=True)
    problems, checks = [], 0
    listed = documented()
    for name in ('firnc', 'firn-opt', 'firn-run', 'firn-inspect', 'firn-bench'):
        checks += 1
        there = offered(tools.bin / name) if (tools.bin / name).exists() else set()
        for option in sorted(there - listed.get(name, set())):
            problems.append(f'{name} {option}: not in docs/cli.md')
        for option in sorted(listed.get(name, set()) - there):
            problems.append(f'{name} {option}: in docs/cli.md, but not in --help')
    for what, command, expected in statuses(tools, args.work):
        checks += 1
        result = product.run(command)
        if result.status != expected:
            problems.append(f'{pathlib.Path(command[0]).name}: {what}: {result.describe()}, expected {expected}: {result.message.strip()[-200:]}')
        elif expected and not result.message.strip():
            problems.append(f'{pathlib.Path(command[0]).name}: {what}: exit status {expected} without a message')
    print('\n'.join(f'FAILED {problem}' for problem in problems))
    print(f'{checks - len(problems)} passed, {len(problems)} failed')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
