#!/usr/bin/env python3
"""Compares Firn with ONNX Runtime on an ensemble of trees: 500 of 8 levels, at batches of 1, 100 and 1000, in turns in one process with
equal threads. Prints medians and their ratio; run it as tools/dev/test-venv test/bench/trees.py."""
import argparse
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import firn_api
import product


def ensemble(path, trees, levels, features, rows, classes):
    """Full trees with random tests; one target, or a vote for each class at each leaf."""
    random = np.random.default_rng(1)
    inner, total = 2 ** levels - 1, 2 ** (levels + 1) - 1
    numbers = np.arange(total)
    leaf = numbers >= inner

    def tiled(values):
        return np.tile(values, trees).tolist()
    nodes = dict(nodes_treeids=np.repeat(np.arange(trees), total).tolist(), nodes_nodeids=tiled(numbers),
                 nodes_featureids=random.integers(0, features, trees * total).tolist(), nodes_modes=tiled(np.where(leaf, 'LEAF', 'BRANCH_LEQ')),
                 nodes_truenodeids=tiled(np.where(leaf, 0, 2 * numbers + 1)), nodes_falsenodeids=tiled(np.where(leaf, 0, 2 * numbers + 2)),
                 nodes_values=random.normal(size=trees * total).astype(np.float32).tolist())
    leaves, votes = numbers[leaf], max(1, classes)
    ids = tiled(np.repeat(leaves, votes)), np.repeat(np.arange(trees), len(leaves) * votes).tolist()
    weights = random.uniform(size=trees * len(leaves) * votes).astype(np.float32).tolist()
    targets = tiled(np.tile(np.arange(votes), len(leaves)))
    if classes:
        node = helper.make_node('TreeEnsembleClassifier', ['x'], ['label', 'y'], domain='ai.onnx.ml', class_nodeids=ids[0], class_treeids=ids[1],
                                class_ids=targets, class_weights=weights, classlabels_int64s=list(range(classes)), **nodes)
    else:
        node = helper.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain='ai.onnx.ml', n_targets=1, target_nodeids=ids[0], target_treeids=ids[1],
                                target_ids=targets, target_weights=weights, **nodes)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], 'trees', [value('x', onnx.TensorProto.FLOAT, ['n', features])], [value('y', onnx.TensorProto.FLOAT, ['n', votes])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('ai.onnx.ml', 3)], ir_version=8), path)
    return random.normal(size=(rows, features)).astype(np.float32)


def turns(runs, seconds):
    """Median seconds of each function, run in turns."""
    times = [[] for _ in runs]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for which, run in enumerate(runs):
            begin, mine = time.perf_counter(), []
            run()
            while not mine or time.perf_counter() - begin < .02:
                start = time.perf_counter()
                run()
                mine.append(time.perf_counter() - start)
            times[which] += mine
            time.sleep(.005)
    return [statistics.median(t) for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=2.)
    parser.add_argument('--trees', type=int, default=500)
    parser.add_argument('--levels', type=int, default=8)
    parser.add_argument('--features', type=int, default=30)
    parser.add_argument('--classes', type=int, default=0, help='votes for classes at each leaf (default: 0, a regressor)')
    args = parser.parse_args()
    tools, work = product.Tools(args.build), product.ROOT / 'build/bench'
    work.mkdir(parents=True, exist_ok=True)
    x = ensemble(work / 'trees.onnx', args.trees, args.levels, args.features, 1000, args.classes)
    result = tools.compile(work / 'trees.onnx', work / 'trees.firn')
    if result.status != product.DONE:
        raise SystemExit(result.message)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    peer = onnxruntime.InferenceSession(str(work / 'trees.onnx'), options, providers=['CPUExecutionProvider'])
    model = firn_api.Model(firn_api.Library(args.build), work / 'trees.firn')
    for batch in (1, 100, 1000):
        session = firn_api.Session(model, args.threads)
        session.bind([x[:batch]])
        session.run()
        binding = peer.io_binding()
        binding.bind_cpu_input('x', x[:batch])
        for output in peer.get_outputs():
            binding.bind_output(output.name)
        want = peer.run(['y'], {'x': x[:batch]})[0]
        error = np.abs(list(session.results())[-1] - want).max() / np.abs(want).max()
        mine, theirs = turns([session.run, lambda: peer.run_with_iobinding(binding)], args.seconds)
        print(f'batch {batch}: firn {mine * 1e6:.1f} us, onnxruntime {theirs * 1e6:.1f} us, {theirs / mine:.2f} times as fast, error {error:.1e}')
        session.close()


if __name__ == '__main__':
    main()
