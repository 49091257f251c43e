#!/usr/bin/env python3
"""Differential test: random graphs, compiled at several levels and run on several threads, against two references.

Firn's own reference evaluator judges through the proof (firnc --proof, firn-run --verify), ONNX Runtime without optimisations through
the outputs. A failure prints its seed, is cut down to the first nodes that still fail, and is kept in the work folder.
"""
import argparse
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import graphs
import product

RTOL, ATOL = 1e-3, 1e-4


def reference(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    return session.run(None, dict(zip((value.name for value in model.graph.input), feeds)))


def write_case(folder, model, feeds):
    """Lays the case out like ONNX's test data. Returns False where the reference cannot run it."""
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / 'test_data_set_0'
    data.mkdir(parents=True)
    onnx.save(model, folder / 'model.onnx')
    for i, (value, array) in enumerate(zip(model.graph.input, feeds)):
        (data / f'input_{i}.pb').write_bytes(numpy_helper.from_array(array, value.name).SerializeToString())
    for i, (value, array) in enumerate(zip(model.graph.output, reference(model, feeds))):
        (data / f'output_{i}.pb').write_bytes(numpy_helper.from_array(np.asarray(array), value.name).SerializeToString())


def fault(tools, folder, levels, threads):
    """Why the case fails, or ''."""
    for level in (f'-O{digit}' for digit in levels):
        artifact, got = folder / 'model.firn', folder / 'got'
        result = tools.compile(folder / 'model.onnx', artifact, level, '--proof', timeout=60)
        if result.status != product.DONE:
            return f'firnc {level}: {result.describe()}: {result.message.strip()[-300:]}'
        for count in threads:
            shutil.rmtree(got, ignore_errors=True)
            got.mkdir()
            result = tools.run(artifact, folder / 'test_data_set_0', got, '--threads', str(count), timeout=30)
            if result.status != product.DONE:
                return f'{level}, {count} threads: {result.describe()}: {result.message.strip()[-300:]}'
            if why := product.compare_outputs(got, folder / 'test_data_set_0', RTOL, ATOL):
                return f'{level}, {count} threads, against ONNX Runtime: {why}'
        result = product.run([tools.bin / 'firn-run', artifact, '--verify'], 30)
        if result.status != product.DONE:
            return f'{level}, against the reference evaluator: {result.describe()}: {result.message.strip()[-300:]}'
    return ''


def judge(tools, seed, args):
    """Tests one seed; on a failure keeps the shortest prefix of the graph that fails too."""
    graph = graphs.RandomGraph(seed, dynamic=seed % 3 == 0)
    folder = args.work / f'seed_{seed}'
    write_case(folder, *graph.model())
    why = fault(tools, folder, args.levels, args.threads)
    if not why:
        shutil.rmtree(folder)
        return ''
    for count in range(1, len(graph.nodes)):
        write_case(folder, *graph.model(count))
        if shorter := fault(tools, folder, args.levels, args.threads):
            return f'{count} of {len(graph.nodes)} nodes, {graph.nodes[count - 1].name}: {shorter}'
    write_case(folder, *graph.model())
    return why


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/random')
    parser.add_argument('--seed', type=int, default=1, help='the first seed')
    parser.add_argument('--count', type=int, default=40, help='how many graphs')
    parser.add_argument('--levels', nargs='+', default=['0', '3'], help='optimisation levels (default: 0 3)')
    parser.add_argument('--threads', nargs='+', type=int, default=[1, 3])
    args = parser.parse_args()
    tools = product.Tools(args.build)
    start, failed = time.monotonic(), 0
    seeds = range(args.seed, args.seed + args.count)
    for seed, why in zip(seeds, product.parallel(lambda s: judge(tools, s, args), seeds)):
        if why:
            failed += 1
            print(f'FAILED seed {seed}: {why}\n  kept in {args.work / f"seed_{seed}"}', flush=True)
    print(f'{args.count} graphs in {time.monotonic() - start:.0f} s')
    print(f'{args.count - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
