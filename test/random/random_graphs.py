#!/usr/bin/env python3
"""Differential test: random graphs, compiled and run on one and two threads, against Firn's reference evaluator.

random-judge does many graphs in one process. ONNX Runtime without optimisations judges the reference evaluator on every tenth graph. A
failure prints its seed, is cut down to the first nodes that still fail, and is kept in the work folder. What earlier hunts found and
was mended lies in test/random/found and is judged first.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import control
import graphs
import product
import steps

ALL = steps.STEPS + control.STEPS
AT_ONCE = 10  # graphs of one process


def reference(model, feeds):
    """The outputs by ONNX Runtime, or None where it cannot run the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
        return session.run(None, dict(zip((value.name for value in model.graph.input), feeds)))
    except Exception:  # pylint: disable=broad-except  # an operator or type that it lacks
        return None


def make(seed):
    return graphs.RandomGraph(seed, dynamic=seed % 3 != 0).grow(ALL)


def write_case(folder, made, with_reference):
    """Lays the case out like ONNX's test data, with a tolerance for each output."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model, feeds, are_loose = made
    onnx.save(model, folder / 'model.onnx')
    for i, (value, array) in enumerate(zip(model.graph.input, feeds)):
        (folder / f'input_{i}.pb').write_bytes(numpy_helper.from_array(np.asarray(array), value.name).SerializeToString())
    (folder / 'tolerance.txt').write_text('\n'.join('2e-2 2e-2' if loose else '1e-3 5e-4' for loose in are_loose) + '\n')
    outputs = reference(model, feeds) if with_reference else None
    for i, (value, array) in enumerate(zip(model.graph.output, outputs or [])):
        if isinstance(array, np.ndarray):
            (folder / f'output_{i}.pb').write_bytes(numpy_helper.from_array(array, value.name).SerializeToString())
    return folder


def judge(binary, folders, level):
    """{folder: why it fails, or ''}. What a crash leaves is judged by new processes."""
    verdicts, left = {}, list(folders)
    while left:
        try:
            done = subprocess.run([binary, '--level', level, *left], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=60 + 20 * len(left), text=True, errors='replace')
            output, status, errors = done.stdout, done.returncode, done.stderr
        except subprocess.TimeoutExpired as late:
            output, status, errors = (late.stdout or b'').decode(errors='replace'), None, ''
        for line in output.splitlines():
            kind, _, rest = line.partition(' ')
            name, _, why = rest.partition(': ')
            if kind in ('ok', 'FAILED') and pathlib.Path(name) in left:
                said = [text for text in errors.splitlines() if name in text] if 'firnc ends' in why else []
                verdicts[pathlib.Path(name)] = '' if kind == 'ok' else ' '.join([why, *said])
                left.remove(pathlib.Path(name))
        if left and (status not in (0, 1) or not output):
            verdicts[left[0]] = f'the process ends with {status}: {errors[-300:].strip()}' if status is not None else 'takes too long'
            left.pop(0)
    return verdicts


def reduce(binary, seed, why_first, args):
    """The shortest prefix of the graph that fails, kept in the work folder; its description, or why the whole failed, once."""
    graph, folder = make(seed), args.work / f'seed_{seed}'
    for count in range(1, len(graph.nodes) + 1):
        made = graph.model(count if count < len(graph.nodes) else None)
        if made is None:
            continue
        write_case(folder, made, True)
        if why := judge(binary, [folder], args.level)[folder]:
            return f'{count} of {len(graph.nodes)} nodes, {graph.nodes[count - 1].name}: {why}'
    return f'passes alone, failed with: {why_first}'


def judge_found(binary, args):
    """The reduced cases of the past, each several times, as some failed now and then. Yields (name, why)."""
    for case in sorted((HERE / 'found').glob('*/model.onnx')):
        folder = args.work / case.parent.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(case.parent, folder)
        for _ in range(5):
            if why := judge(binary, [folder], args.level)[folder]:
                yield case.parent.name, why
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/random')
    parser.add_argument('--seed', type=int, default=1, help='the first seed')
    parser.add_argument('--count', type=int, default=500, help='how many graphs')
    parser.add_argument('--level', default='3', help='optimisation level (default: 3)')
    parser.add_argument('--jobs', type=int, default=0, help='processes at a time (default: one a core)')
    parser.add_argument('--no-reduce', action='store_true', help='do not cut failures down')
    args = parser.parse_args()
    binary = pathlib.Path(args.build).resolve() / 'bin/random-judge'
    start, ran, failures = time.monotonic(), 0, []

    def batch(first):
        folders = {}
        for seed in range(first, min(first + AT_ONCE, args.seed + args.count)):
            if made := make(seed).model():
                folders[write_case(args.work / f'seed_{seed}', made, seed % 10 == 0)] = seed
        verdicts = judge(binary, list(folders), args.level)
        for folder in folders:
            if not verdicts[folder]:
                shutil.rmtree(folder)
        return {folders[folder]: why for folder, why in verdicts.items()}

    for name, why in judge_found(binary, args):
        failures.append(name)
        ran += 1
        print(f'FAILED {name}: {why}', flush=True)
    firsts = range(args.seed, args.seed + args.count, AT_ONCE)
    for verdicts in product.parallel(batch, firsts, *([args.jobs] if args.jobs else [])):
        ran += len(verdicts)
        for seed, why in verdicts.items():
            if why:
                failures.append(seed)
                print(f'FAILED seed {seed}: {why if args.no_reduce else reduce(binary, seed, why, args)}\n  kept in {args.work / f"seed_{seed}"}', flush=True)
    print(f'{ran} graphs in {time.monotonic() - start:.0f} s')
    print(f'{ran - len(failures)} passed, {len(failures)} failed')
    return 1 if failures or not ran else 0


if __name__ == '__main__':
    sys.exit(main())
