#!/usr/bin/env python3
"""firn-inspect on graph files: inputs, outputs, operators, weights and metadata of ONNX and Firn graphs, as text and JSON; files that are none
are refused with the status of a rejected model."""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import product

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16


def model(path):
    then = helper.make_graph([helper.make_node('Neg', ['h'], ['t'], 'then')], 'then', [], [helper.make_tensor_value_info('t', F32, None)])
    other = helper.make_graph([helper.make_node('Add', ['h', 'inner'], ['e'], 'else')], 'else', [], [helper.make_tensor_value_info('e', F32, None)],
                              [numpy_helper.from_array(np.ones(4, np.float32), 'inner')])
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['h'], 'product'), helper.make_node('If', ['c'], ['y'], 'choice', then_branch=then, else_branch=other),
             helper.make_node('Twist', ['y'], ['z'], 'custom', domain='com.example')]
    graph = helper.make_graph(nodes, 'inspected', [helper.make_tensor_value_info('x', F32, ['batch', 3]), helper.make_tensor_value_info('c', TensorProto.BOOL, []),
                                                   helper.make_tensor_value_info('d', F16, [2])],
                              [helper.make_tensor_value_info('z', F32, ['batch', None])],
                              [numpy_helper.from_array(np.ones((3, 4), np.float32), 'w'), numpy_helper.from_array(np.ones(2, np.float16), 'd')])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 3)], ir_version=10, producer_name='tester',
                             producer_version='1.5')
    helper.set_model_props(made, {'author': 'nobody'})
    onnx.save(made, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    work = pathlib.Path(args.build).resolve().parent / 'inspect_graph'
    work.mkdir(parents=True, exist_ok=True)
    failures, count = [], 0

    def expect(what, found, wanted):
        nonlocal count
        count += 1
        if found != wanted:
            failures.append(f'{what}: expected {wanted}, found {found}')

    def inspect(*words):
        return product.run([tools.bin / 'firn-inspect', *words])

    path, text = work / 'model.onnx', work / 'model.fpbtxt'
    model(path)
    done = product.run([tools.bin / 'firn-opt', path, '-o', text, '--no-optimise'])
    expect('conversion', done.status, product.DONE)
    for file, kind in ((path, 'onnx'), (text, 'firn')):
        done = inspect(file, '--json')
        expect(f'{kind} status', done.status, product.DONE)
        found = json.loads(done.message)
        expect(f'{kind} format', found['format'], kind)
        expect(f'{kind} name', found['name'], 'inspected')
        expect(f'{kind} producer', found['producer'].startswith('tester'), True)
        expect(f'{kind} opsets', found['opsets']['com.example'], 3)
        expect(f'{kind} inputs', [(i['name'], i['dtype'], i['dims'], i['optional']) for i in found['inputs']],
               [('x', 'float32', ['batch', 3], False), ('c', 'bool', [], False), ('d', 'float16', [2], True)])
        expect(f'{kind} outputs', [(o['name'], o['dtype'], o['dims']) for o in found['outputs']], [('z', 'float32', ['batch', None])])
        expect(f'{kind} operators, nested ones too', found['operators'], {'Add': 1, 'If': 1, 'MatMul': 1, 'Neg': 1, 'com.example::Twist': 1})
        expect(f'{kind} nodes', (found['nodes'], found['nested_graphs']), (5, 2))
        expect(f'{kind} parameters', found['parameters'], 12 + 4 + 2)
        expect(f'{kind} weights', found['weights']['dtypes'], {'float16': {'tensors': 1, 'bytes': 4}, 'float32': {'tensors': 2, 'bytes': 64}})
        expect(f'{kind} metadata', found['metadata'], {'author': 'nobody'})
        said = inspect(file).message
        for part in (f"{kind} graph 'inspected' by tester", 'x: float32[batch,3]', 'd: float16[2] (may be left out)', 'com.example::Twist',
                     '5 nodes, 2 nested graphs', '18 parameters in 3 tensors, 68 bytes', 'author: nobody'):
            expect(f'{kind} text has {part}', part in said, True)

    broken = work / 'broken.onnx'
    broken.write_bytes(path.read_bytes()[:-20])
    done = inspect(broken)
    expect('a cut file is refused', (done.status, 'error[import.file]' in done.message), (product.REJECTED, True))
    damaged = onnx.load(path)
    damaged.graph.initializer[0].raw_data = b'short'
    onnx.save(damaged, broken)
    done = inspect(broken, '--json')
    expect('a damaged tensor is reported, the rest is shown', (done.status, 'error[import.tensor.data]' in done.message, '"nodes": 5' in done.message),
           (product.REJECTED, True, True))
    expect('a file that is not there', inspect(work / 'nowhere.onnx').status, 3)
    reader = tools.bin / 'firn-inspect-graph'
    expect('the reader without a file', product.run([reader]).status, 2)
    expect('the reader with an unknown option', product.run([reader, path, '--yaml']).status, 2)
    print('\n'.join(failures))
    print(f'{count - len(failures)} passed, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
