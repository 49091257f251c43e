#!/usr/bin/env python3
"""Rewrites that look right and are not: each model is one that an optimiser has a reason to rewrite, and a reason not to in this case.
firn-opt, by default and with --strict, must keep what it computes, special values included.
"""
import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import product

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
RANDOM = np.random.default_rng(7)
SPECIAL = np.array([[np.nan, np.inf, -np.inf, -0.0], [0.0, 1e-40, -3.4e38, 2.5]], np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, outputs, opset=18, inputs=(('x', F32, ['N', 4]),), **constants):
    values = [helper.make_tensor_value_info(*value) for value in inputs]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    return helper.make_model(helper.make_graph(nodes, 'trap', values, results, tensors), opset_imports=[helper.make_opsetid('', opset)],
                             ir_version=9)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def channels(n):
    return RANDOM.random(n).astype(np.float32) + .5


IMAGE = ('x', F32, ['N', 3, 5, 5])
NORM = dict(s=channels(4), b=channels(4), m=channels(4), v=channels(4))


# Each gives the model and its inputs.
def conv_read_twice_before_batch_norm():
    """The convolution's own value is an output too: its weights must not change."""
    return model([node('Conv', 'x w', 'c'), node('BatchNormalization', 'c s b m v', 'y')], [('y', F32), ('c', F32)], inputs=[IMAGE],
                 w=normal(4, 3, 3, 3), **NORM), {'x': normal(2, 3, 5, 5)}


def convs_share_weights_before_one_batch_norm():
    """Two convolutions read one weight, one of them is normalised."""
    return model([node('Conv', 'x w', 'c'), node('BatchNormalization', 'c s b m v', 'n'), node('Conv', 'x w', 'd'), node('Add', 'n d', 'y')],
                 [('y', F32)], inputs=[IMAGE], w=normal(4, 3, 3, 3), **NORM), {'x': normal(1, 3, 5, 5)}


def padded_conv_behind_scale_and_shift():
    """A shift before a padded convolution is not a bias: the border is padded with 0, not with the shift."""
    return model([node('Add', 'x k', 'a'), node('Conv', 'a w', 'y', pads=[1, 1, 1, 1])], [('y', F32)], inputs=[IMAGE],
                 k=channels(3).reshape(3, 1, 1), w=normal(4, 3, 3, 3)), {'x': normal(1, 3, 5, 5)}


def pad_of_one_before_conv():
    """A pad that writes another value than 0 is not the convolution's."""
    return model([node('Pad', 'x p one', 'a'), node('Conv', 'a w', 'y')], [('y', F32)], inputs=[IMAGE],
                 p=np.array([0, 0, 1, 1, 0, 0, 1, 1]), one=np.float32(1), w=normal(4, 3, 3, 3)), {'x': normal(1, 3, 5, 5)}


def zero_pad_before_max_pool():
    """A max pool pads with minus infinity: a pad of 0 in front shows where all are negative."""
    return model([node('Pad', 'x p', 'a'), node('MaxPool', 'a', 'y', kernel_shape=[2, 2], strides=[2, 2])], [('y', F32)], inputs=[IMAGE],
                 p=np.array([0, 0, 1, 1, 0, 0, 0, 0])), {'x': -np.abs(normal(1, 3, 5, 5))}


def product_with_zero():
    """x * 0 is NaN for NaN and infinities, and -0 for what is negative."""
    return model([node('Mul', 'x z', 'y')], [('y', F32)], z=np.float32(0)), {'x': SPECIAL}


def difference_with_itself_and_quotient():
    """x - x and x / x are NaN where x is no number, and 0 / 0 is."""
    return model([node('Sub', 'x x', 'a'), node('Div', 'x x', 'y')], [('y', F32), ('a', F32)]), {'x': SPECIAL}


def sum_with_zero_and_its_sign():
    """-0 + 0 is 0: only -0 is the neutral element."""
    return model([node('Add', 'x z', 'a'), node('Sub', 'x z', 'b'), node('Div', 'one a', 'y')], [('y', F32), ('b', F32)],
                 z=np.float32(0), one=np.float32(1)), {'x': SPECIAL}


def square_root_of_square():
    """It is |x|, not x."""
    return model([node('Mul', 'x x', 'a'), node('Sqrt', 'a', 'y')], [('y', F32)]), {'x': normal(2, 4)}


def cast_down_and_up():
    """To float16 and back rounds, to integers and back cuts."""
    return model([node('Cast', 'x', 'a', to=TensorProto.FLOAT16), node('Cast', 'a', 'b', to=F32), node('Cast', 'x', 'c', to=TensorProto.INT32),
                  node('Cast', 'c', 'd', to=F32), node('Add', 'b d', 'y')], [('y', F32)]), {'x': normal(3, 4) * 100}


def clip_of_clip_that_do_not_meet():
    """Bounds apart: all becomes the outer bound; NaN stays."""
    return model([node('Clip', 'x l m', 'a'), node('Clip', 'a n h', 'y')], [('y', F32)], l=np.float32(-1), m=np.float32(0), n=np.float32(1),
                 h=np.float32(2)), {'x': normal(3, 4) * 3}


def transposes_of_one_that_only_look_inverse():
    """[1, 2, 0] twice is not the identity."""
    return model([node('Transpose', 'x', 'a', perm=[1, 2, 0]), node('Relu', 'a', 'r'), node('Transpose', 'r', 'y', perm=[1, 2, 0])],
                 [('y', F32)], inputs=[('x', F32, [2, 3, 'N'])]), {'x': normal(2, 3, 4)}


def reshapes_with_zero_that_copies():
    """0 copies a dimension of what is before the first reshape, or before the second: not the same."""
    return model([node('Reshape', 'x p', 'a'), node('Reshape', 'a q', 'y')], [('y', F32)], inputs=[('x', F32, ['N', 4, 6])],
                 p=np.array([0, 6, 4]), q=np.array([0, 0, 2, 2])), {'x': normal(3, 4, 6)}


def slices_with_negative_bounds():
    """The second slice counts from the end of the first one."""
    return model([node('Slice', 'x s e a', 'b'), node('Slice', 'b t f a', 'y')], [('y', F32)], inputs=[('x', F32, ['N', 10])],
                 s=np.array([2]), e=np.array([-2]), a=np.array([1]), t=np.array([-4]), f=np.array([-1])), {'x': normal(2, 10)}


def softmax_over_another_axis_between_products():
    """No attention: the softmax is over the queries."""
    return model([node('MatMul', 'q k', 's'), node('Softmax', 's', 'p', axis=-2), node('MatMul', 'p v', 'y')], [('y', F32)],
                 inputs=[('q', F32, [1, 2, 'T', 8]), ('k', F32, [1, 2, 8, 'T']), ('v', F32, [1, 2, 'T', 8])]), \
        {'q': normal(1, 2, 5, 8), 'k': normal(1, 2, 8, 5), 'v': normal(1, 2, 5, 8)}


def layer_norm_with_unequal_means():
    """What is squared is centred over another axis than what is divided."""
    return model([node('ReduceMean', 'x a', 'm'), node('Sub', 'x m', 'd'), node('ReduceMean', 'x b', 'n'), node('Sub', 'x n', 'c'),
                  node('Mul', 'c c', 'q'), node('ReduceMean', 'q a', 'w'), node('Add', 'w e', 'u'), node('Sqrt', 'u', 't'),
                  node('Div', 'd t', 'y')], [('y', F32)], a=np.array([1]), b=np.array([0]), e=np.float32(1e-5)), {'x': normal(3, 4)}


def gelu_with_another_constant():
    """1.5 in the place of sqrt(2)."""
    return model([node('Div', 'x r', 'a'), node('Erf', 'a', 'b'), node('Add', 'b o', 'c'), node('Mul', 'x c', 'd'), node('Mul', 'd h', 'y')],
                 [('y', F32)], r=np.float32(1.5), o=np.float32(1), h=np.float32(.5)), {'x': normal(3, 4)}


def gemm_bias_that_broadcasts_over_rows():
    """A bias per row and one value more would change the shape of the result."""
    return model([node('MatMul', 'x w', 'a'), node('Add', 'a k', 'y')], [('y', F32)], inputs=[('x', F32, [1, 4])], w=normal(4, 5),
                 k=normal(3, 1)), {'x': normal(1, 4)}


def integer_division_and_product():
    """(x / 3) * 3 cuts."""
    return model([node('Div', 'x k', 'a'), node('Mul', 'a k', 'y')], [('y', I64)], inputs=[('x', I64, ['N', 4])], k=np.int64(3)), \
        {'x': np.array([[1, -1, 5, -7], [9, 2, 0, 8]])}


def max_with_nan_and_relu():
    """Relu after a maximum with a negative number: NaN stays NaN."""
    return model([node('Max', 'x k', 'a'), node('Relu', 'a', 'y')], [('y', F32)], k=np.float32(-1)), {'x': SPECIAL}


TRAPS = [value for name, value in list(globals().items())
         if callable(value) and getattr(value, '__module__', '') == __name__ and value.__doc__ and name not in ('main', 'difference')]


def run(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider']).run(None, feeds)


def difference(before, after, exact):
    """Where two outputs differ, or ''. Also the sign of zero and what is NaN or infinite must agree."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return f'{after.dtype}{list(after.shape)}, before {before.dtype}{list(before.shape)}'
    if before.dtype.kind != 'f' or exact:
        same = (before == after) | ((before != before) & (after != after))
    else:
        same = np.isclose(before, after, rtol=1e-5, atol=1e-6, equal_nan=True)
    if before.dtype.kind == 'f':
        same &= (before != 0) | (after != 0) | (np.signbit(before) == np.signbit(after))
    if same.all():
        return ''
    at = tuple(np.argwhere(~same)[0])
    return f'{after[at]} at {list(map(int, at))}, before {before[at]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    args = parser.parse_args()
    tool = pathlib.Path(args.build).resolve() / 'bin/firn-opt'
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for trap in TRAPS:
            made, feeds = trap()
            onnx.save(made, folder / 'in.onnx')
            before = run(folder / 'in.onnx', feeds)
            for flags in ([], ['--strict'], ['--allow-growth']):
                result = product.run([tool, folder / 'in.onnx', '-o', folder / 'out.onnx', *flags])
                why = result.message if result.status else next(
                    (why for a, b in zip(before, run(folder / 'out.onnx', feeds)) if (why := difference(a, b, flags == ['--strict']))), '')
                failed += bool(why)
                if why:
                    print(f'FAILED {trap.__name__} {" ".join(flags)}: {why}')
    print(f'{len(TRAPS) * 3 - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
