"""Random graphs of ONNX operators, well-typed by construction, with values that stay of moderate size.

Operators that jump (Floor, comparisons, ArgMax, casts to integers) read exact values only: graph inputs, or what exact operators made of
them. Elsewhere the rounding that compilers may legally change would flip their results.
"""
import dataclasses

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SMOOTH = ['Tanh', 'Sigmoid', 'Relu', 'LeakyRelu', 'Elu', 'Selu', 'Erf', 'Softplus', 'Softsign', 'HardSigmoid', 'HardSwish', 'Neg', 'Abs',
          'Sin', 'Cos', 'Atan', 'Identity', 'Gelu', 'Mish']
EXACT = ['Neg', 'Abs', 'Relu', 'Identity', 'Floor', 'Ceil', 'Round', 'Sign']


@dataclasses.dataclass
class Value:
    name: str
    shape: tuple
    exact: bool
    dtype: int = FLOAT


class RandomGraph:

    def __init__(self, seed, dynamic=False):
        """dynamic: the leading dimension of every input is the symbol `batch`."""
        self.random = np.random.default_rng(seed)
        self.dynamic = dynamic
        self.batch = int(self.random.integers(1, 5))
        self.values, self.nodes, self.weights, self.inputs = [], [], [], []
        self.feeds = {}
        for i in range(self.pick([1, 1, 2])):
            self.add_input(f'input_{i}')
        for _ in range(int(self.random.integers(3, 14))):
            self.pick(STEPS)(self)

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def add_input(self, name):
        rank = self.pick([2, 2, 3, 4, 4])
        sizes = [1, 2, 3, 5, 8, 16, 17, 33]
        if rank == 4:
            shape = (self.batch, self.pick([1, 3, 4, 8, 16]), self.pick([5, 7, 8, 12]), self.pick([5, 8, 9, 16]))
        else:
            shape = (self.batch, *(self.pick(sizes) for _ in range(rank - 1)))
        self.inputs.append(helper.make_tensor_value_info(name, FLOAT, ['batch' if self.dynamic else shape[0], *shape[1:]]))
        self.feeds[name] = (self.random.standard_normal(shape) * 2).astype(np.float32)
        self.values.append(Value(name, shape, True))

    def value(self, rank=None, exact=False, dtype=FLOAT):
        """One of the values so far, late ones more often, or None."""
        fitting = [v for v in self.values if v.dtype == dtype and (rank is None or len(v.shape) == rank) and (v.exact or not exact)]
        return self.pick(fitting[-4:] if self.random.random() < .7 else fitting) if fitting else None

    def weight(self, array):
        name = f'weight_{len(self.weights)}'
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=1.):
        return self.weight((self.random.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def node(self, operator, inputs, shape, exact=False, dtype=FLOAT, **attributes):
        name = f'{operator.lower()}_{len(self.nodes)}'
        self.nodes.append(helper.make_node(operator, inputs, [f'{name}_out'], name=name, **attributes))
        self.values.append(Value(f'{name}_out', tuple(int(n) for n in shape), exact, dtype))
        return self.values[-1]

    # Steps: each appends nodes, or does nothing where nothing fits.

    def smooth(self):
        x = self.value()
        self.node(self.pick(SMOOTH), [x.name], x.shape)

    def exact_unary(self):
        if x := self.value(exact=True):
            self.node(self.pick(EXACT), [x.name], x.shape, exact=True)

    def binary(self):
        x, operator = self.value(), self.pick(['Add', 'Sub', 'Mul', 'Max', 'Min'])
        partners = [v for v in self.values if v.dtype == FLOAT and v.shape == x.shape]
        kind = self.random.random()
        if kind < .5:
            other = self.pick(partners).name
        else:  # a weight that broadcasts
            shape = [n if self.random.random() < .6 else 1 for n in x.shape[1:]]
            if self.random.random() < .4:
                shape = shape[len(shape) // 2:]
            other = self.normal(*shape)
        pair = [x.name, other] if self.random.random() < .7 else [other, x.name]
        y = self.node(operator, pair, x.shape)
        if operator == 'Mul':
            self.node('Tanh', [y.name], y.shape)

    def divide(self):
        x = self.value()
        self.node('Div', [x.name, self.weight((self.random.uniform(.5, 2, x.shape[-1:]) * self.pick([1, -1])).astype(np.float32))], x.shape)

    def clip(self):
        x = self.value()
        self.node('Clip', [x.name, self.weight(np.float32(-.5)), self.weight(np.float32(1.25))], x.shape)

    def where(self):
        x, y = self.value(exact=True), None
        if x:
            condition = self.node(self.pick(['Greater', 'Less', 'GreaterOrEqual']), [x.name, self.weight(np.float32(.25))], x.shape, True, BOOL)
            y = self.pick([v for v in self.values if v.dtype == FLOAT and v.shape == x.shape])
            self.node('Where', [condition.name, y.name, self.weight(np.float32(-1.5))], x.shape)

    def matmul(self):
        x = self.value()
        if len(x.shape) >= 2:
            inner, columns = x.shape[-1], self.pick([1, 3, 7, 16, 24, 33, 64])
            y = self.node('MatMul', [x.name, self.normal(inner, columns, scale=inner**-.5)], (*x.shape[:-1], columns))
            if self.random.random() < .6:
                y = self.node('Add', [y.name, self.normal(columns)], y.shape)
            if self.random.random() < .5:
                self.node(self.pick(['Relu', 'Gelu', 'Tanh']), [y.name], y.shape)

    def gemm(self):
        if x := self.value(rank=2):
            inner, columns, transposed = x.shape[1], self.pick([1, 4, 10, 32]), int(self.random.integers(2))
            shape = (columns, inner) if transposed else (inner, columns)
            self.node('Gemm', [x.name, self.normal(*shape, scale=inner**-.5), self.normal(columns)], (x.shape[0], columns), transB=transposed,
                      alpha=self.pick([1., .5]), beta=self.pick([1., 2.]))

    def attention_like(self):
        """A product of two computed values."""
        if x := self.value(rank=3):
            k = self.node('Transpose', [x.name], (x.shape[0], x.shape[2], x.shape[1]), perm=[0, 2, 1])
            s = self.node('MatMul', [x.name, k.name], (x.shape[0], x.shape[1], x.shape[1]))
            s = self.node('Mul', [s.name, self.weight(np.float32(x.shape[2]**-.5))], s.shape)
            p = self.node('Softmax', [s.name], s.shape, axis=-1)
            self.node('MatMul', [p.name, x.name], x.shape)

    def conv(self):
        if x := self.value(rank=4):
            n, c, h, w = x.shape
            group = self.pick([1, 1, c])
            out = c * self.pick([1, 2]) if group == c and c > 1 else self.pick([1, 4, 8, 17])
            group = group if out % group == 0 else 1
            kernel, stride, dilation = self.pick([1, 2, 3, 5]), self.pick([1, 1, 2]), self.pick([1, 1, 2])
            pads = [int(self.random.integers(0, 3)) for _ in range(4)]
            size = [(length + pads[i] + pads[i + 2] - dilation * (kernel - 1) - 1) // stride + 1 for i, length in enumerate((h, w))]
            if min(size) < 1:
                return
            fan_in = c // group * kernel * kernel
            inputs = [x.name, self.normal(out, c // group, kernel, kernel, scale=fan_in**-.5)] + [self.normal(out)] * int(self.random.integers(2))
            y = self.node('Conv', inputs, (n, out, *size), kernel_shape=[kernel] * 2, strides=[stride] * 2, dilations=[dilation] * 2, pads=pads, group=group)
            if self.random.random() < .5:
                statistics = [self.weight(self.random.uniform(.5, 1.5, out).astype(np.float32)), self.normal(out), self.normal(out),
                              self.weight(self.random.uniform(.5, 1.5, out).astype(np.float32))]
                y = self.node('BatchNormalization', [y.name, *statistics], y.shape)
            if self.random.random() < .5:
                self.node(self.pick(['Relu', 'Sigmoid', 'HardSwish']), [y.name], y.shape)

    def pool(self):
        if x := self.value(rank=4):
            n, c, h, w = x.shape
            if self.random.random() < .3:
                self.node(self.pick(['GlobalAveragePool', 'GlobalMaxPool']), [x.name], (n, c, 1, 1))
                return
            kernel, stride = self.pick([2, 3]), self.pick([1, 2])
            pad = int(self.random.integers(0, 2))
            size = [(length + 2 * pad - kernel) // stride + 1 for length in (h, w)]
            if min(size) >= 1:
                operator = self.pick(['MaxPool', 'AveragePool'])
                extra = {'count_include_pad': int(self.random.integers(2))} if operator == 'AveragePool' else {}
                self.node(operator, [x.name], (n, c, *size), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **extra)

    def reduce(self):
        x = self.value()
        axes = [axis for axis in range(1, len(x.shape)) if self.random.random() < .6] or [len(x.shape) - 1]
        if len(x.shape) < 2:
            return
        keep = int(self.random.integers(2))
        shape = [1 if axis in axes else n for axis, n in enumerate(x.shape) if keep or axis not in axes]
        self.node(self.pick(['ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceL2']), [x.name, self.ints(*axes)], shape, keepdims=keep)

    def softmax(self):
        x = self.value()
        if len(x.shape) >= 2:
            self.node(self.pick(['Softmax', 'LogSoftmax']), [x.name], x.shape, axis=self.pick([-1, -1, 1]))

    def layer_norm(self):
        x = self.value()
        if len(x.shape) >= 2 and x.shape[-1] > 1:
            self.node('LayerNormalization', [x.name, self.normal(x.shape[-1]), self.normal(x.shape[-1])], x.shape, axis=-1, epsilon=1e-2)

    def layer_norm_spelt_out(self):
        x = self.value()
        if len(x.shape) >= 2 and x.shape[-1] > 1:
            small = (*x.shape[:-1], 1)
            axes = self.ints(-1)
            mean = self.node('ReduceMean', [x.name, axes], small)
            d = self.node('Sub', [x.name, mean.name], x.shape)
            v = self.node('ReduceMean', [self.node('Mul', [d.name, d.name], x.shape).name, axes], small)
            s = self.node('Sqrt', [self.node('Add', [v.name, self.weight(np.float32(1e-2))], small).name], small)
            y = self.node('Div', [d.name, s.name], x.shape)
            y = self.node('Mul', [y.name, self.normal(x.shape[-1])], x.shape)
            self.node('Add', [y.name, self.normal(x.shape[-1])], x.shape)

    def transpose(self):
        x = self.value()
        if len(x.shape) >= 2:
            rest = list(self.random.permutation(range(1, len(x.shape))))
            perm = [0, *map(int, rest)]  # the batch stays in front
            self.node('Transpose', [x.name], [x.shape[p] for p in perm], x.exact, perm=perm)

    def reshape(self):
        x = self.value()
        if len(x.shape) >= 2:
            rest = int(np.prod(x.shape[1:]))
            factors = [f for f in (1, 2, 3, 4, 8) if rest % f == 0]
            first = self.pick(factors)
            shape = self.pick([(rest,), (first, rest // first), (first, rest // first, 1)])
            self.node('Reshape', [x.name, self.ints(0 if self.dynamic else x.shape[0], *shape)], (x.shape[0], *shape), x.exact)

    def concat(self):
        x = self.value()
        axis = self.pick(range(1, len(x.shape))) if len(x.shape) >= 2 else None
        if axis is not None:
            same = [v for v in self.values if v.dtype == FLOAT and len(v.shape) == len(x.shape)
                    and all(a == b for k, (a, b) in enumerate(zip(v.shape, x.shape)) if k != axis)]
            parts = [x] + [self.pick(same) for _ in range(int(self.random.integers(1, 3)))]
            shape = list(x.shape)
            shape[axis] = sum(p.shape[axis] for p in parts)
            if shape[axis] <= 128:
                self.node('Concat', [p.name for p in parts], shape, all(p.exact for p in parts), axis=axis)

    def slice(self):
        x = self.value()
        axes = [axis for axis in range(1, len(x.shape)) if x.shape[axis] > 2]
        if axes:
            axis = self.pick(axes)
            start, step = int(self.random.integers(0, 2)), self.pick([1, 2])
            end = x.shape[axis] - int(self.random.integers(0, 1 + 1))
            shape = list(x.shape)
            if self.random.random() < .3:
                shape[axis] = len(range(x.shape[axis])[::-1])
                self.node('Slice', [x.name, self.ints(-1), self.ints(-2**31), self.ints(axis), self.ints(-1)], shape, x.exact)
            else:
                shape[axis] = len(range(start, end, step))
                self.node('Slice', [x.name, self.ints(start), self.ints(end), self.ints(axis), self.ints(step)], shape, x.exact)

    def gather(self):
        x = self.value()
        if len(x.shape) >= 2:
            axis = self.pick(range(1, len(x.shape)))
            indices = self.random.integers(-x.shape[axis], x.shape[axis], self.pick([(1,), (3,), (2, 2)]))
            self.node('Gather', [x.name, self.weight(indices.astype(np.int64))], (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]), x.exact,
                      axis=axis)

    def pad(self):
        x = self.value()
        if len(x.shape) >= 2:
            before, after = ([0, *(int(self.random.integers(0, 3)) for _ in x.shape[1:])] for _ in range(2))
            shape = [b + n + a for b, n, a in zip(before, x.shape, after)]
            self.node('Pad', [x.name, self.ints(*before, *after), self.weight(np.float32(self.pick([0, 1.5])))], shape, x.exact)

    def squeeze_unsqueeze(self):
        x = self.value()
        if 2 <= len(x.shape) <= 4:
            axis = self.pick(range(1, len(x.shape) + 1))
            y = self.node('Unsqueeze', [x.name, self.ints(axis)], (*x.shape[:axis], 1, *x.shape[axis:]), x.exact)
            if self.random.random() < .5:
                self.node('Squeeze', [y.name, self.ints(axis)], x.shape, x.exact)

    def integers(self):
        if x := self.value(exact=True):
            y = self.node('Cast', [x.name], x.shape, True, INT64, to=INT64)
            y = self.node(self.pick(['Add', 'Mul', 'Sub']), [y.name, self.weight(np.int64(3))], x.shape, True, INT64)
            self.node('Cast', [y.name], x.shape, True, to=FLOAT)

    def arg_max(self):
        if x := self.value(exact=True):
            if len(x.shape) >= 2:
                self.node('ArgMax', [x.name], (*x.shape[:-1], 1), True, INT64, axis=-1)

    # From a graph to a model.

    def model(self, count=None):
        """The model of the first `count` nodes. Its outputs are what no node reads."""
        nodes = self.nodes[:count]
        read = {name for node in nodes for name in node.input}
        made = {output for node in nodes for output in node.output}
        outputs = [helper.make_tensor_value_info(v.name, v.dtype, [None] * len(v.shape)) for v in self.values if v.name in made - read]
        inputs = [value for value in self.inputs if value.name in read]
        weights = [weight for weight in self.weights if weight.name in read]
        graph = helper.make_graph(nodes, 'random', inputs, outputs, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)], ir_version=10), [self.feeds[v.name] for v in inputs]


STEPS = [RandomGraph.smooth, RandomGraph.smooth, RandomGraph.exact_unary, RandomGraph.binary, RandomGraph.binary, RandomGraph.divide, RandomGraph.clip,
         RandomGraph.where, RandomGraph.matmul, RandomGraph.matmul, RandomGraph.gemm, RandomGraph.attention_like, RandomGraph.conv, RandomGraph.conv,
         RandomGraph.pool, RandomGraph.reduce, RandomGraph.softmax, RandomGraph.layer_norm, RandomGraph.layer_norm_spelt_out, RandomGraph.transpose,
         RandomGraph.reshape, RandomGraph.concat, RandomGraph.slice, RandomGraph.gather, RandomGraph.pad, RandomGraph.squeeze_unsqueeze,
         RandomGraph.integers, RandomGraph.arg_max]
