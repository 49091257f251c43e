"""Steps of random graphs: control flow with captured values, and the shape arithmetic that exporters write."""
import numpy as np
from onnx import helper

from graphs import BOOL, FLOAT, INT64, RandomGraph, Value
from steps import (binary, clip, concat, gather, layer_norm, matmul, pad, reduce, slice_, softmax, to_float, transpose, unary, where)

INNER = [unary, binary, binary, clip, concat, gather, layer_norm, matmul, pad, reduce, slice_, softmax, to_float, transpose, where]


def branch(g, steps):
    return RandomGraph(0, parent=g).grow(steps, 1, 4)


def if_(g):
    """Branches that yield values of one shape, one of them perhaps a value of outside."""
    x = g.value(exact=True, dtypes=(BOOL,), fits=lambda v: v.array.size == 1)
    if x is None:
        y = g.value(exact=True, fits=lambda v: v.array.size > 0)
        if y is None:
            return
        x = g.emit('Greater', [g.emit('ReduceMax', [y], keepdims=0, exact=True), g.weight(np.float32(g.pick([0, 3])))], exact=True)
    shared = g.value()
    if x is None or shared is None:
        return
    results = []
    graphs = []
    for _ in range(2):
        inner = branch(g, INNER)
        own = [v for v in inner.values if v.name not in {o.name for o in g.values}]
        same = [v for v in own + [shared] if v.dtype == shared.dtype and v.shape == shared.shape]
        second = inner.emit('ReduceSum', [inner.pick([v for v in inner.values if v.dtype == FLOAT] or [shared])], keepdims=0)
        if second is None:
            return
        results = [inner.pick(same), second]
        graphs.append(inner.subgraph(results))
    g.emit('If', [x], outputs=2, then_branch=graphs[0], else_branch=graphs[1])


def loop(g):
    """A counted loop: carries a value of constant shape, one that grows or not, and collects a scan output."""
    x = g.value(least=1, most=3)
    if x is None:
        return
    inner = RandomGraph(0, parent=g)
    state, grown = f'{inner.prefix}state', f'{inner.prefix}grown'

    carried = Value(state, x.array, x.exact, x.loose)
    inner.values.append(carried)
    inner.grow(INNER, 1, 4)
    same = [v for v in inner.values if v.dtype == FLOAT and v.shape == x.shape and v.name != state]
    following = inner.emit('Tanh', [inner.pick(same) if same else carried])
    if following is None:
        return
    grows = g.chance(.4)
    growing = Value(grown, x.array, x.exact, x.loose)
    longer = inner.emit('Concat', [growing, following], axis=0) if grows else inner.emit('Add', [growing, following])
    if longer is None:
        return
    scanned = inner.pick([v for v in inner.values if v.dtype == FLOAT and v.name in {o for n in inner.nodes for o in n.output} and v is not longer] or [following])
    condition = f'{inner.prefix}condition'
    inner.nodes.append(helper.make_node('Identity', [f'{inner.prefix}go'], [condition], name=condition))
    inputs = [helper.make_tensor_value_info(f'{inner.prefix}iteration', INT64, []), helper.make_tensor_value_info(f'{inner.prefix}go', BOOL, []),
              helper.make_tensor_value_info(state, FLOAT, None), helper.make_tensor_value_info(grown, FLOAT, None)]
    body = inner.subgraph([Value(condition, np.asarray(True), True), following, longer, scanned], inputs)
    trips = g.weight(np.int64(g.pick([1, 2, 3])))
    if made := g.emit('Loop', [trips, g.weight(np.asarray(True)), x, x], outputs=3, body=body):
        shape = (int(trips.array), *scanned.shape)
        if made[2].array.size == np.prod(shape):
            made[2].array = made[2].array.reshape(shape)  # the Python reference forgets the new axis


def scan(g):
    """A running sum over the first axis, beside an elementwise result of each slice."""
    x = g.value(least=2, most=3, fits=lambda v: v.shape[0] > 0)
    if x is None:
        return
    inner = RandomGraph(0, parent=g)

    state, row = (Value(f'{inner.prefix}{name}', x.array[0], x.exact, x.loose) for name in ('state', 'row'))
    total = inner.emit('Add', [inner.emit('Mul', [state, inner.weight(np.float32(.5))]), row])
    result = inner.emit(g.pick(['Tanh', 'Neg', 'Relu']), [g.pick([row, total])])
    if total is None or result is None:
        return
    inputs = [helper.make_tensor_value_info(v.name, FLOAT, None) for v in (state, row)]
    body = inner.subgraph([total, result], inputs)
    start = g.weight(np.zeros(x.shape[1:], np.float32))
    g.emit('Scan', [start, x], outputs=2, body=body, num_scan_inputs=1)


# Shape arithmetic. The last values of a chain are a tensor of data; what leads there are shapes.

def size(g, x, axis, keep=False):
    """One dimension of x as a tensor of shape [1] (or a scalar), as exporters write it."""
    if g.chance(.5):
        return g.emit('Shape', [x], start=axis, end=axis + 1, exact=True, keep=keep)
    index = g.weight(np.array(axis, np.int64)) if g.chance(.5) else g.ints(axis)
    d = g.emit('Gather', [g.emit('Shape', [x], exact=True, keep=keep), index], axis=0, exact=True, keep=keep)
    return g.emit('Unsqueeze', [d, g.ints(0)], exact=True, keep=keep) if d is not None and d.rank == 0 else d


def number(g, operator, a, b):
    return g.emit(operator, [a, g.ints(b)], exact=True, keep=False)


def merge_and_split_axes(g):
    """x.view(n, -1) and x.view(n, c, h * w)."""
    if x := g.value(least=2, most=4, fits=lambda v: v.array.size > 0):
        parts = [size(g, x, 0), g.ints(-1)]
        if x.rank >= 3 and g.chance(.5):
            parts = [size(g, x, axis) for axis in range(x.rank - 2)] + [g.emit('Mul', [size(g, x, x.rank - 2), size(g, x, x.rank - 1)], exact=True, keep=False)]
        g.emit('Reshape', [x, g.emit('Concat', parts, axis=0, exact=True, keep=False)], exact=True)


def halve(g):
    """x[..., : n // 2], the sizes by division, perhaps through real numbers."""
    if x := g.value(least=1, fits=lambda v: v.shape[0] > 0):
        n = size(g, x, 0)
        if g.chance(.5):
            half = number(g, 'Div', number(g, 'Add', n, 1), 2)
        else:
            f = g.emit('Mul', [g.emit('Cast', [n], to=FLOAT, exact=True, keep=False), g.weight(np.float32(g.pick([.5, .25])))], exact=True, keep=False)
            half = g.emit('Cast', [g.emit(g.pick(['Floor', 'Ceil']), [f], exact=True, keep=False)], to=INT64, exact=True, keep=False)
        a, b = g.ints(0), g.ints(2**63 - 1)
        g.emit('Slice', [x, a, half, g.ints(0)] if g.chance(.5) else [x, half, b, g.ints(0)], exact=True)


def expand_like(g):
    """x.expand(n, -1, -1): a -1 is replaced by 1 where it stands."""
    if x := g.value(least=1, most=3):
        other = g.value(least=1, fits=lambda v: v.shape[0] > 0) or x
        wanted = g.emit('Concat', [size(g, other, 0), g.ints(*[-1] * x.rank)], axis=0, exact=True, keep=False)
        ones = g.emit('ConstantOfShape', [g.ints(x.rank + 1)], value=helper.make_tensor('value', INT64, [1], [1]), exact=True, keep=False)
        is_kept = g.emit('Equal', [wanted, g.emit('Mul', [ones, g.ints(-1)], exact=True, keep=False)], exact=True, keep=False)
        g.emit('Expand', [x, g.emit('Where', [is_kept, ones, wanted], exact=True, keep=False)], exact=True)


def positions(g):
    """arange(n) in front of something that it is added to."""
    if x := g.value(least=1, most=3, fits=lambda v: v.shape[-1] > 0):
        n = g.emit('Squeeze', [size(g, x, x.rank - 1), g.ints(0)], exact=True, keep=False)
        r = g.emit('Range', [g.weight(np.int64(0)), n, g.weight(np.int64(1))], exact=True)
        if r:
            f = g.emit('Mul', [g.emit('Cast', [r], to=FLOAT, exact=True), g.weight(np.float32(.0625))])
            g.emit('Add', [x, f])


def causal_mask(g):
    """Range, compare, Where: a triangular mask of the size of the data."""
    if x := g.value(least=2, most=3, fits=lambda v: v.shape[-1] > 0 and v.shape[-2] > 0):
        ranges = []
        for axis in (x.rank - 2, x.rank - 1):
            n = g.emit('Squeeze', [size(g, x, axis), g.ints(0)], exact=True, keep=False)
            ranges.append(g.emit('Range', [g.weight(np.int64(0)), n, g.weight(np.int64(1))], exact=True, keep=False))
        if all(ranges):
            mask = g.emit('Less', [g.emit('Unsqueeze', [ranges[0], g.ints(1)], exact=True, keep=False), g.emit('Unsqueeze', [ranges[1], g.ints(0)], exact=True, keep=False)],
                          exact=True)
            g.emit('Where', [mask, g.weight(np.float32(-5)), x], exact=True)


def zeros_like(g):
    if x := g.value(least=1, most=3):
        filled = g.emit('ConstantOfShape', [g.emit('Shape', [x], exact=True, keep=False)], value=helper.make_tensor('value', FLOAT, [1], [.5]), exact=True)
        g.emit('Add', [x, filled])


def chunks(g):
    """Sizes of both halves given to Split. Neither is 0: a symbolic 0 that meets a symbolic 1 broadcasts to 1 (Inference.cpp, broadcast)."""
    if x := g.value(least=1, fits=lambda v: v.shape[0] >= 2):
        n = size(g, x, 0)
        half = number(g, 'Div', n, 2)
        g.emit('Split', [x, g.emit('Concat', [half, g.emit('Sub', [n, half], exact=True, keep=False)], axis=0, exact=True, keep=False)], outputs=2, axis=0, exact=True)


def pad_to_multiple(g):
    """F.pad(x, (0, (4 - n % 4) % 4)), the pads through a matrix of pairs."""
    if x := g.value(rank=2, fits=lambda v: v.shape[1] > 0):
        rest = number(g, 'Mod', g.emit('Sub', [g.ints(4), number(g, 'Mod', size(g, x, 1), 4)], exact=True, keep=False), 4)
        listed = g.emit('Concat', [g.ints(0), rest, g.ints(0, 0)], axis=0, exact=True, keep=False)
        rows = g.emit('Reshape', [listed, g.ints(-1, 2)], exact=True, keep=False)
        turned = g.emit('Transpose', [g.emit('Slice', [rows, g.ints(-1), g.ints(-2**63 + 1), g.ints(0), g.ints(-1)], exact=True, keep=False)], perm=[1, 0], exact=True,
                        keep=False)
        g.emit('Pad', [x, g.emit('Reshape', [turned, g.ints(-1)], exact=True, keep=False)], exact=True)


def resize_like(g):
    """Sizes that are twice those of the data."""
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0):
        sizes = g.emit('Concat', [g.emit('Shape', [x], start=0, end=2, exact=True, keep=False), number(g, 'Mul', g.emit('Shape', [x], start=2, exact=True, keep=False), 2)],
                       axis=0, exact=True, keep=False)
        nothing = g.weight(np.zeros(0, np.float32))
        g.emit('Resize', [x, nothing, nothing, sizes], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')


STEPS = [if_, if_, loop, loop, scan, merge_and_split_axes, merge_and_split_axes, halve, expand_like, positions, causal_mask, zeros_like, chunks, pad_to_multiple,
         resize_like]
