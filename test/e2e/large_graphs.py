#!/usr/bin/env python3
"""Time and memory of firn-opt grow no worse than n log n in the nodes of a graph.

Each family of graphs is one that makes some step of an optimiser quadratic: a value read by every node, thousands of outputs, one long
chain, a deep residual network, a chain that folds, ... Compared are processor time and memory of one graph and of one four times as
large, both above those of a graph of a few nodes; what is quadratic takes 16 times as much.

  tools/dev/test-venv test/e2e/large_graphs.py --build build/release --sizes 1000 10000 100000     prints a table
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.outputs = [], [], []
        self.inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['N', 8])]
        self.random = np.random.default_rng(0)

    def constant(self, value, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f'k{len(self.constants)}'))
        return self.constants[-1].name

    def weights(self, *shape):
        return self.constant(self.random.random(shape) + .5)

    def add(self, op, *inputs, **attributes):
        name = f'v{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def output(self, value):
        self.outputs.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, None))

    def model(self):
        graph = helper.make_graph(self.nodes, 'large', self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def read_by_all(graph, n):
    x = graph.add('Relu', 'x')
    one = graph.weights(8)
    kinds = [('Identity',), ('Abs',), ('Neg',), ('Sin',), ('Add', one)]
    graph.output(graph.add('Sum', *[graph.add(kind, x, *more) for kind, *more in (kinds[i % 5] for i in range(n))]))


def equal_nodes(graph, n):
    graph.output(graph.add('Sum', *[graph.add('Sin', 'x') for _ in range(n)]))


def shape_arithmetic(graph, n):
    zero, axis, width, x = graph.constant(0, np.int64), graph.constant([0], np.int64), graph.constant([8], np.int64), 'x'
    for _ in range(n // 6):
        size = graph.add('Unsqueeze', graph.add('Gather', graph.add('Shape', x), zero, axis=0), axis)
        x = graph.add('Reshape', graph.add('Sin', x), graph.add('Concat', size, width, axis=0))
    graph.output(x)


def dead_chain(graph, n):
    x = 'x'
    for _ in range(n):
        x = graph.add('Sin', x)
    graph.output(graph.add('Relu', 'x'))


def foldable_chain(graph, n):
    x = one = graph.weights(8)
    for _ in range(n):
        x = graph.add('Add', x, one)
    graph.output(graph.add('Mul', 'x', x))


def many_outputs(graph, n):
    x = 'x'
    for i in range(n // 2):
        x = graph.add('Sin' if i % 2 else 'Cos', x)
        graph.output(graph.add('Identity', x))


def many_inputs(graph, n):
    graph.inputs += [helper.make_tensor_value_info(f'x{i}', TensorProto.FLOAT, ['N', 8]) for i in range(n)]
    x = 'x'
    for i in range(n):
        x = graph.add('Add', x, f'x{i}')
    graph.output(x)


def transposes(graph, n):
    x = 'x'
    for _ in range(n // 3):
        x = graph.add('Transpose', graph.add('Sin', graph.add('Transpose', x, perm=[1, 0])), perm=[1, 0])
    graph.output(x)


def convolutions(graph, n):
    graph.inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['N', 4, 8, 8])]
    x = 'x'
    for _ in range(n // 3):
        x = graph.add('Conv', x, graph.weights(4, 4, 1, 1))
        x = graph.add('Relu', graph.add('BatchNormalization', x, *[graph.weights(4) for _ in range(4)]))
    graph.output(x)


def residuals(graph, n):
    x = 'x'
    for _ in range(n // 4):
        k = graph.weights(8)
        x = graph.add('Add', x, graph.add('Add', graph.add('Relu', graph.add('Mul', x, k)), k))
    graph.output(x)


def branches(graph, n):
    graph.inputs.append(helper.make_tensor_value_info('p', TensorProto.BOOL, []))
    x = 'x'
    for i in range(n // 3):
        def branch(op, name):
            return helper.make_graph([helper.make_node(op, [x], [name], name=name)], 'branch', [],
                                     [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

        x = graph.add('If', 'p', then_branch=branch('Sin', f'then{i}'), else_branch=branch('Cos', f'else{i}'))
    graph.output(x)


def nested_sums(graph, n):
    """A balanced tree."""
    level = [graph.add('Sin', 'x') if i == 0 else graph.add('Mul', 'x', graph.weights(8)) for i in range(n // 3)]
    while len(level) > 1:
        level = [graph.add('Add', *level[i:i + 2]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    graph.output(level[0])


# Runs a command and prints its seconds and megabytes. A process of its own: Linux counts what the parent had, before exec, as the child's.
COUNT = '''
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(min(abs(status), 255))
'''

FAMILIES = [read_by_all, equal_nodes, shape_arithmetic, dead_chain, foldable_chain, many_outputs, many_inputs, transposes, convolutions,
            residuals, branches, nested_sums]


def optimise(tool, model, output, *options):
    """Seconds of processor time and megabytes."""
    done = subprocess.run([sys.executable, '-c', COUNT, tool, model, '-o', output, *options], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f'{model}: firn-opt ended with {done.returncode}')
    return map(float, done.stdout.split())


def measure(tool, family, size, folder, repeats):
    """Seconds of processor time and megabytes, the least of several runs."""
    model = folder / f'{family.__name__}.onnx'
    graph = Graph()
    family(graph, size)
    onnx.save(graph.model(), model)
    return [min(values) for values in zip(*(optimise(tool, model, folder / 'out.onnx') for _ in range(repeats)))]


def save_weights_beside(path, count, side):
    """A chain of `count` products whose weights of side x side lie in a file beside the model."""
    graph, x = Graph(), 'x'
    graph.inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['N', side])]
    block = graph.random.standard_normal((side, side), np.float32)
    with open(path.with_suffix('.weights'), 'wb') as file:
        for i in range(count):
            tensor = TensorProto(name=f'k{i}', data_type=TensorProto.FLOAT, dims=[side, side], data_location=TensorProto.EXTERNAL)
            for key, value in [('location', path.with_suffix('.weights').name), ('offset', file.tell()), ('length', block.nbytes)]:
                tensor.external_data.add(key=key, value=str(value))
            block[0, 0] = i  # no two are equal
            file.write(block)
            graph.constants.append(tensor)
            x = graph.add('MatMul', graph.add('Identity', x), tensor.name)
    graph.output(x)
    path.write_bytes(graph.model().SerializeToString())


def weights_stay_on_disk(tool, folder):
    """Weights beside the model are passed from file to file: more of them take no more memory. Returns what is wrong."""
    side, few, many = 1448, 4, 24
    peaks = {}
    for count in (few, many):
        model = folder / f'weights_{count}.onnx'
        save_weights_beside(model, count, side)
        converted = folder / f'weights_{count}.fpb'
        for source, output in [(model, folder / 'out.onnx'), (model, converted), (converted, folder / 'out.onnx')]:
            _, peaks[source.suffix, output.suffix, count] = optimise(tool, source, output, '--external=4096')
    wrong = []
    for source, output, count in peaks:
        more = peaks[source, output, many] - peaks[source, output, few]
        # Looking at one element may map two megabytes of the file, a quarter of a tensor.
        if count == many and more > (many - few) * side * side * 4 / 2**20 / 2:
            wrong.append(f'{source} to {output}: {many - few} more weights of {side}x{side} take {more:.0f} MB')
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True, type=pathlib.Path)
    parser.add_argument('--sizes', nargs='+', type=int, help='print a table of seconds and megabytes instead of judging')
    arguments = parser.parse_args()
    tool = arguments.build.resolve() / 'bin/firn-opt'
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for family in FAMILIES:
            if arguments.sizes:
                cells = [measure(tool, family, size, folder, 1) for size in arguments.sizes]
                print(f'{family.__name__:18}' + ''.join(f'{seconds:9.2f} s {memory:6.0f} MB' for seconds, memory in cells), flush=True)
                continue
            small, large = 3000, 12000
            floor, few, many = (measure(tool, family, size, folder, 3) for size in (12, small, large))
            # Half of the way, in powers, from n log n to n^2: noise does not take a good one there, nor a bad one below.
            limit = large / small * math.sqrt(math.log(large) / math.log(small) * large / small)
            # A hundredth of a second and eight megabytes are noise.
            time, memory = ((many[i] - floor[i]) / max(few[i] - floor[i], noise) for i, noise in ((0, .02), (1, 8)))
            verdict = 'ok' if max(time, memory) <= limit else 'FAILED'
            wrong += verdict != 'ok'
            print(f'{verdict:6} {family.__name__:18} {few[0]:.2f} s -> {many[0]:.2f} s: {time:.1f} times; memory {memory:.1f} times', flush=True)
        if not arguments.sizes:
            problems = weights_stay_on_disk(tool, folder)
            wrong += bool(problems)
            print(f'{"FAILED" if problems else "ok":6} weights stay on disk  ' + '; '.join(problems))
    if not arguments.sizes:
        print(f'{len(FAMILIES) + 1 - wrong} passed, {wrong} failed')
    return min(wrong, 1)


if __name__ == '__main__':
    sys.exit(main())
