#!/usr/bin/env python3
"""Shapes that only a run tells: the chains that exporters write compile to integer arithmetic, and sizes that do not fit are refused.

Chains are compared with ONNX Runtime, and --report shows no kernel but those of the data. Wrong sizes end with status 1 and a message
that names the node or the inputs: never with a result.
"""
import argparse
import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import product

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def model(nodes, inputs, outputs, weights=()):
    infos = [helper.make_tensor_value_info(name, dtype, dims) for name, dtype, dims in inputs]
    results = [helper.make_tensor_value_info(name, dtype, dims) for name, dtype, dims in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights]
    graph = helper.make_graph(nodes, 'shapes', infos, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=9)


def sizes_of(name, axis, tensor='x'):
    """name: dimension `axis` of `tensor` as [1], by Shape, Gather and Unsqueeze."""
    return [node('Shape', [tensor], [f'{name}_shape']), node('Gather', [f'{name}_shape', f'at_{axis}'], [f'{name}_scalar']),
            node('Unsqueeze', [f'{name}_scalar', 'at_0_list'], [name])]


AXES = [('at_0', np.int64(0)), ('at_1', np.int64(1)), ('at_2', np.int64(2)), ('at_0_list', np.array([0])), ('one', np.array([1])), ('two', np.array([2])),
        ('four', np.array([4])), ('minus', np.array([-1])), ('end', np.array([2**63 - 1])), ('at_1_list', np.array([1])), ('none', np.zeros(0, np.float32))]
X = [('x', FLOAT, ['n', 'm', 'k'])]
CHAINS = {
    'view': ([*sizes_of('n', 0), node('Concat', ['n', 'minus'], ['to'], axis=0), node('Reshape', ['x', 'to'], ['y'])], X, [(2, 3, 4)]),
    'merged': ([*sizes_of('n', 0), *sizes_of('m', 1), *sizes_of('k', 2), node('Mul', ['n', 'm'], ['nm']), node('Concat', ['nm', 'k'], ['to'], axis=0),
                node('Reshape', ['x', 'to'], ['y'])], X, [(2, 3, 4)]),
    'heads': ([*sizes_of('n', 0), *sizes_of('m', 1), *sizes_of('k', 2), node('Div', ['k', 'four'], ['d']), node('Concat', ['n', 'm', 'four', 'd'], ['to'], axis=0),
               node('Reshape', ['x', 'to'], ['r']), node('Transpose', ['r'], ['y'], perm=[0, 2, 1, 3])], X, [(2, 3, 8)]),
    'expand': ([*sizes_of('n', 0), node('ConstantOfShape', ['three'], ['ones'], value=numpy_helper.from_array(np.array([1]))),
                node('Mul', ['ones', 'minus'], ['minuses']), node('Concat', ['n', 'minus', 'minus'], ['wanted'], axis=0), node('Equal', ['wanted', 'minuses'], ['is']),
                node('Where', ['is', 'ones', 'wanted'], ['to']), node('Slice', ['x', 'at_0_list', 'one', 'at_0_list'], ['first']),
                node('Expand', ['first', 'to'], ['y'])], X, [(2, 3, 4)]),
    'upsample': ([node('Shape', ['x'], ['s'], start=2), node('Cast', ['s'], ['f'], to=FLOAT), node('Mul', ['f', 'half'], ['h']), node('Floor', ['h'], ['fl']),
                  node('Cast', ['fl'], ['c'], to=INT64), node('Shape', ['x'], ['b'], end=2), node('Concat', ['b', 'c'], ['to'], axis=0),
                  node('Resize', ['x', 'none', 'none', 'to'], ['y'], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')],
                 [('x', FLOAT, ['n', 3, 'h', 'w'])], [(1, 3, 8, 6)]),
    'arange': ([*sizes_of('m', 1), node('Squeeze', ['m', 'at_0_list'], ['ms']), node('Range', ['at_0', 'ms', 'at_1'], ['r']), node('Cast', ['r'], ['f'], to=FLOAT),
                node('Unsqueeze', ['f', 'at_1_list'], ['u']), node('Add', ['x', 'u'], ['y'])], X, [(2, 3, 4)]),
    'chunk': ([*sizes_of('m', 1), node('Add', ['m', 'one'], ['m1']), node('Div', ['m1', 'two'], ['h']), node('Slice', ['x', 'at_0_list', 'h', 'one'], ['a']),
               node('Slice', ['x', 'h', 'end', 'one'], ['b']), node('Concat', ['b', 'a'], ['y'], axis=1)], X, [(2, 5, 4)]),
    'pad': ([*sizes_of('m', 1), node('Mod', ['m', 'four'], ['r']), node('Sub', ['four', 'r'], ['l']), node('Mod', ['l', 'four'], ['p']),
             node('Concat', ['at_0_list', 'at_0_list', 'at_0_list', 'p', 'at_0_list', 'at_0_list'], ['listed'], axis=0), node('Reshape', ['listed', 'pairs'], ['rows']),
             node('Slice', ['rows', 'minus', 'far', 'at_0_list', 'minus'], ['back']), node('Transpose', ['back'], ['turned'], perm=[1, 0]),
             node('Reshape', ['turned', 'minus'], ['pads']), node('Pad', ['x', 'pads'], ['y'])], X, [(2, 5, 4)]),
    'split': ([*sizes_of('m', 1), node('Div', ['m', 'two'], ['h']), node('Sub', ['m', 'h'], ['o']), node('Concat', ['h', 'o'], ['to'], axis=0),
               node('Split', ['x', 'to'], ['a', 'b'], axis=1), node('Concat', ['b', 'a'], ['y'], axis=1)], X, [(2, 5, 4)]),
    'product': ([node('Shape', ['x'], ['s']), node('ReduceProd', ['s'], ['p'], keepdims=1), node('Reshape', ['x', 'p'], ['y'])], X, [(2, 3, 4)]),
    'scattered': ([node('Shape', ['x'], ['s']), node('ScatterND', ['s', 'index', 'minus'], ['to']), node('Reshape', ['x', 'to'], ['y'])], X, [(2, 3, 4)]),
}
VIEWS = ('view', 'merged', 'product', 'scattered')  # no kernel at all; the others have one or two for the data
MORE = [('three', np.array([3])), ('half', np.float32(.5)), ('pairs', np.array([-1, 2])), ('far', np.array([-2**63 + 1])), ('index', np.array([[2]]))]

ONES = lambda *shape: np.ones(shape, np.float32)  # noqa: E731


def one(kind, *inputs, **attributes):
    return [node(kind, [name for name, _, _ in inputs], ['y'], name='culprit', **attributes)], list(inputs)


# What does not fit, and what the message names.
WRONG = {
    'add': (one('Add', ('x', FLOAT, ['n']), ('z', FLOAT, ['m'])), [ONES(3), ONES(4)]),
    'add_to_fixed': (one('Add', ('x', FLOAT, ['n', 4]), ('z', FLOAT, [3, 4])), [ONES(2, 4), ONES(3, 4)]),
    'matmul': (one('MatMul', ('x', FLOAT, ['n', 'k']), ('z', FLOAT, ['l', 'm'])), [ONES(3, 4), ONES(5, 3)]),
    'matmul_batch': (one('MatMul', ('x', FLOAT, ['a', 'n', 'k']), ('z', FLOAT, ['b', 'k', 'm'])), [ONES(2, 3, 4), ONES(3, 4, 3)]),
    'concat': (one('Concat', ('x', FLOAT, ['n', 'k']), ('z', FLOAT, ['l', 'm']), axis=0), [ONES(3, 4), ONES(5, 3)]),
    'conv': (one('Conv', ('x', FLOAT, ['n', 'c', 'h', 'w']), ('z', FLOAT, ['m', 'd', 3, 3])), [ONES(1, 3, 8, 8), ONES(5, 4, 3, 3)]),
    'where': (one('Where', ('c', BOOL, ['p']), ('x', FLOAT, ['n']), ('z', FLOAT, ['m'])), [np.ones(3, bool), ONES(3), ONES(4)]),
    'layer_norm': (one('LayerNormalization', ('x', FLOAT, ['n', 'k']), ('s', FLOAT, ['m'])), [ONES(3, 4), ONES(5)]),
    'grid_sample': (one('GridSample', ('x', FLOAT, ['n', 3, 'h', 'w']), ('g', FLOAT, ['m', 'p', 'q', 2])), [ONES(3, 3, 4, 4), ONES(2, 3, 3, 2)]),
    'gather_elements': (one('GatherElements', ('x', FLOAT, ['n', 'h']), ('i', INT64, ['m', 'p'])), [ONES(3, 3), np.zeros((5, 5), np.int64)]),
    'scatter_elements': (one('ScatterElements', ('x', FLOAT, ['n', 'h']), ('i', INT64, ['m', 'p']), ('u', FLOAT, ['r', 's'])),
                         [ONES(3, 3), np.zeros((2, 2), np.int64), ONES(1, 1)]),
    'gemm_bias': (one('Gemm', ('x', FLOAT, ['n', 'k']), ('z', FLOAT, ['k', 'm']), ('c', FLOAT, ['p'])), [ONES(3, 4), ONES(4, 3), ONES(2)]),
    'pool': (one('MaxPool', ('x', FLOAT, ['n', 4, 'w']), kernel_shape=[3]), [ONES(3, 4, 2)]),
    'depth_to_space': (one('DepthToSpace', ('x', FLOAT, ['n', 'c', 2, 2]), blocksize=2), [ONES(1, 6, 2, 2)]),
    'recurrent': (one('LSTM', ('x', FLOAT, ['s', 'n', 'i']), ('w', FLOAT, [1, 8, 'j']), ('r', FLOAT, [1, 8, 2]), hidden_size=2), [ONES(3, 4, 5), ONES(1, 8, 4), ONES(1, 8, 2)]),
    'reshape': (([node('Reshape', ['x', 'two_rows'], ['y'], name='culprit')], [('x', FLOAT, ['n', 3])]), [ONES(3, 3)]),
    'squeeze': (([node('Squeeze', ['x', 'at_0_list'], ['y'], name='culprit')], [('x', FLOAT, ['n', 3])]), [ONES(5, 3)]),
}


def compile_and_run(tools, folder, graph, feeds):
    """The result of the last command, the outputs, and the kinds of the kernels."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / 'got').mkdir(parents=True)
    onnx.save(graph, folder / 'model.onnx')
    for i, (value, array) in enumerate(zip(graph.graph.input, feeds)):
        (folder / f'input_{i}.pb').write_bytes(numpy_helper.from_array(array, value.name).SerializeToString())
    result = tools.compile(folder / 'model.onnx', folder / 'model.firn', f'--report={folder / "report.json"}')
    if result.status == product.DONE:
        result = tools.run(folder / 'model.firn', folder, folder / 'got')
    return result


def judge_chain(tools, work, name):
    nodes, inputs, shapes = CHAINS[name]
    graph = model(nodes, inputs, [('y', FLOAT, None)], AXES + MORE)
    feeds = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    result = compile_and_run(tools, work / name, graph, feeds)
    if result.status != product.DONE:
        return f'{result.describe()}: {result.message.strip()[:300]}'
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=['CPUExecutionProvider'])
    wanted = session.run(None, {value.name: array for value, array in zip(graph.graph.input, feeds)})[0]
    got = product.to_array(product.load_tensor(work / name / 'got/output_0.pb'))
    if got.shape != wanted.shape or not np.allclose(got, wanted):
        return f'gives {got.shape} {got.ravel()[:4]}, expected {wanted.shape} {wanted.ravel()[:4]}'
    steps = json.loads((work / name / 'report.json').read_text()).get('steps', [])
    most = 0 if name in VIEWS else 2
    return f'{len(steps)} kernels, expected at most {most}: {[step["nodes"] for step in steps]}' if len(steps) > most else ''


def judge_wrong(tools, work, name):
    (nodes, inputs), feeds = WRONG[name]
    graph = model(nodes, inputs, [('y', FLOAT, None)], AXES + [('two_rows', np.array([2, -1]))])
    result = compile_and_run(tools, work / name, graph, feeds)
    if result.status != product.REJECTED:
        return f'{result.describe()}, expected exit status 1: {result.message.strip()[:200]}'
    return '' if 'culprit' in result.message else f'the message does not name the node: {result.message.strip()[:200]}'


def judge_symbol_of_two_sizes(tools, work):
    graph = model([node('Relu', ['x'], ['y']), node('Relu', ['z'], ['w'])], [('x', FLOAT, ['n']), ('z', FLOAT, ['n'])], [('y', FLOAT, None), ('w', FLOAT, None)])
    result = compile_and_run(tools, work / 'symbol', graph, [ONES(3), ONES(4)])
    if result.status != product.REJECTED or "'x'" not in result.message or "'z'" not in result.message:
        return f'{result.describe()}: {result.message.strip()[:200]}'
    result = tools.compile(work / 'symbol/model.onnx', work / 'symbol/model.firn', '--shape', 'x=3', '--shape', 'z=4')
    named = "'x'" in result.message and "'z'" in result.message
    return '' if result.status == product.REJECTED and named else f'--shape: {result.describe()}: {result.message.strip()[:200]}'


def judge_declared_output(tools, work):
    graph = model([node('Relu', ['x'], ['y'])], [('x', FLOAT, ['n', 4])], [('y', FLOAT, ['n', 5])])
    result = compile_and_run(tools, work / 'declared', graph, [ONES(3, 4)])
    if result.status != product.DONE or list(product.load_tensor(work / 'declared/got/output_0.pb').dims) != [3, 4]:
        return f'{result.describe()}: {result.message.strip()[:200]}'
    said = tools.compile(work / 'declared/model.onnx', work / 'declared/model.firn').message
    return '' if 'warning' in said and "'y'" in said else f'no warning that names the output: {said.strip()[:200]}'


def judge_open_rank(tools, work):
    graph = model([node('Relu', ['x'], ['y'])], [('x', FLOAT, None)], [('y', FLOAT, None)])
    compile_and_run(tools, work / 'rank', graph, [ONES(3, 4)])
    result = tools.compile(work / 'rank/model.onnx', work / 'rank/model.firn', '--shape', 'x=3x4')
    return '' if result.status == product.DONE else f'--shape: {result.describe()}: {result.message.strip()[:200]}'


def judge_value_info(tools, work):
    """Types of intermediate values come back from firn-opt where the file had some."""
    graph = model([node('Relu', ['x'], ['r']), node('Add', ['r', 'x'], ['s']), node('Relu', ['s'], ['y'])], [('x', FLOAT, ['n', 4])], [('y', FLOAT, ['n', 4])])
    graph = onnx.shape_inference.infer_shapes(graph)
    folder = work / 'value_info'
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, folder / 'model.onnx')
    result = product.run([tools.bin / 'firn-opt', folder / 'model.onnx', '-o', folder / 'out.onnx'])
    if result.status != product.DONE:
        return f'{result.describe()}: {result.message.strip()[:200]}'
    said = {value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in onnx.load(folder / 'out.onnx').graph.value_info}
    return '' if said == {'r': ['n', 4], 's': ['n', 4]} else f'value_info is {said}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/dynamic-shapes')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    claims = {f'chain {name}': lambda name=name: judge_chain(tools, args.work, name) for name in CHAINS}
    claims.update({f'wrong {name}': lambda name=name: judge_wrong(tools, args.work, name) for name in WRONG})
    claims.update({f'{judge.__name__[6:]}': lambda judge=judge: judge(tools, args.work)
                   for judge in (judge_symbol_of_two_sizes, judge_declared_output, judge_open_rank, judge_value_info)})
    failed = 0
    for name, why in zip(claims, product.parallel(lambda claim: claim(), claims.values())):
        if why:
            failed += 1
            print(f'FAILED {name}: {why}')
    print(f'{len(claims) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
