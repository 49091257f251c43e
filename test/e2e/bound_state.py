#!/usr/bin/env python3
"""Caches bound from output to input (firn_session_bind_state) compute what one run over the whole sequence computes.

The step model reads one token and the keys and values of those before; 200 steps with bound state are compared with one run of
ONNX Runtime over all tokens at once, on the same graph with a causal mask. A cache of fixed size, written in place, is the second case.
"""
import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import firn_api
import product

STEPS = 200


def whole_sequence(model):
    """The step graph over a whole sequence: tokens of any number, attention masked to earlier ones."""
    graph = model.graph
    for value in graph.input:
        if value.name in ('input_ids', 'position_ids'):
            value.type.tensor_type.shape.dim[1].ClearField('dim_value')
            value.type.tensor_type.shape.dim[1].dim_param = 'sequence'
    for value in graph.output:
        value.type.tensor_type.ClearField('shape')
    del graph.value_info[:]
    graph.input.append(helper.make_tensor_value_info('causal', TensorProto.FLOAT, ['sequence', 'sequence']))
    nodes = []
    for node in graph.node:
        if node.op_type == 'Softmax':
            masked = node.input[0] + '_masked'
            nodes.append(helper.make_node('Add', [node.input[0], 'causal'], [masked]))
            node.input[0] = masked
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def reference(path, tokens, caches):
    count = len(tokens)
    model = whole_sequence(onnx.load(path))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    feeds = {'input_ids': tokens[None], 'position_ids': np.arange(count, dtype=np.int64)[None],
             'causal': np.triu(np.full((count, count), -1e9, np.float32), 1), **caches}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))


def growing(path, artifact, library, threads):
    """Problems of 200 steps on the step model, whose caches grow by one row each."""
    model = onnx.load(path, load_external_data=False)
    names = [value.name for value in model.graph.input]
    pairs = [(name.replace('past', 'present'), name) for name in names if name.startswith('past')]
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    caches = {name: np.zeros((1, shapes[name][1], 0, shapes[name][3]), np.float32) for _, name in pairs}
    vocabulary = 1000
    tokens = np.random.default_rng(7).integers(0, vocabulary, STEPS).astype(np.int64)
    expected = reference(path, tokens, caches)
    compiled = firn_api.Model(library, artifact)
    session = firn_api.Session(compiled, threads)
    for output, name in pairs:
        session.bind_state(output, name)
    logits, held = [], []
    for step, token in enumerate(tokens):
        values = {'input_ids': np.array([[token]]), 'position_ids': np.array([[step]], np.int64), **caches}
        session.bind([values[name] for name in names])
        if step:
            for index, name in enumerate(names):
                if name.startswith('past'):
                    session.inputs[index] = firn_api.Tensor()
        session.run()
        outputs = list(session.results())
        logits.append(outputs[0][0, 0])
        held.append(session.memory())
    problems = []
    for what, got, want in [('logits', np.array(logits), expected['logits'][0])] + [
            (output, array, expected[output]) for (output, _), array in zip(pairs, outputs[1:])]:
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-4):
            problems.append(f'{what}: {got.shape} against {want.shape}, difference {np.abs(got - want).max() if got.shape == want.shape else ""}')
    changes = sum(a != b for a, b in zip(held, held[1:]))
    print(f'{STEPS} steps, {threads} threads: largest difference of logits {np.abs(np.array(logits) - expected["logits"][0]).max():.2g}, '
          f'memory changed in {changes} steps')
    if changes > 60:
        problems.append(f'memory was allocated in {changes} of {STEPS} steps')
    session.close()
    compiled.close()
    return problems


def fixed_model():
    """cache[8, 4] with row `at` replaced by x, and the sum of the cache."""
    nodes = [helper.make_node('ScatterND', ['cache', 'at', 'x'], ['next']), helper.make_node('ReduceSum', ['next'], ['sum'], keepdims=0)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, 'fixed_cache', [value('cache', TensorProto.FLOAT, [8, 4]), value('at', TensorProto.INT64, [1, 1]),
                                                     value('x', TensorProto.FLOAT, [1, 4])],
                              [value('sum', TensorProto.FLOAT, []), value('next', TensorProto.FLOAT, [8, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9)


def fixed(artifact, library):
    compiled = firn_api.Model(library, artifact)
    session = firn_api.Session(compiled, 1)
    session.bind_state('next', 'cache')
    cache, problems, memory = np.zeros((8, 4), np.float32), [], None
    for step in range(20):
        x = np.random.default_rng(step).random((1, 4), np.float32)
        session.bind([np.zeros((8, 4), np.float32), np.array([[step % 8]], np.int64), x])
        if step:
            session.inputs[0] = firn_api.Tensor()
        session.run()
        cache[step % 8] = x
        total, after = session.results()
        if not np.allclose(after, cache) or not np.allclose(total, cache.sum(), rtol=1e-5):
            problems.append(f'fixed cache: step {step} differs')
        if step == 2:
            memory = session.memory()
    if session.memory() != memory:
        problems.append('fixed cache: a later step allocated')
    session.close()
    compiled.close()
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, default=product.ROOT / 'build/dev')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models')
    args = parser.parse_args()
    tools, library, problems = product.Tools(args.build), firn_api.Library(args.build), []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        path = args.models / 'gpt2_step_l4/model.onnx'
        onnx.save(fixed_model(), work / 'fixed.onnx')
        for source, name in ((path, 'step'), (work / 'fixed.onnx', 'fixed')):
            result = tools.compile(source, work / f'{name}.firn', timeout=600)
            if result.status != 0:
                sys.exit(f'firnc: {result.describe()}: {result.message}')
        for threads in (1, 2):
            problems += growing(path, work / 'step.firn', library, threads)
        problems += fixed(work / 'fixed.firn', library)
        run = [tools.bin / 'firn-run', work / 'fixed.firn', *(word for name in ('cache', 'at', 'x') for word in ('--input', f'{name}=random:1'))]
        for state, status in (('next=cache', 0), ('nothing=cache', 2), ('sum=cache', 2)):
            done = product.run([*run, '--state', state, '--repeat', '3'])
            if done.status != status:
                problems.append(f'firn-run --state {state}: {done.describe()}, expected {status}: {done.message}')
    print('\n'.join(problems) or 'bound state is right')
    return bool(problems)


if __name__ == '__main__':
    sys.exit(main())
