#!/usr/bin/env python3
"""A model with ten different problems gets ten messages in one go, each with the name of its node."""
import argparse
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import product

FLOAT = TensorProto.FLOAT


def broken_model():
    """The model and, for each broken node, a pattern that its message must match."""
    weights = {'w34': np.ones((3, 4), np.float32), 'kernel': np.ones((8, 5, 3, 3), np.float32), 'seven': np.array([7], np.int64),
               'far': np.array([99], np.int64)}
    nodes, patterns = [], {}

    def add(name, operator, inputs, pattern, domain='', **attributes):
        nodes.append(helper.make_node(operator, inputs, [f'{name}_out'], name=name, domain=domain, **attributes))
        patterns[name] = pattern

    add('good', 'Relu', ['x'], None)
    add('no_such_operator', 'Frobnicate', ['x'], 'Frobnicate')
    add('no_such_domain', 'Relu', ['x'], 'com.example', domain='com.example')
    add('reads_nothing', 'Neg', ['never_defined'], 'never_defined')
    add('inner_sizes', 'MatMul', ['x', 'w34'], '(?i)matmul')
    add('channels', 'Conv', ['image', 'kernel'], '(?i)channel|kernel|weight')
    add('element_count', 'Reshape', ['x', 'seven'], '7')
    add('no_permutation', 'Transpose', ['x'], '(?i)perm', perm=[0, 0])
    add('axis', 'Softmax', ['x'], '(?i)axis', axis=5)
    add('not_broadcastable', 'Add', ['x', 'w34'], '(?i)broadcast|shape')
    add('index_of_constant', 'Gather', ['w34', 'far'], '99')
    del patterns['good']
    graph = helper.make_graph(nodes, 'ten_problems', [helper.make_tensor_value_info('x', FLOAT, [2, 5]),
                                                      helper.make_tensor_value_info('image', FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info(node.output[0], FLOAT, None) for node in nodes],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.example', 1)], ir_version=10)
    return model, patterns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e')
    args = parser.parse_args()
    model, patterns = broken_model()
    args.work.mkdir(parents=True, exist_ok=True)
    path, artifact = args.work / 'ten_problems.onnx', args.work / 'ten_problems.firn'
    artifact.unlink(missing_ok=True)
    onnx.save(model, path)
    result = product.Tools(args.build).compile(path, artifact)
    print(result.message)
    problems = []
    if result.status != product.REJECTED:
        problems.append(f'{result.describe()}, expected exit status 1')
    if artifact.exists():
        problems.append('an artifact was written')
    errors = [line for line in result.message.splitlines() if re.search(r'\berror\[', line)]
    for name, pattern in patterns.items():
        lines = [line for line in errors if f"'{name}'" in line]
        if len(lines) != 1 or not re.search(pattern, lines[0]):
            problems.append(f"node '{name}': expected one message that matches {pattern}, got {lines}")
    if len(errors) != len(patterns):
        problems.append(f'{len(errors)} errors, expected {len(patterns)}')
    print('\n'.join(f'FAILED {problem}' for problem in problems) or f'{len(patterns)} problems, {len(errors)} messages')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
