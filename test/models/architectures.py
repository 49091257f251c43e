"""Classic architectures as exporters write them, with seeded random weights. BUILDERS maps a name to its function."""
import numpy as np
from onnx import helper

from graph import FLOAT, INT64, Graph


def image_input(g, batch):
    return g.input('image', FLOAT, [batch, 3, 224, 224])


def conv_bn(g, x, channels_in, channels_out, kernel, stride=1, groups=1):
    """Convolution and a batch normalisation that nobody has folded yet."""
    fan_in = channels_in // groups * kernel * kernel
    weight = g.he((channels_out, channels_in // groups, kernel, kernel), fan_in)
    x = g.node('Conv', x, weight, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[kernel // 2] * 4, group=groups)
    scale, shift, mean, variance = (g.uniform(channels_out, .5, 1.), g.normal(channels_out, .1), g.normal(channels_out, .1),
                                    g.uniform(channels_out, .5, 1.5))
    return g.node('BatchNormalization', x, scale, shift, mean, variance, epsilon=1e-5)


def classifier(g, x, channels, classes=1000):
    x = g.node('Flatten', g.node('GlobalAveragePool', x))
    return g.node('Gemm', x, g.he((classes, channels), channels, gain=1.), g.normal(classes, .01), transB=1)


def resnet50():
    """He et al., arXiv:1512.03385; the stride sits in the 3x3 convolution."""
    g = Graph('resnet50')
    x = g.node('Relu', conv_bn(g, image_input(g, 1), 3, 64, 7, 2))
    x = g.node('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y = g.node('Relu', conv_bn(g, x, channels, width, 1))
            y = g.node('Relu', conv_bn(g, y, width, width, 3, stride))
            y = conv_bn(g, y, width, 4 * width, 1)
            if block == 0:
                x = conv_bn(g, x, channels, 4 * width, 1, stride)
            channels = 4 * width
            x = g.node('Relu', g.node('Add', y, x))
    g.output(g.node('Softmax', classifier(g, x, channels), axis=1), 'probabilities', FLOAT, [1, 1000])
    return g.model(9)


def squeezenet():
    """Iandola et al., arXiv:1602.07360, version 1.1."""
    g = Graph('squeezenet')

    def conv(x, channels_in, channels_out, kernel, stride=1, pad=0):
        weight = g.he((channels_out, channels_in, kernel, kernel), channels_in * kernel * kernel)
        return g.node('Relu', g.node('Conv', x, weight, g.normal(channels_out, .05), kernel_shape=[kernel, kernel], strides=[stride, stride],
                                     pads=[pad] * 4))

    def fire(x, channels, squeezed, expanded):
        x = conv(x, channels, squeezed, 1)
        return g.node('Concat', conv(x, squeezed, expanded, 1), conv(x, squeezed, expanded, 3, pad=1), axis=1)

    def pool(x):
        return g.node('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2])

    x = pool(conv(image_input(g, 1), 3, 64, 3, 2))
    x = pool(fire(fire(x, 64, 16, 64), 128, 16, 64))
    x = pool(fire(fire(x, 128, 32, 128), 256, 32, 128))
    x = fire(fire(x, 256, 48, 192), 384, 48, 192)
    x = fire(fire(x, 384, 64, 256), 512, 64, 256)
    x = conv(x, 512, 1000, 1)
    x = g.node('Flatten', g.node('GlobalAveragePool', x))
    g.output(g.node('Softmax', x, axis=1), 'probabilities', FLOAT, [1, 1000])
    return g.model(9)


def mobilenet_v2():
    """Sandler et al., arXiv:1801.04381."""
    g = Graph('mobilenet_v2')
    zero, six = g.scalar(0), g.scalar(6)

    def relu6(x):
        return g.node('Clip', x, zero, six)

    x, channels = relu6(conv_bn(g, image_input(g, 'batch'), 3, 32, 3, 2)), 32
    for expansion, width, blocks, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                                   (6, 320, 1, 1)):
        for block in range(blocks):
            stride, hidden = first_stride if block == 0 else 1, channels * expansion
            y = x if expansion == 1 else relu6(conv_bn(g, x, channels, hidden, 1))
            y = relu6(conv_bn(g, y, hidden, hidden, 3, stride, hidden))
            y = conv_bn(g, y, hidden, width, 1)
            x = g.node('Add', x, y) if stride == 1 and channels == width else y
            channels = width
    x = relu6(conv_bn(g, x, channels, 1280, 1))
    g.output(classifier(g, x, 1280), 'logits', FLOAT, ['batch', 1000])
    return g.model(13)


def linear(g, x, weight, bias):
    return g.node('Add', bias, g.node('MatMul', x, weight))


def encoder(name, weights=None, layers=6, hidden=384, heads=12, inner=1536, vocabulary=30522, positions=512):
    """A BERT encoder as PyTorch exported it before opset 17: layer normalisation and GELU spelt out, shapes computed by
    Shape, Gather and Concat. `weights` maps PyTorch's parameter names to arrays; without it they are random."""
    g = Graph(name)
    ids, mask, types = (g.input(n, INT64, ['batch', 'seq']) for n in ('input_ids', 'attention_mask', 'token_type_ids'))

    def parameter(key, shape, deviation, centre=0.):
        if weights is not None:
            return g.constant(weights[key], np.float32)
        return g.constant(g.random.standard_normal(shape, np.float32) * np.float32(deviation) + np.float32(centre))

    two, epsilon, half, one, root_two = (g.scalar(v) for v in (2, 1e-12, .5, 1, 2**.5))

    def layer_norm(x, key):
        centred = g.node('Sub', x, g.node('ReduceMean', x, axes=[-1]))
        variance = g.node('ReduceMean', g.node('Pow', centred, two), axes=[-1])
        y = g.node('Div', centred, g.node('Sqrt', g.node('Add', variance, epsilon)))
        return g.node('Add', g.node('Mul', y, parameter(f'{key}.weight', hidden, .1, 1.)), parameter(f'{key}.bias', hidden, .05))

    def dense(x, key, size_in, size_out):
        if weights is not None:
            weight = g.constant(weights[f'{key}.weight'].T, np.float32)
        else:
            weight = g.he((size_in, size_out), size_in, gain=1.)
        return linear(g, x, weight, parameter(f'{key}.bias', size_out, .02))

    def embedding(table, indices, size, deviation):
        return g.node('Gather', parameter(f'embeddings.{table}_embeddings.weight', (size, hidden), deviation), indices)

    shape, axis0 = g.node('Shape', ids), g.ints(0)
    batch, seq = (g.node('Unsqueeze', g.node('Gather', shape, g.constant(i, np.int64), axis=0), axis0) for i in (0, 1))
    steps = g.node('Slice', g.constant(np.arange(positions)[None], np.int64), axis0, seq, g.ints(1))
    x = g.node('Add', embedding('word', ids, vocabulary, .05), embedding('token_type', types, 2, .02))
    x = layer_norm(g.node('Add', x, embedding('position', steps, positions, .02)), 'embeddings.LayerNorm')

    allowed = g.node('Cast', g.node('Unsqueeze', mask, g.ints(1, 2)), to=FLOAT)
    penalty = g.node('Mul', g.node('Sub', one, allowed), g.scalar(-1e4))
    split_shape = g.node('Concat', batch, seq, g.ints(heads), g.ints(hidden // heads), axis=0)
    merged_shape = g.node('Concat', batch, seq, g.ints(hidden), axis=0)
    scale = g.scalar((hidden // heads)**.5)
    for layer in range(layers):
        key = f'encoder.layer.{layer}.'
        q, k, v = (g.node('Reshape', dense(x, f'{key}attention.self.{n}', hidden, hidden), split_shape) for n in ('query', 'key', 'value'))
        q, k, v = (g.node('Transpose', t, perm=p) for t, p in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        scores = g.node('Add', g.node('Div', g.node('MatMul', q, k), scale), penalty)
        context = g.node('MatMul', g.node('Softmax', scores, axis=-1), v)
        context = g.node('Reshape', g.node('Transpose', context, perm=[0, 2, 1, 3]), merged_shape)
        x = layer_norm(g.node('Add', dense(context, f'{key}attention.output.dense', hidden, hidden), x), f'{key}attention.output.LayerNorm')
        y = dense(x, f'{key}intermediate.dense', hidden, inner)
        gelu = g.node('Mul', g.node('Mul', y, g.node('Add', g.node('Erf', g.node('Div', y, root_two)), one)), half)
        x = layer_norm(g.node('Add', dense(gelu, f'{key}output.dense', inner, hidden), x), f'{key}output.LayerNorm')
    g.output(x, 'last_hidden_state', FLOAT, ['batch', 'seq', hidden])
    return g.model(14)


def gpt2_step(layers=4, hidden=768, heads=12, vocabulary=8192, positions=1024):
    """One decoding step of a GPT-2 like decoder: the past's keys and values come in, with the new ones go out."""
    g = Graph('gpt2_step_l4')
    size = hidden // heads
    ids, position = (g.input(n, INT64, ['batch', 1]) for n in ('input_ids', 'position_ids'))
    half, one, three, cubic, root = (g.scalar(v) for v in (.5, 1., 3., .044715, (2 / np.pi)**.5))

    def dense(x, size_in, size_out):
        return linear(g, x, g.he((size_in, size_out), size_in, gain=1.), g.normal(size_out, .02))

    def layer_norm(x):
        return g.node('LayerNormalization', x, g.uniform(hidden, .8, 1.2), g.normal(hidden, .05), axis=-1, epsilon=1e-5)

    words = g.normal((vocabulary, hidden), .05)
    x = g.node('Add', g.node('Gather', words, ids), g.node('Gather', g.normal((positions, hidden), .02), position))
    split_shape, merged_shape = g.ints(0, -1, heads, size), g.ints(0, -1, hidden)
    scale = g.scalar(size**.5)
    cache = []
    for layer in range(layers):
        past = [g.input(f'past_{n}{layer}', FLOAT, ['batch', heads, 'past', size]) for n in 'kv']
        q, k, v = g.node('Split', dense(layer_norm(x), hidden, 3 * hidden), g.ints(hidden, hidden, hidden), outputs=3, axis=2)
        q, k, v = (g.node('Transpose', g.node('Reshape', t, split_shape), perm=[0, 2, 1, 3]) for t in (q, k, v))
        k, v = (g.node('Concat', old, new, outputs=[f'present_{n}{layer}'], axis=2) for old, new, n in zip(past, (k, v), 'kv'))
        cache += [k, v]
        scores = g.node('Div', g.node('MatMul', q, g.node('Transpose', k, perm=[0, 1, 3, 2])), scale)
        context = g.node('MatMul', g.node('Softmax', scores, axis=-1), v)
        context = g.node('Reshape', g.node('Transpose', context, perm=[0, 2, 1, 3]), merged_shape)
        x = g.node('Add', x, dense(context, hidden, hidden))
        y = dense(layer_norm(x), hidden, 4 * hidden)
        inside = g.node('Mul', g.node('Add', y, g.node('Mul', g.node('Pow', y, three), cubic)), root)
        gelu = g.node('Mul', g.node('Mul', y, half), g.node('Add', one, g.node('Tanh', inside)))
        x = g.node('Add', x, dense(gelu, 4 * hidden, hidden))
    logits = g.node('MatMul', layer_norm(x), g.node('Transpose', words, perm=[1, 0]))
    g.output(logits, 'logits', FLOAT, ['batch', 1, vocabulary])
    g.outputs += [helper.make_tensor_value_info(name, FLOAT, ['batch', heads, 'total', size]) for name in cache]
    return g.model(17)


def lstm_tagger(vocabulary=5000, embedded=128, hidden=256, tags=20):
    g = Graph('lstm_tagger')
    tokens = g.input('tokens', INT64, ['batch', 'seq'])
    x = g.node('Transpose', g.node('Gather', g.normal((vocabulary, embedded), .5), tokens), perm=[1, 0, 2])
    bound = hidden**-.5
    w, r, b = (g.uniform((2, *shape), -bound, bound) for shape in ((4 * hidden, embedded), (4 * hidden, hidden), (8 * hidden,)))
    y = g.node('LSTM', x, w, r, b, hidden_size=hidden, direction='bidirectional')
    y = g.node('Reshape', g.node('Transpose', y, perm=[2, 0, 1, 3]), g.ints(0, 0, 2 * hidden))
    y = linear(g, y, g.he((2 * hidden, tags), 2 * hidden, gain=1.), g.normal(tags, .02))
    g.output(y, 'tag_logits', FLOAT, ['batch', 'seq', tags])
    return g.model(14)


def mlp():
    g = Graph('mlp')
    x, sizes = g.input('x', FLOAT, ['batch', 784]), (784, 512, 512, 10)
    for layer, (size_in, size_out) in enumerate(zip(sizes, sizes[1:])):
        if layer:
            x = g.node('Relu', x)
        x = g.node('Gemm', x, g.he((size_in, size_out), size_in), g.normal(size_out, .02))
    g.output(g.node('Softmax', x, axis=1), 'probabilities', FLOAT, ['batch', 10])
    return g.model(13)


BUILDERS = {
    'resnet50': resnet50,
    'squeezenet': squeezenet,
    'mobilenet_v2': mobilenet_v2,
    'gpt2_step_l4': gpt2_step,
    'lstm_tagger': lstm_tagger,
    'mlp': mlp,
}
