"""Steps of random graphs: each appends the nodes of one kind of operator, or nothing where no value fits."""
import numpy as np

from graphs import (BOOL, DOUBLE, FLOAT, FLOATS, HALF, INT8, INT16, INT32, INT64, SIGNED, UINT8, UINT16, UINT32, UINT64, UNSIGNED)

SMOOTH = ['Tanh', 'Sigmoid', 'Relu', 'LeakyRelu', 'Elu', 'Selu', 'Celu', 'Erf', 'Softplus', 'Softsign', 'HardSigmoid', 'HardSwish', 'Neg', 'Abs', 'Sin', 'Cos',
          'Atan', 'Asinh', 'Gelu', 'Mish', 'ThresholdedRelu', 'Sinh', 'Cosh', 'Exp']
EXACT = ['Neg', 'Abs', 'Relu', 'Identity', 'Floor', 'Ceil', 'Round', 'Sign']
ANY = (*FLOATS, *SIGNED, *UNSIGNED, BOOL)
NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)


def axis_of(g, x):
    """An axis, counted from either end."""
    axis = g.integer(0, x.rank - 1)
    return axis - x.rank if g.chance(.3) else axis


def partner(g, x, exact=False):
    """A value of x's type that broadcasts with it: another value, or a constant."""
    def fits(v):
        try:
            return len(np.broadcast_shapes(v.shape, x.shape)) <= 5
        except ValueError:
            return False
    other = g.value(dtypes=(x.dtype,), exact=exact, fits=fits)
    if other and g.chance(.6):
        return other
    shape = [n if g.chance(.6) else 1 for n in x.shape][g.integer(0, x.rank):]
    return g.weight(g.array(x.dtype, shape))


def unary(g):
    x = g.value(dtypes=(FLOAT,) * 6 + (DOUBLE, HALF))
    attributes = {}
    operator = g.pick(SMOOTH)
    if operator in ('LeakyRelu', 'Elu', 'Celu', 'ThresholdedRelu') and g.chance(.5):
        attributes['alpha'] = g.pick([.3, 1., 1.5])
    if operator == 'ThresholdedRelu':
        return
    if operator == 'Gelu':
        attributes['approximate'] = g.pick(['none', 'tanh'])
    g.emit(operator, [x], **attributes)


def positive_unary(g):
    """Operators whose domain is bounded, behind something that stays inside of it."""
    if x := g.value(dtypes=(FLOAT, FLOAT, DOUBLE)):
        dtype = x.dtype
        y = g.emit('Add', [g.emit('Abs', [x]), g.weight(g.array(dtype, (), 0) + np.asarray(.5, x.array.dtype))])
        operator = g.pick(['Sqrt', 'Log', 'Reciprocal', 'Acosh', 'Pow'])
        if operator == 'Acosh':
            y = g.emit('Add', [y, g.weight(np.asarray(1, x.array.dtype))])
        g.emit(operator, [y, g.weight(np.asarray(g.pick([.5, 2, -1, 3]), x.array.dtype))] if operator == 'Pow' else [y])


def bounded_unary(g):
    if x := g.value():
        g.emit(g.pick(['Asin', 'Acos', 'Atanh']), [g.emit('Mul', [g.emit('Tanh', [x]), g.weight(np.float32(.8))])])


def exact_unary(g):
    x = g.value(exact=True, dtypes=FLOATS)
    g.emit(g.pick(EXACT), [x], exact=True)


def integer_unary(g):
    x = g.value(dtypes=(*SIGNED, BOOL, *UNSIGNED))
    if x:
        g.emit('Not' if x.dtype == BOOL else g.pick(['BitwiseNot'] + (['Neg', 'Abs', 'Sign'] if x.dtype in SIGNED else [])), [x], exact=True)


def binary(g):
    x = g.value(dtypes=(FLOAT,) * 8 + NUMBERS)
    if not x:
        return
    operator = g.pick(['Add', 'Sub', 'Mul', 'Max', 'Min', 'Add', 'Mul'])
    other = partner(g, x)
    g.emit(operator, [x, other] if g.chance(.7) else [other, x], exact=operator in ('Max', 'Min'))


def divide(g):
    if x := g.value(dtypes=(FLOAT, FLOAT, DOUBLE)):
        below = g.emit('Add', [g.emit('Abs', [partner(g, x)]), g.weight(np.asarray(.5, x.array.dtype))])
        g.emit('Div', [x, below])


def integer_binary(g):
    x = g.value(dtypes=(*SIGNED, *UNSIGNED))
    if not x:
        return
    operator = g.pick(['Div', 'Mod', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'BitShift', 'Pow'])
    if operator == 'BitShift' and x.dtype not in UNSIGNED:
        return
    if operator in ('Div', 'Mod', 'BitShift', 'Pow'):
        numbers = g.random.integers(1, 4, [n if g.chance(.5) else 1 for n in x.shape]).astype(x.array.dtype)
        if operator == 'Div' and (x.array < 0).any():
            return  # the Python reference floors
        other = g.weight(numbers)
    else:
        other = partner(g, x)
    attributes = {'direction': g.pick(['LEFT', 'RIGHT'])} if operator == 'BitShift' else {}
    if operator == 'Mod' and g.chance(.3):
        attributes['fmod'] = 1
    g.emit(operator, [x, other], **attributes)


def logic(g):
    if x := g.value(dtypes=(BOOL,)):
        g.emit(g.pick(['And', 'Or', 'Xor', 'Equal']), [x, partner(g, x)], exact=True)


def compare(g):
    if x := g.value(exact=True, dtypes=(FLOAT, FLOAT, DOUBLE, *SIGNED, UINT8)):
        g.emit(g.pick(['Equal', 'Less', 'Greater', 'LessOrEqual', 'GreaterOrEqual']), [x, partner(g, x, exact=True)], exact=True)


def nan_test(g):
    if x := g.value():
        g.emit(g.pick(['IsNaN', 'IsInf']), [x], exact=True)


def where(g):
    if x := g.value(dtypes=ANY):
        condition = g.value(dtypes=(BOOL,), most=4)
        other = partner(g, x)
        if not condition or g.chance(.3):
            condition = g.weight(g.random.random([n if g.chance(.7) else 1 for n in x.shape]) < .5)
        g.emit('Where', [condition, x, other] if g.chance(.5) else [condition, other, x], exact=True)


def clip(g):
    if x := g.value(dtypes=(FLOAT, FLOAT, DOUBLE, INT32, INT64, INT8)):
        low = g.weight(np.asarray(-1, x.array.dtype))
        high = g.weight(np.asarray(g.pick([1, 6]), x.array.dtype))
        g.emit('Clip', g.pick([[x, low, high], [x, low]]), exact=True)


def cast(g):
    if x := g.value(exact=True, dtypes=ANY):
        to = g.pick(ANY)
        if to in UNSIGNED and (x.array < 0).any() or to == HALF and g.chance(.7):
            return
        g.emit('Cast', [x], to=to, exact=to not in (HALF,))
    elif x := g.value():
        g.emit('Cast', [x], to=DOUBLE)


def to_float(g):
    """Back to what most steps work on."""
    if x := g.value(dtypes=(*SIGNED, *UNSIGNED, BOOL, DOUBLE, HALF)):
        g.emit('Cast', [x], to=FLOAT, exact=x.dtype != DOUBLE)


def variadic(g):
    if x := g.value(dtypes=(FLOAT, FLOAT, DOUBLE)):
        g.emit(g.pick(['Sum', 'Mean', 'Max', 'Min']), [x] + [partner(g, x) for _ in range(g.integer(0, 3))])


def matmul(g):
    if x := g.value(least=1, most=4, dtypes=(FLOAT,) * 5 + (DOUBLE,)):
        k, n = x.shape[-1], g.pick([1, 2, 8, 17, 33])
        if x.shape[-1] > 0:
            shape = g.pick([(k, n), (k, n), (k,), (*x.shape[:-2], k, n) if x.rank > 2 else (k, n), (2, k, n) if x.rank < 3 else (1, k, n)])
            g.emit('MatMul', [x, g.normal(*shape, scale=max(k, 1)**-.5, dtype=x.dtype)])


def product_of_values(g):
    if x := g.value(least=2, most=4):
        y = g.emit('Transpose', [x], perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
        s = g.emit('MatMul', [x, y] if g.chance(.5) else [y, x])
        if s:
            s = g.emit('Mul', [s, g.weight(np.float32(max(x.shape[-1], 1)**-.5))])
            if p := g.emit('Softmax', [s], axis=-1):
                if p.shape[-1] == x.shape[-2]:
                    g.emit('MatMul', [p, x])


def gemm(g):
    if x := g.value(rank=2, dtypes=(FLOAT, FLOAT, DOUBLE)):
        trans_a, trans_b = g.integer(0, 1), g.integer(0, 1)
        k, n = x.shape[0 if trans_a else 1], g.pick([1, 3, 16, 17])
        b = g.normal(*((n, k) if trans_b else (k, n)), scale=max(k, 1)**-.5, dtype=x.dtype)
        m = x.shape[1 if trans_a else 0]
        c = [g.normal(*g.pick([(n,), (1, n), (m, 1), (m, n), ()]), dtype=x.dtype)] if g.chance(.6) else []
        g.emit('Gemm', [x, b, *c], transA=trans_a, transB=trans_b, alpha=g.pick([1., .5]), beta=g.pick([1., 2.]))


def einsum(g):
    equations = {2: ['ij->ji', 'ij,jk->ik', 'ij->i', 'ij,ij->ij', 'ij->', 'ij,kj->ik'], 3: ['bij->bji', 'bij,bjk->bik', 'bij,jk->bik', '...ij->...ji', 'bij->bj'],
                 4: ['bhij,bhjk->bhik', 'bhij->bihj']}
    if x := g.value(least=2, most=4):
        equation = g.pick(equations[x.rank])
        terms = equation.split('->')[0].split(',')
        if len(terms) == 1:
            g.emit('Einsum', [x], equation=equation)
        else:
            sizes = dict(zip(terms[0], x.shape))
            g.emit('Einsum', [x, g.normal(*(sizes.get(letter, 5) for letter in terms[1]), scale=.3)], equation=equation)


def integer_product(g):
    if x := g.value(least=2, most=3, dtypes=(UINT8, INT8)):
        w = g.weight(g.random.integers(-3, 4, (x.shape[-1], 4)).astype(np.int8))
        zero = g.weight(np.asarray(g.integer(0, 3), x.array.dtype))
        g.emit('MatMulInteger', g.pick([[x, w], [x, w, zero]]), exact=True)


def conv(g):
    if x := g.value(least=3, most=5, fits=lambda v: v.shape[1] > 0 and min(v.shape[2:], default=0) > 0):
        spatial = x.rank - 2
        c = x.shape[1]
        group = g.pick([1, 1, c])
        out = c * g.pick([1, 2]) if group == c and c > 1 else g.pick([1, 4, 8, 17])
        group = group if out % group == 0 else 1
        kernel = [g.pick([1, 2, 3]) for _ in range(spatial)]
        attributes = {'strides': [g.pick([1, 1, 2]) for _ in range(spatial)], 'dilations': [g.pick([1, 1, 2]) for _ in range(spatial)], 'group': group}
        if g.chance(.2) and set(attributes['dilations']) == {1}:
            attributes['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID'])
        else:
            attributes['pads'] = [g.integer(0, 2) for _ in range(2 * spatial)]
        pads = attributes.get('pads', [0] * 2 * spatial)
        if any(n + pads[i] + pads[i + spatial] < d * (k - 1) + 1 for i, (n, k, d) in enumerate(zip(x.shape[2:], kernel, attributes['dilations']))):
            return  # the Python reference makes something of it
        fan_in = c // group * int(np.prod(kernel))
        y = g.emit('Conv', [x, g.normal(out, c // group, *kernel, scale=fan_in**-.5), *([g.normal(out)] if g.chance(.5) else [])], kernel_shape=kernel, **attributes)
        if y and g.chance(.4):
            y = g.emit('BatchNormalization', [y, *(g.weight(g.random.uniform(.5, 1.5, out).astype(np.float32)) for _ in range(2)), g.normal(out),
                                              g.weight(g.random.uniform(.5, 1.5, out).astype(np.float32))])
        if y and g.chance(.4):
            g.emit(g.pick(['Relu', 'Sigmoid', 'HardSwish']), [y])


def conv_transpose(g):
    if x := g.value(least=3, most=4, fits=lambda v: v.shape[1] > 0 and min(v.shape[2:], default=0) > 0):
        spatial = x.rank - 2
        kernel = [g.pick([1, 2, 3]) for _ in range(spatial)]
        g.emit('ConvTranspose', [x, g.normal(x.shape[1], g.pick([1, 3, 8]), *kernel, scale=.3)], kernel_shape=kernel,
               strides=[g.pick([1, 2]) for _ in range(spatial)], pads=[g.integer(0, 1) for _ in range(2 * spatial)])


def pool(g):
    if x := g.value(least=3, most=5, fits=lambda v: min(v.shape[1:], default=0) > 0):
        spatial = x.rank - 2
        if g.chance(.3):
            # The Python reference takes the maximum over other axes where the rank is not 4.
            g.emit(g.pick(['GlobalAveragePool', 'GlobalMaxPool']) if x.rank == 4 else 'GlobalAveragePool', [x])
            return
        kernel, pad = [g.pick([2, 3]) for _ in range(spatial)], g.integer(0, 1)
        operator = g.pick(['MaxPool', 'AveragePool', 'LpPool'])
        attributes = {'strides': [g.pick([1, 2]) for _ in range(spatial)], 'pads': [pad] * 2 * spatial}
        if operator == 'AveragePool':
            attributes['count_include_pad'] = g.integer(0, 1)
        if any(n + 2 * pad < k for n, k in zip(x.shape[2:], kernel)):
            return
        g.emit(operator, [x], kernel_shape=kernel, exact=operator == 'MaxPool', **attributes)


def reduce(g):
    if x := g.value(dtypes=(FLOAT,) * 5 + (DOUBLE, INT32, INT64)):
        operator = g.pick(['ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceSum', 'ReduceL1', 'ReduceL2', 'ReduceSumSquare', 'ReduceLogSumExp', 'ReduceProd'])
        if x.array.dtype.kind == 'i' and operator in ('ReduceMean', 'ReduceL2', 'ReduceLogSumExp'):
            return
        axes = [axis for axis in range(x.rank) if g.chance(.5)]
        if any(x.shape[axis] == 0 for axis in axes or range(x.rank)):
            return
        axes = [axis - x.rank if g.chance(.3) else axis for axis in axes]
        g.emit(operator, [x, g.ints(*axes)] if axes else [x], keepdims=g.integer(0, 1), exact=operator in ('ReduceMax', 'ReduceMin'))


def arg_reduce(g):
    if x := g.value(exact=True, least=1, dtypes=(FLOAT, FLOAT, INT32), fits=lambda v: v.array.size > 0):
        g.emit(g.pick(['ArgMax', 'ArgMin']), [x], axis=axis_of(g, x), keepdims=g.integer(0, 1), select_last_index=g.integer(0, 1), exact=True)


def softmax(g):
    if x := g.value(least=1, dtypes=(FLOAT, FLOAT, FLOAT, DOUBLE)):
        g.emit(g.pick(['Softmax', 'LogSoftmax']), [x], axis=axis_of(g, x))


def hardmax(g):
    if x := g.value(least=1, exact=True):
        g.emit('Hardmax', [x], axis=axis_of(g, x), exact=True)


def layer_norm(g):
    if x := g.value(least=1, fits=lambda v: v.shape[-1] > 1):
        axis = g.integer(0, x.rank - 1)
        shape = x.shape[axis:]
        kind = g.pick(['LayerNormalization', 'LayerNormalization', 'RMSNormalization'])
        inputs = [x, g.normal(*shape)] + ([g.normal(*shape)] if kind == 'LayerNormalization' and g.chance(.7) else [])
        g.emit(kind, inputs, axis=axis if g.chance(.5) else axis - x.rank, epsilon=1e-2)


def layer_norm_spelt_out(g):
    x = g.value(least=2, fits=lambda v: v.shape[-1] > 1)
    if x:
        axes = g.ints(-1)
        d = g.emit('Sub', [x, g.emit('ReduceMean', [x, axes])])
        v = g.emit('ReduceMean', [g.emit('Mul', [d, d]), axes])
        y = g.emit('Div', [d, g.emit('Sqrt', [g.emit('Add', [v, g.weight(np.float32(1e-2))])])])
        g.emit('Add', [g.emit('Mul', [y, g.normal(x.shape[-1])]), g.normal(x.shape[-1])])


def channel_norm(g):
    if x := g.value(least=3, fits=lambda v: v.shape[1] > 0 and int(np.prod(v.shape[2:])) > 1):
        c = x.shape[1]
        kind = g.pick(['InstanceNormalization', 'GroupNormalization', 'LRN', 'MeanVarianceNormalization', 'LpNormalization'])
        if kind == 'InstanceNormalization':
            g.emit(kind, [x, g.normal(c), g.normal(c)], epsilon=1e-2)
        elif kind == 'GroupNormalization':
            g.emit(kind, [x, g.normal(c), g.normal(c)], epsilon=1e-2, num_groups=g.pick([n for n in (1, 2, 4, c) if c % n == 0]))
        elif kind == 'LRN':
            g.emit(kind, [x], size=g.pick([1, 3, 5]))
        elif kind == 'LpNormalization':
            g.emit(kind, [g.emit('Add', [x, g.weight(np.float32(3.3))])], axis=axis_of(g, x), p=g.pick([1, 2]))
        elif x.rank == 4:
            g.emit(kind, [g.emit('Add', [x, g.emit('Mul', [x, x])])])


def transpose(g):
    if x := g.value(least=1, dtypes=ANY):
        attributes = {'perm': [int(p) for p in g.random.permutation(x.rank)]} if g.chance(.8) else {}
        g.emit('Transpose', [x], exact=True, **attributes)


def reshape(g):
    if x := g.value(dtypes=ANY, fits=lambda v: v.array.size > 0):
        total = x.array.size
        first = g.pick([f for f in (1, 2, 3, 4, 5, 8) if total % f == 0])
        shapes = [(-1,), (first, -1), (first, total // first), (1, first, -1), (*x.shape[:1], -1), (0, -1) if x.rank else (-1,), (*x.shape, 1)]
        g.emit('Reshape', [x, g.ints(*g.pick(shapes))], exact=True)


def flatten(g):
    if x := g.value(least=1, dtypes=ANY):
        g.emit('Flatten', [x], axis=g.integer(-x.rank, x.rank), exact=True)


def concat(g):
    if x := g.value(least=1, dtypes=ANY):
        axis = g.integer(0, x.rank - 1)
        same = [v for v in g.values if v.dtype == x.dtype and v.rank == x.rank and all(a == b for k, (a, b) in enumerate(zip(v.shape, x.shape)) if k != axis)]
        parts = [x] + [g.pick(same) for _ in range(g.integer(0, 3))]
        if g.chance(.3):
            shape = list(x.shape)
            shape[axis] = g.integer(0, 3)
            parts.append(g.weight(g.array(x.dtype, shape)))
        g.emit('Concat', parts, axis=axis if g.chance(.7) else axis - x.rank, exact=True)


def split(g):
    if x := g.value(least=1, dtypes=ANY, fits=lambda v: max(v.shape) >= 2):
        axis = int(np.argmax(x.shape))
        size = x.shape[axis]
        if g.chance(.5):
            first = g.integer(0, size)
            g.emit('Split', [x, g.ints(first, size - first)], outputs=2, axis=axis, exact=True)
        else:
            parts = g.integer(2, min(3, size))
            if size - -(-size // parts) * (parts - 1) > 0:
                g.emit('Split', [x], outputs=parts, axis=axis, num_outputs=parts, exact=True)


def slice_(g):
    if x := g.value(least=1, dtypes=ANY):
        axes = [axis for axis in range(x.rank) if g.chance(.5)] or [0]
        starts, ends, steps = [], [], []
        for axis in axes:
            step = g.pick([1, 1, 2, -1, 3, -2])
            starts.append(g.integer(-2, 2) if step > 0 else g.pick([-1, x.shape[axis] - 1]))
            ends.append(g.pick([x.shape[axis], 2**31 - 1, -1, 2**63 - 1]) if step > 0 else g.pick([-2**31, 0, -2**63 + 1]))
            steps.append(step)
        dtype = np.int32 if max(map(abs, ends)) < 2**31 and g.chance(.3) else np.int64
        g.emit('Slice', [x] + [g.weight(np.array(list_, dtype)) for list_ in (starts, ends, axes, steps)], exact=True)


def gather(g):
    if x := g.value(least=1, dtypes=ANY, fits=lambda v: min(v.shape) > 0):
        axis = axis_of(g, x)
        size = x.shape[axis]
        if g.chance(.6):
            indices = g.random.integers(-size, size, g.pick([(), (1,), (3,), (2, 2)]))
            g.emit('Gather', [x, g.weight(indices.astype(g.pick([np.int64, np.int32])))], axis=axis, exact=True)
        else:
            shape = list(x.shape)
            shape[axis] = g.integer(1, 4)
            g.emit('GatherElements', [x, g.weight(g.random.integers(-size, size, shape))], axis=axis, exact=True)


def gather_by_values(g):
    """Indices that arise while running."""
    if x := g.value(least=1, fits=lambda v: v.shape[0] > 0):
        if i := g.value(dtypes=(INT64, INT32), most=2):
            g.emit('Gather', [x, g.emit('Mod', [i, g.weight(np.asarray(x.shape[0], i.array.dtype))])], axis=0, exact=True)


def gather_nd(g):
    if x := g.value(least=2, dtypes=ANY, fits=lambda v: min(v.shape) > 0):
        depth = g.integer(1, min(2, x.rank))
        indices = np.stack([g.random.integers(-x.shape[d], x.shape[d], (3, 2)) for d in range(depth)], axis=-1)
        g.emit('GatherND', [x, g.weight(indices)], exact=True)


def scatter(g):
    if x := g.value(least=1, dtypes=(FLOAT, FLOAT, INT64), fits=lambda v: min(v.shape) > 0):
        attributes = {'reduction': g.pick(['none', 'none', 'add', 'max', 'mul'])}
        if g.chance(.5):
            rows = g.random.permutation(x.shape[0])[:2].reshape(-1, 1)
            g.emit('ScatterND', [x, g.weight(rows), g.weight(g.array(x.dtype, (len(rows), *x.shape[1:])))], exact=attributes['reduction'] in ('none', 'max'),
                   **attributes)
        else:
            axis = axis_of(g, x)
            shape = list(x.shape)
            shape[axis] = 1
            indices = g.random.integers(-x.shape[axis], x.shape[axis], shape)
            g.emit('ScatterElements', [x, g.weight(indices), g.weight(g.array(x.dtype, shape))], axis=axis, exact=attributes['reduction'] in ('none', 'max'), **attributes)


def pad(g):
    if x := g.value(least=1, most=4, dtypes=(FLOAT, FLOAT, INT64, INT32), fits=lambda v: min(v.shape) > 1):
        mode = g.pick(['constant', 'constant', 'edge', 'reflect', 'wrap'])
        most = 2 if mode == 'constant' else 1
        widths = [g.integer(-1 if mode == 'constant' and g.chance(.2) else 0, most) for _ in range(2 * x.rank)]
        value = [g.weight(np.asarray(g.pick([0, 2]), x.array.dtype))] if mode == 'constant' and g.chance(.6) else []
        g.emit('Pad', [x, g.ints(*widths), *value], mode=mode, exact=True)


def squeeze_unsqueeze(g):
    if x := g.value(dtypes=ANY, most=4):
        axis = g.integer(-x.rank - 1, x.rank)
        y = g.emit('Unsqueeze', [x, g.ints(axis)], exact=True)
        if y and g.chance(.5):
            g.emit('Squeeze', [y, g.ints(axis)], exact=True)


def expand_tile(g):
    if x := g.value(dtypes=ANY, most=4):
        if g.chance(.5):
            shape = [n if n != 1 else g.integer(1, 4) for n in x.shape]
            g.emit('Expand', [x, g.ints(*([g.integer(1, 3)] if g.chance(.4) else []), *shape)], exact=True)
        elif x.rank:
            g.emit('Tile', [x, g.ints(*(g.integer(1, 2) for _ in x.shape))], exact=True)


def space_depth(g):
    if x := g.value(rank=4, fits=lambda v: v.shape[1] % 4 == 0 and v.shape[1] > 0):
        g.emit('DepthToSpace', [x], blocksize=2, mode=g.pick(['DCR', 'CRD']), exact=True)
    elif x := g.value(rank=4, fits=lambda v: v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0):
        g.emit('SpaceToDepth', [x], blocksize=2, exact=True)


def resize(g):
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0):
        attributes = {'mode': g.pick(['nearest', 'linear']), 'coordinate_transformation_mode': g.pick(['asymmetric', 'half_pixel', 'align_corners'])}
        if attributes['mode'] == 'nearest':
            attributes.update(nearest_mode='floor', coordinate_transformation_mode='asymmetric')
        nothing = g.weight(np.zeros(0, np.float32))
        sizes = g.ints(*x.shape[:2], x.shape[2] * 2, x.shape[3] * 2)
        if g.chance(.5):
            g.emit('Resize', [x, nothing, g.weight(np.array([1, 1, 2, 2], np.float32))], **attributes)
        else:
            g.emit('Resize', [x, nothing, nothing, sizes], **attributes)


def top_k(g):
    if x := g.value(exact=True, least=1, dtypes=(FLOAT, FLOAT, INT32), fits=lambda v: v.array.size > 0 and len(np.unique(v.array)) == v.array.size):
        axis = axis_of(g, x)
        g.emit('TopK', [x, g.ints(g.integer(1, x.shape[axis]))], outputs=2, axis=axis, largest=g.integer(0, 1), exact=True)


def cumsum(g):
    if x := g.value(least=1, dtypes=(FLOAT, FLOAT, INT32, DOUBLE)):
        g.emit('CumSum', [x, g.weight(np.int64(axis_of(g, x)))], exclusive=g.integer(0, 1), reverse=g.integer(0, 1))


def one_hot(g):
    if x := g.value(dtypes=(INT64, INT32), most=3):
        g.emit('OneHot', [x, g.weight(np.int64(g.integer(2, 6))), g.weight(np.array([-.5, 2], np.float32))], axis=g.pick([-1, 0, x.rank]), exact=True)


def trilu(g):
    if x := g.value(least=2, dtypes=(FLOAT, FLOAT, INT64, BOOL)):
        g.emit('Trilu', [x, *([g.weight(np.int64(g.integer(-2, 2)))] if g.chance(.6) else [])], upper=g.integer(0, 1), exact=True)


def data_dependent(g):
    """Results whose size only running tells."""
    if x := g.value(exact=True, least=1, most=3, fits=lambda v: v.array.size > 0):
        kind = g.pick(['NonZero', 'Compress', 'Unique'])
        if kind == 'NonZero':
            g.emit(kind, [g.emit('Relu', [x], exact=True)], exact=True)
        elif kind == 'Compress':
            axis = g.integer(0, x.rank - 1)
            g.emit(kind, [x, g.weight(g.random.random(x.shape[axis]) < .6)], axis=axis, exact=True)
        else:
            g.emit(kind, [g.emit('Floor', [x], exact=True)], exact=True)


def reverse_sequence(g):
    if x := g.value(least=2, fits=lambda v: min(v.shape[:2]) > 0):
        lengths = g.random.integers(1, x.shape[0] + 1, x.shape[1])
        g.emit('ReverseSequence', [x, g.weight(lengths)], time_axis=0, batch_axis=1, exact=True)


def rearrange(g):
    if x := g.value(rank=2, fits=lambda v: v.shape[0] > 0):
        g.emit(g.pick(['EyeLike']), [x], exact=True)
    if x := g.value(least=2, most=4, fits=lambda v: min(v.shape) > 0):
        g.emit('CenterCropPad', [x, g.ints(*(max(1, n + g.integer(-2, 2)) for n in x.shape))], exact=True)


def grid_sample(g):
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0):
        grid = g.weight(g.random.uniform(-.9, .9, (x.shape[0], 3, 4, 2)).astype(np.float32))
        g.emit('GridSample', [x, grid], mode='linear', padding_mode=g.pick(['zeros', 'border', 'reflection']), align_corners=g.integer(0, 1))


def recurrent(g):
    if x := g.value(rank=3, fits=lambda v: 0 < v.shape[0] <= 12 and min(v.shape) > 0):
        kind, hidden = g.pick(['LSTM', 'GRU', 'RNN']), g.pick([1, 4, 9])
        gates = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[kind]
        direction = g.pick(['forward', 'reverse', 'bidirectional'])
        d = 2 if direction == 'bidirectional' else 1
        scale = x.shape[2]**-.5
        inputs = [x, g.normal(d, gates * hidden, x.shape[2], scale=scale), g.normal(d, gates * hidden, hidden, scale=hidden**-.5)]
        if g.chance(.5):
            inputs.append(g.normal(d, 2 * gates * hidden))
        attributes = {'linear_before_reset': g.integer(0, 1)} if kind == 'GRU' else {}
        g.emit(kind, inputs, outputs=g.pick([1, 2]), hidden_size=hidden, direction=direction, **attributes)


def quantize(g):
    if x := g.value(exact=True, least=1, fits=lambda v: v.array.size > 0):
        kind = g.pick(['tensor', 'axis'])
        axis = g.integer(0, x.rank - 1)
        shape = (x.shape[axis],) if kind == 'axis' else ()
        # Powers of two divide without rounding, so that no value lies at a border for one and beside it for another.
        scale = g.weight(np.exp2(g.random.integers(-5, -2, shape)).astype(np.float32))
        zero = g.weight(np.asarray(g.random.integers(0, 5, shape), g.pick([np.uint8, np.int8])))
        q = g.emit('QuantizeLinear', [x, scale, zero], axis=axis, exact=True)
        if q and g.chance(.7):
            g.emit('DequantizeLinear', [q, scale, zero], axis=axis, exact=True)


def rare_unary(g):
    if x := g.value(dtypes=(FLOAT, FLOAT, DOUBLE), least=1):
        kind = g.pick(['Dropout', 'Shrink', 'Size', 'PRelu', 'GlobalLpPool', 'ReduceLogSum', 'Tan', 'Det', 'CastLike', 'DFT'])
        if kind == 'Shrink':
            g.emit(kind, [x], lambd=.25, bias=0., exact=x.exact) if x.exact else None
        elif kind == 'PRelu':
            g.emit(kind, [x, g.normal(x.shape[-1], dtype=x.dtype)])
        elif kind == 'ReduceLogSum':
            if x.array.size:
                g.emit(kind, [g.emit('Add', [g.emit('Abs', [x]), g.weight(np.asarray(.5, x.array.dtype))]), g.ints(-1)])
        elif kind == 'Tan':
            g.emit(kind, [g.emit('Tanh', [x])])
        elif kind == 'Det':
            if x.rank >= 2 and x.shape[-1] == x.shape[-2] and x.shape[-1] <= 4:
                g.emit(kind, [g.emit('Tanh', [x])])
        elif kind == 'CastLike':
            if x.exact:
                g.emit(kind, [x, g.weight(np.zeros(1, g.pick([np.int32, np.int64, np.float64])))], exact=True)
        elif kind == 'GlobalLpPool':
            if x.rank >= 3:
                g.emit(kind, [x], p=2)
        elif kind == 'DFT':
            if x.array.size and x.rank >= 2 and x.dtype == FLOAT:
                g.emit(kind, [g.emit('Unsqueeze', [x, g.ints(-1)], exact=True), None, g.weight(np.int64(1))])
        else:
            g.emit(kind, [x], exact=kind in ('Dropout', 'Size'))


def quantized_product(g):
    """Scales are powers of two, so that nothing is rounded twice."""
    if x := g.value(rank=2, exact=True, dtypes=(UINT8, INT8)):
        w = g.weight(g.random.integers(-3, 4, (x.shape[1], 5)).astype(np.int8))
        half, one = g.weight(np.float32(.5)), g.weight(np.float32(1))
        zero_x, zero_w, zero_y = g.weight(np.asarray(1, x.array.dtype)), g.weight(np.int8(0)), g.weight(np.uint8(20))
        g.emit('QLinearMatMul', [x, one, zero_x, w, half, zero_w, g.weight(np.float32(4)), zero_y], exact=True)


def integer_conv(g):
    if x := g.value(least=3, most=4, dtypes=(UINT8,), fits=lambda v: min(v.shape) > 0):
        kernel = [1] * (x.rank - 2)
        g.emit('ConvInteger', [x, g.weight(g.random.integers(0, 4, (3, x.shape[1], *kernel)).astype(np.uint8)), g.weight(np.uint8(2))], exact=True)


def boxes(g):
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0):
        rois = g.weight(np.array([[0, 0, 3, 3], [1, .5, 4, 2]], np.float32))
        g.emit('RoiAlign', [x, rois, g.ints(0, x.shape[0] - 1)], output_height=2, output_width=3, sampling_ratio=2, mode='avg')
    corners = np.sort(g.random.random((1, 6, 2, 2)), axis=2).reshape(1, 6, 4)
    if g.chance(.3):
        g.emit('NonMaxSuppression', [g.weight(corners.astype(np.float32)), g.weight(g.random.random((1, 2, 6)).astype(np.float32)), g.ints(3),
                                     g.weight(np.array([.4], np.float32)), g.weight(np.array([.1], np.float32))], exact=True)


def affine_grid(g):
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0):
        theta = g.normal(x.shape[0], 2, 3, scale=.3)
        # Where an axis of one element lies with aligned corners, the specification leaves open; runtimes differ.
        corners = g.integer(0, 1) if min(x.shape[2:]) > 1 else 0
        g.emit('AffineGrid', [theta, g.emit('Shape', [x], exact=True, keep=False)], align_corners=corners)


def column_to_image(g):
    if x := g.value(rank=3, fits=lambda v: v.shape[1] % 4 == 0 and v.shape[1] > 0 and v.shape[2] == 9):
        g.emit('Col2Im', [x, g.ints(4, 4), g.ints(2, 2)])


def loss(g):
    if x := g.value(rank=2, fits=lambda v: min(v.shape) > 0):
        labels = g.weight(g.random.integers(0, x.shape[1], x.shape[0]))
        g.emit('SoftmaxCrossEntropyLoss', [x, labels], reduction=g.pick(['mean', 'sum', 'none']))


def rotary(g):
    if x := g.value(rank=4, fits=lambda v: min(v.shape) > 0 and v.shape[3] % 2 == 0):
        half = x.shape[3] // 2
        g.emit('RotaryEmbedding', [x, g.normal(x.shape[0], x.shape[2], half), g.normal(x.shape[0], x.shape[2], half)], interleaved=g.integer(0, 1))


def window(g):
    g.emit(g.pick(['HannWindow', 'HammingWindow', 'BlackmanWindow']), [g.weight(np.int64(g.integer(4, 9)))], periodic=g.integer(0, 1))


def attention(g):
    if x := g.value(rank=3, fits=lambda v: min(v.shape) > 0 and v.shape[2] % 2 == 0):
        k = g.emit('Tanh', [x])
        g.emit('Attention', [x, k, x], q_num_heads=2, kv_num_heads=2, is_causal=g.integer(0, 1))


STEPS = [unary, unary, positive_unary, bounded_unary, exact_unary, integer_unary, binary, binary, binary, divide, integer_binary, logic, compare, nan_test, where,
         clip, cast, to_float, to_float, variadic, matmul, matmul, product_of_values, gemm, einsum, integer_product, conv, conv, conv_transpose, pool, pool, reduce,
         reduce, arg_reduce, softmax, hardmax, layer_norm, layer_norm_spelt_out, channel_norm, transpose, transpose, reshape, reshape, flatten, concat, concat,
         split, slice_, slice_, gather, gather, gather_by_values, gather_nd, scatter, pad, squeeze_unsqueeze, expand_tile, space_depth, resize, top_k, cumsum,
         one_hot, trilu, data_dependent, reverse_sequence, rearrange, grid_sample, recurrent, quantize, attention, rare_unary,
         rare_unary, quantized_product, integer_conv, boxes, affine_grid, column_to_image, loss, rotary, window]
