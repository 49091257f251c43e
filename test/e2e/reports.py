#!/usr/bin/env python3
"""firnc --report and --check: every node is accounted for, figures are right, JSON as docs/report.md describes it."""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx
from onnx import TensorProto, helper

import product


def model(path):
    """A product with a bias and Relu, then Unique, which runs on its reference kernel; the batch is dynamic."""
    weight = helper.make_tensor('w', TensorProto.FLOAT, [8, 16], [0.01 * i for i in range(128)])
    bias = helper.make_tensor('b', TensorProto.FLOAT, [16], [0.5] * 15 + [0.25])
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['p'], name='product'), helper.make_node('Add', ['p', 'b'], ['s'], name='bias'),
             helper.make_node('Relu', ['s'], ['r'], name='relu'), helper.make_node('Unique', ['r'], ['v', 'i'], name='distinct')]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['batch', 8])],
                              [helper.make_tensor_value_info('v', TensorProto.FLOAT, ['found']),
                               helper.make_tensor_value_info('i', TensorProto.INT64, ['found'])], [weight, bias])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build/dev')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    work = pathlib.Path(args.build).resolve().parent / 'reports'
    work.mkdir(parents=True, exist_ok=True)
    path, failures, count = work / 'model.onnx', [], 0
    model(path)

    def expect(what, found, wanted):
        nonlocal count
        count += 1
        if found != wanted:
            failures.append(f'{what}: expected {wanted}, found {found}')

    for options, flops in ((['--dim', 'batch=4'], 2 * 4 * 8 * 16), ([], None)):
        done = tools.compile(path, work / 'model.firn', f'--report={work / "report.json"}', *options)
        expect('status', done.status, product.DONE)
        report = json.loads((work / 'report.json').read_text())
        expect('schema', report['schema'], 'firn.report.v1')
        by_nodes = {step['nodes']: step for step in report['steps']}
        names = ' '.join(by_nodes)
        for node in ('product', 'bias', 'relu', 'distinct'):
            expect(f'{node} is in the report', node in names, True)
        product_step = next(step for nodes, step in by_nodes.items() if 'product' in nodes)
        expect('bias and relu are in the kernel of the product', all(n in product_step['nodes'] for n in ('bias', 'relu')), True)
        expect('the product is generated', product_step['generated'], True)
        if flops:
            expect('the product counts its own and its epilogue\'s operations', product_step['flops'], flops + 2 * 4 * 16)
        else:
            expect('dynamic counts are formulas', 'batch' in product_step['flops'], True)
        distinct = next(step for nodes, step in by_nodes.items() if 'distinct' in nodes)
        expect('Unique runs on its reference kernel', distinct['generated'], False)
        expect('the text names it', 'reference' in done.message and 'distinct' in done.message, True)

    done = product.run([tools.bin / 'firnc', path, '--check=json'])
    check = json.loads(done.message)
    expect('accepted', check['accepted'], True)
    expect('check schema', check['schema'], 'firn.check.v1')
    expect('slow steps are named', check['reference_steps'], ['distinct (ai.onnx::Unique)'])
    expect('dynamic dimensions are named', check['dynamic_dimensions'], ["batch (dimension 0 of input 'x')"])
    expect('kernels', check['kernels'], 1)
    done = product.run([tools.bin / 'firnc', path, '--check', '--dim', 'batch=4'])
    expect('fixed dimensions', 'dynamic dimensions: none' in done.message, True)
    print('\n'.join(failures))
    print(f'{count - len(failures)} passed, {len(failures)} failed')
    sys.exit(bool(failures))


if __name__ == '__main__':
    main()
