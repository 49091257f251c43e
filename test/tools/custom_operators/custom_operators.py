#!/usr/bin/env python3
"""Custom operators: the documented example is built as a static and as a shared library; models that use it compile, run and give numpy's
values; without it firnc refuses them by name and firn-opt carries them through; libraries that are wrong are refused."""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import product

EXAMPLE = product.ROOT / 'tools/examples/custom_operator/ScaledTanh.c'
F32 = TensorProto.FLOAT


def model(path, batch, with_constant=False, alpha=0.5, extra=None):
    scale = np.array([1, 2, 3, 4], np.float32)
    attributes = {} if alpha is None else {'alpha': alpha}
    nodes = [helper.make_node('Add', ['x', 'x'], ['a'], 'double'),
             helper.make_node('ScaledTanh', ['a', 'scale'], ['b'], 'custom', domain='com.example', **attributes, **(extra or {})),
             helper.make_node('Neg', ['b'], ['c'], 'minus')]
    if with_constant:
        nodes += [helper.make_node('ScaledTanh', ['table', 'scale'], ['t'], 'folded', domain='com.example'), helper.make_node('Add', ['c', 't'], ['y'], 'sum')]
    else:
        nodes += [helper.make_node('Identity', ['c'], ['y'], 'out')]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', F32, [batch, 4])], [helper.make_tensor_value_info('y', F32, [batch, 4])],
                              [numpy_helper.from_array(scale, 'scale'), numpy_helper.from_array(np.arange(4, dtype=np.float32).reshape(1, 4), 'table')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 1)], ir_version=10), path)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    y = -scale * np.tanh((1 if alpha is None else alpha) * 2 * x)
    return x, y + scale * np.tanh(np.arange(4)) if with_constant else y


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--cc', default='cc')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    work = pathlib.Path(args.build).resolve().parent / 'custom_operators'
    work.mkdir(parents=True, exist_ok=True)
    failures, count = [], 0

    def expect(what, isTrue, message=''):
        nonlocal count
        count += 1
        if not isTrue:
            failures.append(f'{what}\n{message}')

    def cc(*words):
        subprocess.run([args.cc, *map(str, words)], check=True)

    def library(name, source):
        (work / f'{name}.c').write_text(source)
        cc('-O2', '-fPIC', '-w', '-I', product.ROOT, '-c', work / f'{name}.c', '-o', work / f'{name}.o')
        return work / f'{name}.o'

    cc('-std=c11', '-Wall', '-Wextra', '-Werror', '-O2', '-fPIC', '-ffunction-sections', '-I', product.ROOT, '-c', EXAMPLE, '-o', work / 'ScaledTanh.o')
    static, shared = work / 'libscaled_tanh.a', work / 'libscaled_tanh.so'
    static.unlink(missing_ok=True)
    subprocess.run(['ar', 'rcs', static, work / 'ScaledTanh.o'], check=True)
    cc('-shared', '-Wl,-soname,libscaled_tanh.so', work / 'ScaledTanh.o', '-lm', '-o', shared)

    path, artifact, inputs, outputs = work / 'model.onnx', work / 'model.firn', work / 'inputs', work / 'outputs'
    inputs.mkdir(exist_ok=True)
    for batch, with_constant, alpha in ((3, False, 0.5), ('batch', False, None), ('batch', True, 0.5)):
        x, wanted = model(path, batch, with_constant, alpha)
        (inputs / 'input_0.pb').write_bytes(numpy_helper.from_array(x, 'x').SerializeToString())
        for level in ('-O0', '-O3'):
            for libraries in ([static], [shared, static], [work / 'ScaledTanh.o']):
                what = f'batch {batch}, {"folded, " if with_constant else ""}{level}, {" ".join(l.name for l in libraries)}'
                done = tools.compile(path, artifact, level, *[f'--ops={name}' for name in libraries])
                expect(f'{what}: compiles', done.status == product.DONE, done.message)
                done = tools.run(artifact, inputs, outputs)
                expect(f'{what}: runs', done.status == product.DONE, done.message)
                if done.status == product.DONE:
                    got = product.to_array(product.load_tensor(outputs / 'output_0.pb'))
                    expect(f'{what}: right', np.allclose(got, wanted, 1e-5, 1e-6), f'{got}\n{wanted}')

    done = tools.compile(path, artifact, f'--ops={shared}')
    expect('a shared library has no code for the model', done.status == 2 and 'give a static library' in done.message, done.message)
    done = product.run([tools.bin / 'firnc', '--check', path, f'--ops={shared}'])
    expect('but tells whether it compiles', done.status == product.DONE, done.message)
    done = tools.compile(path, artifact, f'--ops={static}', '--proof')
    expect('a proof is made', done.status == product.DONE and 'no proof' not in done.message, done.message)
    expect('and holds', product.run([tools.bin / 'firn-run', artifact, '--verify']).status == product.DONE)
    seen = product.run([tools.bin / 'firn-inspect', artifact])
    expect('firn-inspect lists it', 'com.example::ScaledTanh' in seen.message, seen.message)
    seen = product.run([tools.bin / 'firn-inspect', path])
    expect('firn-inspect lists it in the graph', 'com.example::ScaledTanh' in seen.message, seen.message)

    done = tools.compile(path, artifact)
    expect('without the library it is refused by node', done.status == product.REJECTED and "node 'custom'" in done.message
           and 'com.example::ScaledTanh' in done.message, done.message)

    # firn-opt: without the library nothing of the node changes; with it, the operator on constants is folded.
    optimised = work / 'optimised.onnx'
    for options, folded in (([], False), ([f'--ops={static}'], True)):
        done = product.run([tools.bin / 'firn-opt', path, '-o', optimised, *options])
        expect(f'firn-opt {options} works', done.status == product.DONE, done.message)
        before, after = onnx.load(path), onnx.load(optimised)
        kept = {node.name: node for node in after.graph.node if node.domain == 'com.example'}
        original = {node.name: node for node in before.graph.node if node.domain == 'com.example'}
        expect(f'firn-opt {options} keeps the node', kept['custom'] == original['custom'], kept)
        expect(f'firn-opt {options} folds: {folded}', ('folded' not in kept) == folded, kept)

    # Passes on textual IR know it too.
    text = work / 'call.mlir'
    text.write_text('''func.func @main(%x: tensor<2x4xf32>, %scale: tensor<4xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "com.example::ScaledTanh"(%x, %scale) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}
''')
    for libraries, known in (([], False), ([f'--ops={static}'], True), ([f'--ops={shared}'], True)):
        done = product.run([tools.bin / 'firn-mlir-opt', '--firn-infer-shapes', text, *libraries])
        expect(f'firn-mlir-opt {libraries} infers: {known}', ('-> tensor<2x4xf32> {' in done.message) == known, done.message)

    # An unknown operator with a graph that reads from outside, attributes out of the alphabet, two equal nodes.
    graphs = work / 'graphs.onnx'
    inner = helper.make_graph([helper.make_node('Add', ['h', 'own'], ['i']), helper.make_node('Relu', ['i'], ['j'], 'inner_relu')], 'inner', [],
                              [helper.make_tensor_value_info('j', F32, None)], [numpy_helper.from_array(np.ones(4, np.float32), 'own')])
    attributes = {'zeta': 1, 'alpha': [1.5, 2.5], 'middle': 'text', 'body': inner}
    nodes = [helper.make_node('Neg', ['x'], ['h0'], 'first'), helper.make_node('Identity', ['h0'], ['h'], 'alias')]
    for name in 'pq':
        nodes.append(helper.make_node('Apply', ['x'], [name], f'apply_{name}', domain='com.example'))
        for key in attributes:
            nodes[-1].attribute.append(helper.make_attribute(key, attributes[key]))
    nodes.append(helper.make_node('Add', ['p', 'q'], ['y'], 'sum'))
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', F32, ['n', 4])], [helper.make_tensor_value_info('y', F32, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 1)], ir_version=10), graphs)
    optimised = work / 'graphs_optimised.onnx'
    done = product.run([tools.bin / 'firn-opt', graphs, '-o', optimised])
    expect('firn-opt carries graphs', done.status == product.DONE, done.message)
    after = onnx.load(optimised)
    kept = {node.name: node for node in after.graph.node if node.domain == 'com.example'}
    expect('equal unknown nodes are not merged', set(kept) == {'apply_p', 'apply_q'}, after)
    for name, got in kept.items():
        expect(f'{name} has its attributes in order', [a.name for a in got.attribute] == list(attributes), got)
        body = next((a.g for a in got.attribute if a.name == 'body'), onnx.GraphProto())
        expect(f'{name} has its graph', [n.op_type for n in body.node] == ['Add', 'Relu'] and [n.name for n in body.node] == ['', 'inner_relu']
               and len(body.initializer) == 1, got)
        outer = {v.name for v in after.graph.input} | {output for node in after.graph.node for output in node.output}
        expect(f'{name} still reads what it read', body.node and body.node[0].input[0] in outer, got)
    done = tools.compile(graphs, artifact)
    expect('firnc refuses both', done.status == product.REJECTED and 'apply_p' in done.message, done.message)

    # A node that breaks the schema, inputs that break the shape function.
    model(path, 3, extra={'beta': 1.0})
    done = tools.compile(path, artifact, f'--ops={static}')
    expect('an attribute that the schema lacks is a warning', "attribute 'beta'" in done.message, done.message)
    model(path, 3, alpha=2)
    done = tools.compile(path, artifact, f'--ops={static}')
    expect('an attribute of the wrong kind is refused', done.status == product.REJECTED and 'a float' in done.message, done.message)
    x, _ = model(path, 3)
    broken = onnx.load(path)
    broken.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(5, np.float32), 'scale'))
    onnx.save(broken, path)
    done = product.run([tools.bin / 'firnc', '--check=json', path, f'--ops={static}'])
    found = json.loads(done.message)['diagnostics']
    expect("the shape function's message is taken apart", len(found) == 1 and found[0]['expected'] == '[4]' and found[0]['node'] == 'custom', done.message)

    # Libraries that are none.
    model(path, 3)
    header = '#include "runtime/abi/custom.h"\nstatic int32_t f(firn_call *c) { return 0; }\n'
    table = 'static const firn_custom_operator t[] = {{&firn_op_%s, 1, 0, 0, 0, 0, 0, 0, 0, 0}};\nFIRN_CUSTOM_LIBRARY(t, 1)\n'
    wrong = {'no_table': (header, 'does not define firn_custom_operators'),
             'other_version': (header + 'FIRN_CUSTOM_EXPORT const firn_custom_library firn_custom_operators;'
                                        'const firn_custom_library firn_custom_operators = {99, 0, 0};', 'expected 1, found 99'),
             'own_name': (header + 'FIRN_CUSTOM_OPERATOR(ai_onnx, Relu, "ai.onnx::Relu", f, f)' + table % 'ai_onnx_Relu', 'not the user'),
             'no_domain': (header + 'FIRN_CUSTOM_OPERATOR(x, Relu, "Relu", f, f)' + table % 'x_Relu', 'domain::Name'),
             'no_kernel': (header + 'FIRN_CUSTOM_OPERATOR(x, F, "x::F", f, 0)' + table % 'x_F', 'no name, shape function or kernel')}
    for name, (source, text) in wrong.items():
        done = tools.compile(path, artifact, f'--ops={library(name, source)}')
        expect(f'{name} is refused', done.status == 2 and 'options.ops' in done.message and text in done.message, done.message)
    (work / 'text.a').write_text('no library')
    for name in ('text.a', 'nowhere.so', 'nowhere.a'):
        done = tools.compile(path, artifact, f'--ops={work / name}')
        expect(f'{name} is refused', done.status == 2 and 'options.ops' in done.message, done.message)

    print('\n'.join(f'FAILED {failure}' for failure in failures))
    print(f'{count - len(failures)} passed, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
