#!/usr/bin/env python3
"""Models as ONNX Runtime's optimiser saves them, with its fused operators, and a transformer in the form of its transformer tools: they
compile, no fused operator is left to a reference kernel, and outputs are right with fixed and symbolic sizes."""
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
from onnx import helper, numpy_helper

import product


def transformer(path, layers=2, heads=4, hidden=32, words=50, length=12):
    """BERT's encoder as the transformer tools leave it."""
    random = np.random.default_rng(3)
    constants, nodes = [], []

    def weight(name, *shape):
        constants.append(numpy_helper.from_array((random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32), name))
        return name

    def node(op, inputs, outputs, **attributes):
        domain = '' if op in ('MatMul', 'Gemm', 'Gather') else 'com.microsoft'
        nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
    node('EmbedLayerNormalization', ['ids', 'types', weight('word', words, hidden), weight('position', length, hidden), weight('type', 2, hidden),
                                     weight('g', hidden), weight('b', hidden), 'mask'], ['x0', 'lengths'], epsilon=1e-12)
    x = 'x0'
    for i in range(layers):
        node('Attention', [x, weight(f'qkv{i}', hidden, 3 * hidden), weight(f'qkvb{i}', 3 * hidden), 'lengths'], [f'a{i}'], num_heads=heads)
        node('MatMul', [f'a{i}', weight(f'o{i}', hidden, hidden)], [f'p{i}'])
        node('SkipLayerNormalization', [f'p{i}', x, weight(f'g1{i}', hidden), weight(f'b1{i}', hidden), weight(f'ob{i}', hidden)], [f'n{i}'], epsilon=1e-12)
        node('MatMul', [f'n{i}', weight(f'up{i}', hidden, 4 * hidden)], [f'u{i}'])
        node('BiasGelu' if i % 2 == 0 else 'FastGelu', [f'u{i}', weight(f'ub{i}', 4 * hidden)], [f'h{i}'])
        node('MatMul', [f'h{i}', weight(f'down{i}', 4 * hidden, hidden)], [f'd{i}'])
        node('SkipLayerNormalization', [f'd{i}', f'n{i}', weight(f'g2{i}', hidden), weight(f'b2{i}', hidden), weight(f'db{i}', hidden)], [f'x{i + 1}'], epsilon=1e-12)
        x = f'x{i + 1}'
    value = helper.make_tensor_value_info
    inputs = [value(name, onnx.TensorProto.INT32, ['batch', 'length']) for name in ('ids', 'types', 'mask')]
    graph = helper.make_graph(nodes, 'transformer', inputs, [value(x, onnx.TensorProto.FLOAT, ['batch', 'length', hidden])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8), path)
    mask = (np.arange(8)[None] < np.array([[8], [5], [6]])).astype(np.int32)
    feeds = {'ids': random.integers(0, words, (3, 8)).astype(np.int32), 'types': random.integers(0, 2, (3, 8)).astype(np.int32), 'mask': mask}
    session = onnxruntime.InferenceSession(str(path))
    return feeds, session.run(None, feeds)


def save_data(folder, feeds, outputs):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind, values in (('input', feeds.items()), ('output', [('', y) for y in outputs])):
        for i, (name, array) in enumerate(values):
            (folder / f'{kind}_{i}.pb').write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def check(tools, folder, data, options, rtol, atol):
    """Yields why a claim is false, or ''."""
    report = folder / 'report.json'
    result = tools.compile(folder / 'model.onnx', folder / 'model.firn', f'--report={report}', *options, timeout=600)
    if result.status != product.DONE:
        yield f'{result.describe()}: {result.message.strip()[:300]}'
        return
    # What the optimiser fused is spelt out: a step that runs on a reference kernel is one of ai.onnx.
    fused = [node for node in onnx.load(folder / 'model.onnx', load_external_data=False).graph.node if node.domain == 'com.microsoft']
    slow = {step['nodes'] for step in json.loads(report.read_text())['steps'] if not step['generated'] and 'com.microsoft' in json.dumps(step)}
    yield f'{len(fused)} fused operators, on reference kernels: {sorted(slow)[:3]}' if slow else ''
    got = folder / 'got'
    shutil.rmtree(got, ignore_errors=True)
    got.mkdir()
    result = tools.run(folder / 'model.firn', data, got, timeout=300)
    yield f'{result.describe()}: {result.message.strip()[:300]}' if result.status != product.DONE else product.compare_outputs(got, data, rtol, atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/optimised_by_peer')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models', help='folder of the models (default: .models)')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    failures, passed = [], 0

    def claim(name, reasons):
        nonlocal passed
        reasons = [reason for reason in reasons if reason]
        passed += not reasons
        failures.extend(f'FAILED {name}: {reasons[0]}' for _ in range(bool(reasons)))

    folder = args.work / 'transformer'
    folder.mkdir(parents=True, exist_ok=True)
    save_data(folder / 'data', *transformer(folder / 'model.onnx'))
    for options in ([], ['--dim', 'batch=3', '--dim', 'length=8'], ['-O0']):
        claim(f'transformer {" ".join(options)}', [why for why in check(tools, folder, folder / 'data', options, 1e-3, 1e-4) if '-O0' not in options or 'fused' not in why])

    for name in ('minilm_fp32', 'minilm_int8', 'gpt2_step_l4', 'squeezenet', 'mobilenet_v2'):
        source, folder = args.models / name, args.work / name
        if not (source / 'model.onnx').exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(folder / 'model.onnx')
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(source / 'model.onnx'), options)
        claim(name, check(tools, folder, source / 'test_data_set_0', [], 1e-2, 2e-3 if 'int8' not in name else 5e-2))
    print('\n'.join(failures))
    print(f'{passed} passed, {len(failures)} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
