"""Random graphs of ONNX operators, well-typed by construction, with values that stay of moderate size.

Each node is evaluated by ONNX's Python reference as it is appended: that tells its shape, type and range, and nodes that fail or leave
the range are dropped. Operators that jump (Floor, comparisons, ArgMax, casts to integers) read exact values only: graph inputs, or what
exact operators made of them. Elsewhere the rounding that compilers may legally change would flip their results.
"""
import dataclasses
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 23
FLOAT, DOUBLE, HALF, BFLOAT = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16
INT64, INT32, INT16, INT8 = TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8
UINT64, UINT32, UINT16, UINT8, BOOL = TensorProto.UINT64, TensorProto.UINT32, TensorProto.UINT16, TensorProto.UINT8, TensorProto.BOOL
FLOATS = (FLOAT, DOUBLE, HALF)
SIGNED, UNSIGNED = (INT64, INT32, INT16, INT8), (UINT64, UINT32, UINT16, UINT8)
LARGEST, MOST_ELEMENTS = 200., 20000


@dataclasses.dataclass
class Value:
    name: str
    array: np.ndarray
    exact: bool  # no rounding of floats has happened on the way here
    loose: bool = False  # it passed through a type of few digits

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def dtype(self):
        return helper.np_dtype_to_tensor_dtype(self.array.dtype)


class RandomGraph:
    """A graph of the given seed. dynamic: dimensions of the inputs are symbols, or unnamed."""

    def __init__(self, seed, dynamic=False, parent=None):
        self.random = np.random.default_rng(seed)
        self.dynamic = dynamic
        self.prefix = f'{parent.prefix}{len(parent.nodes)}_' if parent else ''
        self.values, self.nodes, self.weights, self.inputs, self.feeds = [], [], [], [], {}
        self.symbols = {}
        if parent:  # a branch or body sees what is outside
            self.random = parent.random
            self.values = [dataclasses.replace(value) for value in parent.values[-6:]]
            self.outer = {value.name for value in parent.values} | getattr(parent, 'outer', set())
            return
        self.outer = set()
        sizes = {'n': self.integer(1, 4), 'm': self.integer(1, 9), 'k': self.pick([1, 3, 8, 17])}
        for i in range(self.pick([1, 1, 2, 3])):
            self.add_input(f'input_{i}', sizes)

    def grow(self, steps, least=3, most=12):
        """Appends what some of `steps` make; each is a function of the graph that appends nodes, or does nothing where nothing fits."""
        for _ in range(self.integer(least, most)):
            self.pick(steps)(self)
        return self

    # Choices.

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def integer(self, low, high):
        """One of low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def chance(self, probability):
        return self.random.random() < probability

    def value(self, rank=None, exact=False, dtypes=(FLOAT,), least=0, most=99, fits=None):
        """One of the values so far, late ones more often, or None."""
        fitting = [v for v in self.values if v.dtype in dtypes and (rank is None or v.rank == rank) and least <= v.rank <= most
                   and (v.exact or not exact) and (fits is None or fits(v))]
        return self.pick(fitting[-4:] if self.chance(.7) else fitting) if fitting else None

    # Inputs and constants.

    def add_input(self, name, sizes):
        dtype = self.pick([FLOAT] * 12 + [INT64, INT32, DOUBLE, HALF, UINT8, INT8, BOOL])
        rank = self.pick([1, 2, 2, 3, 3, 4, 4, 4]) if dtype == FLOAT else self.pick([0, 1, 2, 3])
        if rank == 4:
            shape = [sizes['n'], self.pick([1, 3, 4, 8]), self.pick([5, 7, 8]), self.pick([5, 8, 9])]
        else:
            shape = [self.pick([sizes['n'], sizes['m'], sizes['k'], 1, 2, 5, 16, 33]) for _ in range(rank)]
        declared = list(shape)
        if self.dynamic:
            for axis, size in enumerate(shape):
                named = [symbol for symbol, value in sizes.items() if value == size]
                kind = self.random.random()
                if kind < .5 and named:
                    declared[axis] = self.pick(named)
                elif kind < .6:
                    declared[axis] = None
                elif kind < .7:
                    declared[axis] = f'{name}_{axis}'
        self.inputs.append(helper.make_tensor_value_info(name, dtype, declared))
        self.feeds[name] = self.array(dtype, shape)
        self.values.append(Value(name, self.feeds[name], True, dtype == HALF))

    def array(self, dtype, shape, scale=2.):
        numpy_type = helper.tensor_dtype_to_np_dtype(dtype)
        if dtype == BOOL:
            return self.random.random(shape) < .5
        if dtype in FLOATS:
            return np.asarray(self.random.standard_normal(shape) * scale).astype(numpy_type)
        return self.random.integers(0 if dtype in UNSIGNED else -9, 10, shape).astype(numpy_type)

    def weight(self, array):
        name = f'{self.prefix}weight_{len(self.weights)}'
        array = np.asarray(array)
        self.weights.append(numpy_helper.from_array(array, name))
        return Value(name, array, True)

    def normal(self, *shape, scale=1., dtype=FLOAT):
        return self.weight(self.array(dtype, shape, scale))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    # Nodes.

    def emit(self, operator, inputs, outputs=1, exact=False, keep=True, **attributes):
        """Appends a node if it can be evaluated and its results are of moderate size. Returns its value, a list of several, or None.

        exact: the operator rounds nothing. Results are taken for exact if the inputs are too. keep: later steps may use them."""
        if any(value is None for value in inputs):
            return None
        return self.append(operator, [value or Value('', np.zeros(0), True) for value in inputs], outputs, exact, keep, attributes)

    def append(self, operator, inputs, outputs, exact, keep, attributes):
        name = f'{self.prefix}{operator.lower()}_{len(self.nodes)}'
        node = helper.make_node(operator, [v.name for v in inputs], [f'{name}_{i}' for i in range(outputs)], name=name, **attributes)
        try:
            with warnings.catch_warnings(), np.errstate(all='ignore'):
                warnings.simplefilter('ignore')
                captured = {v.name: v.array for v in self.values if v.name in reads(node)}
                feeds = {**captured, **{v.name: v.array for v in inputs if v.name}}
                arrays = ReferenceEvaluator(node, opsets={'': OPSET}).run(None, feeds)
        except Exception:  # pylint: disable=broad-except  # this form is not for these inputs
            return None
        arrays = [np.asarray(array) for array in arrays[:outputs]]
        if operator.startswith('Reduce'):  # the reference gives some sums of 32-bit integers as 64-bit ones, the specification does not
            arrays = [array.astype(inputs[0].array.dtype) for array in arrays]
        if len(arrays) < outputs or any(array.dtype == object or not self.is_moderate(array) for array in arrays):
            return None
        self.nodes.append(node)
        seen = [v for v in inputs if v.name] + [v for v in self.values if v.name in reads(node)]
        exact = all(v.exact for v in seen) and (exact or all(a.dtype.kind in 'iub' and operator in INTEGER_EXACT for a in arrays))
        loose = any(v.loose for v in seen) or any(array.dtype in (np.float16,) for array in arrays)
        made = [Value(output, array, exact, loose) for output, array in zip(node.output, arrays)]
        if keep:
            self.values += made
        return made[0] if outputs == 1 else made

    @staticmethod
    def is_moderate(array):
        if array.size > MOST_ELEMENTS or array.ndim > 6:
            return False
        return array.dtype.kind not in 'fiu' or array.size == 0 or bool(np.all(np.isfinite(array)) and np.abs(array.astype(np.float64)).max() <= LARGEST)

    # From a graph to a model.

    def outputs(self, count=None):
        """What no node reads, of the first `count` nodes."""
        nodes = self.nodes[:count]
        read = {name for node in nodes for name in reads(node)}
        made = {output for node in nodes for output in node.output}
        return [value for value in self.values if value.name in made - read]

    def subgraph(self, results, inputs=()):
        """A body for If, Loop or Scan that yields these values."""
        made = [name for node in self.nodes for name in node.output]
        outputs, nodes = [], list(self.nodes)
        for i, value in enumerate(results):
            name = value.name
            if name not in made or name in [o.name for o in outputs]:  # of outside, or twice
                name = f'{self.prefix}result_{i}'
                nodes.append(helper.make_node('Identity', [value.name], [name], name=name))
            outputs.append(helper.make_tensor_value_info(name, value.dtype, None))
        return helper.make_graph(nodes, f'{self.prefix}body', list(inputs), outputs, self.weights)

    def model(self, count=None):
        """The model of the first `count` nodes, its feeds, and for each output whether it is loose."""
        nodes = self.nodes[:count]
        chosen = self.outputs(count)
        extra = np.random.default_rng(len(self.nodes))
        if count is None and extra.random() < .3:  # outputs that are read inside, inputs, constants or twice there
            known = [v for v in self.values if v.name not in {value.name for value in chosen}]
            chosen += [known[int(extra.integers(len(known)))]] if known else []
        outputs = [helper.make_tensor_value_info(v.name, v.dtype, None) for v in chosen]
        read = {name for node in nodes for name in reads(node)} | {v.name for v in chosen}
        inputs = [value for value in self.inputs if value.name in read]
        weights = [weight for weight in self.weights if weight.name in read]
        if not chosen:
            return None
        graph = helper.make_graph(nodes, 'random', inputs, outputs, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', OPSET)], ir_version=10)
        return model, [self.feeds[v.name] for v in inputs], [v.loose for v in chosen]


INTEGER_EXACT = {'Add', 'Sub', 'Mul', 'Max', 'Min', 'Neg', 'Abs', 'Sign', 'Clip', 'Mod', 'Div', 'Sum', 'BitShift', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor',
                 'BitwiseNot', 'And', 'Or', 'Xor', 'Not', 'ReduceSum', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceSumSquare', 'ReduceL1', 'CumSum',
                 'MatMulInteger', 'ConvInteger', 'MatMul', 'Gemm', 'Equal', 'Less', 'Greater', 'LessOrEqual', 'GreaterOrEqual', 'IsNaN', 'IsInf',
                 'ArgMax', 'ArgMin', 'TopK', 'NonZero', 'QuantizeLinear', 'DynamicQuantizeLinear', 'Unique', 'OneHot', 'Pow', 'Einsum'}


def reads(node):
    """The names that a node reads, inside of its subgraphs too."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField('g'):
            made = {output for inner in attribute.g.node for output in inner.output}
            names |= {name for inner in attribute.g.node for name in reads(inner)} - made
            names |= {output.name for output in attribute.g.output} - made
    return names
