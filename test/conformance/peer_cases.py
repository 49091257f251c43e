#!/usr/bin/env python3
"""Operators of ai.onnx.ml and com.microsoft against ONNX Runtime: each case is a model of one node, made here, run by both at -O0 (the
reference kernel) and -O3 (generated code), with fixed sizes and, where inputs share their first dimension, with a symbolic one."""
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

random = np.random.default_rng(7)
CASES = []
F, D, H, I64, I32, U8, I8 = np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.int8


def real(*shape, dtype=F, scale=1.0):
    return (random.normal(size=shape) * scale).astype(dtype)


def integers(low, high, *shape, dtype=I64):
    return random.integers(low, high, shape).astype(dtype)


def case(name, op, inputs, outputs=1, domain='com.microsoft', constant=(), batch=(), rtol=1e-4, atol=1e-5, wants=None, expected=None,
         **attributes):
    """inputs: arrays, None where left out. constant: positions that are initializers. batch: positions whose first dimension is the batch.
    wants: positions of the outputs that are asked for. expected: outputs, where ONNX Runtime has no kernel."""
    CASES.append(dict(name=name, op=op, inputs=inputs, outputs=outputs, domain=domain, constant=constant, batch=batch, rtol=rtol, atol=atol,
                      wants=wants, expected=expected, attributes=attributes))


def learning():
    ml = dict(domain='ai.onnx.ml')
    x, wide = real(5, 4), real(5, 4, dtype=D)
    transforms = ('NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO', 'PROBIT')
    weights, zero_weights = [0.1, -0.2, 0.3, 0.05, 0.2, 0.1, 0., -0.3, 0.15, 0.1, 0.05, 0.01], [0.] * 4 + [0.3] * 4 + [-.2] * 4
    for transform in transforms:
        shift = dict(intercepts=[0.5, 0.45, 0.55]) if transform == 'PROBIT' else dict(intercepts=[0.1, -0.1, 0.2])
        scale = 0.1 if transform == 'PROBIT' else 1
        for i, array in enumerate((x * F(scale), wide * scale)):
            if i == 0:  # ONNX Runtime's linear classifier has no double
                case(f'linear_classifier_{transform.lower()}', 'LinearClassifier', [array], 2, coefficients=weights, classlabels_ints=[3, 5, 9],
                     post_transform=transform, batch=(0,), **shift, **ml)
                case(f'linear_regressor_{transform.lower()}', 'LinearRegressor', [array], targets=3, coefficients=weights,
                     post_transform=transform, batch=(0,), **shift, **ml)
    case('linear_classifier_softmax_zero_zeros', 'LinearClassifier', [x], 2, coefficients=zero_weights, intercepts=[0., 0., 0.],
         classlabels_strings=['a', 'b', 'c'], post_transform='SOFTMAX_ZERO', **ml)
    for transform in ('NONE', 'LOGISTIC', 'SOFTMAX'):
        case(f'linear_classifier_pair_{transform.lower()}', 'LinearClassifier', [x], 2, coefficients=weights[:4] * 2, intercepts=[0.1, -0.1],
             classlabels_strings=['no', 'yes'], post_transform=transform, **ml)
    for dtype in (F, D, I64, I32):
        array = integers(-4, 5, 3, 4).astype(dtype)
        name = np.dtype(dtype).name
        case(f'scaler_{name}', 'Scaler', [array], offset=[0.5, 1., -1., 2.], scale=[2., 0.5, 1., 3.], batch=(0,), **ml)
        case(f'scaler_one_{name}', 'Scaler', [array], offset=[0.5], scale=[2.], **ml)
        for norm in ('L1', 'L2'):
            case(f'normalizer_{norm.lower()}_{name}', 'Normalizer', [array], norm=norm, batch=(0,), **ml)
        if dtype in (F, I64):
            case(f'feature_vectorizer_{name}', 'FeatureVectorizer', [array, array[:, :2]], inputdimensions=[4, 2], **ml)
    case('normalizer_max', 'Normalizer', [np.abs(x)], norm='MAX', **ml)
    case('binarizer', 'Binarizer', [x], threshold=0.25, batch=(0,), **ml)
    holed = x.copy()
    holed[1, 2] = holed[3, 0] = np.nan
    case('imputer_nan', 'Imputer', [holed], imputed_value_floats=[1., 2., 3., 4.], replaced_value_float=float('nan'), batch=(0,), **ml)
    case('imputer_integers', 'Imputer', [integers(0, 3, 4, 3)], imputed_value_int64s=[7], replaced_value_int64=1, **ml)
    case('array_feature_extractor', 'ArrayFeatureExtractor', [x, np.array([[3, 0, 1]])], batch=(0,), **ml)
    case('one_hot_integers', 'OneHotEncoder', [np.array([[1, 5], [7, 9]])], cats_int64s=[5, 7, 1], zeros=1, **ml)
    case('one_hot_floats', 'OneHotEncoder', [np.array([1, 5, 2], F)], cats_int64s=[5, 7, 1], zeros=1, **ml)
    words = np.array([['a', 'c'], ['zz', 'b']], object)
    case('one_hot_strings', 'OneHotEncoder', [words], cats_strings=['a', 'b', 'c'], zeros=1, **ml)
    case('category_mapper_to_integers', 'CategoryMapper', [words], cats_strings=['a', 'b', 'c'], cats_int64s=[4, 5, 6], default_int64=-9, **ml)
    case('category_mapper_to_strings', 'CategoryMapper', [np.array([5, 4, 77])], cats_strings=['a', 'b', 'c'], cats_int64s=[4, 5, 6],
         default_string='none', **ml)
    case('label_encoder_strings_floats', 'LabelEncoder', [words], keys_strings=['a', 'b'], values_floats=[1.5, 2.5], default_float=-3., **ml)
    case('label_encoder_floats_strings', 'LabelEncoder', [np.array([1., np.nan, 3.] * 5, F)], keys_floats=[1., float('nan')],
         values_strings=['one', 'nan'], default_string='other', **ml)
    case('label_encoder_integers', 'LabelEncoder', [integers(0, 20, 40)], keys_int64s=list(range(15)), values_int64s=list(range(30, 0, -2)), **ml)

    vectors = real(6, 4)
    for kernel in ('LINEAR', 'POLY', 'RBF', 'SIGMOID'):
        machine = dict(kernel_type=kernel, kernel_params=[0.3, 0.2, 3.], support_vectors=vectors.ravel().tolist(), **ml)
        case(f'svm_regressor_{kernel.lower()}', 'SVMRegressor', [x], coefficients=real(6).tolist(), rho=[0.3], n_supports=6, batch=(0,), **machine)
        case(f'svm_one_class_{kernel.lower()}', 'SVMRegressor', [x], coefficients=real(6).tolist(), rho=[0.1], n_supports=6, one_class=1, **machine)
        case(f'svm_classifier_{kernel.lower()}', 'SVMClassifier', [x], 2, coefficients=real(12).tolist(), rho=[0.3, -0.1, 0.2],
             vectors_per_class=[2, 1, 3], classlabels_ints=[1, 2, 3], batch=(0,), **machine)
        case(f'svm_classifier_{kernel.lower()}_probabilities', 'SVMClassifier', [x], 2, coefficients=real(12).tolist(), rho=[0.3, -0.1, 0.2],
             vectors_per_class=[2, 1, 3], classlabels_strings=['a', 'b', 'c'], prob_a=[-1.2, -0.8, -1.1], prob_b=[0.1, -0.2, 0.05], **machine)
    case('svm_linear_regressor', 'SVMRegressor', [x], coefficients=real(4).tolist(), rho=[0.3], kernel_type='LINEAR', kernel_params=[0., 0., 0.], **ml)

    # One tree of each kind of test, another that is a leaf's parent only; two targets.
    trees = dict(nodes_treeids=[0] * 7 + [1] * 3, nodes_nodeids=list(range(7)) + [0, 1, 2], nodes_featureids=[0, 1, 2, 0, 0, 0, 0, 3, 0, 0],
                 nodes_truenodeids=[1, 3, 5, 0, 0, 0, 0, 1, 0, 0], nodes_falsenodeids=[2, 4, 6, 0, 0, 0, 0, 2, 0, 0],
                 nodes_values=[0.1, -0.2, 0.3, 0, 0, 0, 0, 0.05, 0, 0], nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0, 0, 1, 0, 0], **ml)
    leaves, owners = [3, 4, 5, 6, 1, 2], [0, 0, 0, 0, 1, 1]
    data = real(30, 4)
    data[::5, 0] = data[::7, 3] = np.nan
    data[3, :] = [0.1, -0.2, 0.3, 0.05]
    for mode in ('LEQ', 'LT', 'GTE', 'GT', 'EQ', 'NEQ'):
        modes = [f'BRANCH_{mode}'] * 3 + ['LEAF'] * 4 + [f'BRANCH_{mode}', 'LEAF', 'LEAF']
        case(f'tree_regressor_{mode.lower()}', 'TreeEnsembleRegressor', [data if mode != 'NEQ' else np.nan_to_num(data)], nodes_modes=modes,
             n_targets=1, target_ids=[0] * 6, target_nodeids=leaves, target_treeids=owners, target_weights=[1., 2., 3., 4., 5., 6.], batch=(0,), **trees)
    modes = ['BRANCH_LEQ', 'BRANCH_GT', 'BRANCH_LT'] + ['LEAF'] * 4 + ['BRANCH_GTE', 'LEAF', 'LEAF']
    for aggregate in ('SUM', 'AVERAGE', 'MIN', 'MAX'):
        for targets in (1, 2):
            case(f'tree_regressor_{aggregate.lower()}_{targets}', 'TreeEnsembleRegressor', [data], nodes_modes=modes, n_targets=targets,
                 target_ids=[i % targets for i in range(6 * targets)], target_nodeids=[n for n in leaves for _ in range(targets)],
                 target_treeids=[n for n in owners for _ in range(targets)], target_weights=real(6 * targets).tolist(),
                 aggregate_function=aggregate, base_values=[0.25, -0.5][:targets], batch=(0,), **trees)
    case('tree_regressor_target_per_tree', 'TreeEnsembleRegressor', [data], nodes_modes=modes, n_targets=2, target_ids=owners, target_nodeids=leaves,
         target_treeids=owners, target_weights=real(6).tolist(), base_values=[0.25, -0.5], batch=(0,), **trees)
    case('tree_regressor_float64', 'TreeEnsembleRegressor', [data.astype(D)], nodes_modes=['BRANCH_LEQ'] * 3 + modes[3:7] + ['BRANCH_GT'] + modes[8:],
         n_targets=1, target_ids=[0] * 6, target_nodeids=leaves, target_treeids=owners, target_weights=[1., 2., 3., 4., 5., 6.], **trees)
    for transform in ('NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO'):
        votes = dict(nodes_modes=modes, class_nodeids=[*leaves, 3, 4], class_treeids=[*owners, 0, 0], class_ids=[0, 1, 2, 0, 1, 2, 1, 2],
                     class_weights=[.1, .2, .3, .4, .5, .6, .7, .8], post_transform=transform, **trees)
        case(f'tree_classifier_{transform.lower()}', 'TreeEnsembleClassifier', [data], 2, classlabels_int64s=[4, 5, 6], batch=(0,), **votes)
        if not transform.startswith('SOFT'):
            case(f'tree_classifier_margins_{transform.lower()}', 'TreeEnsembleClassifier', [data], 2, classlabels_strings=['no', 'yes'],
                 class_weights=[1., -2., 3., 4., -5., -6.], nodes_modes=modes, class_nodeids=leaves, class_treeids=owners, class_ids=[0] * 6,
                 post_transform=transform, **trees)
    case('tree_classifier_probabilities', 'TreeEnsembleClassifier', [data], 2, classlabels_int64s=[0, 1], nodes_modes=modes,
         class_nodeids=leaves, class_treeids=owners, class_ids=[0] * 6, class_weights=[.1, .2, .3, .4, .3, .1], **trees)


def layers():
    x, skip, bias, gamma, beta = real(2, 3, 8), real(2, 3, 8), real(8), real(8), real(8)
    for dtype in (F, H):
        name, loose = np.dtype(dtype).name, dict(rtol=1e-2, atol=2e-2) if dtype == H else {}
        cast = [a.astype(dtype) for a in (x, skip, gamma, beta, bias)]
        case(f'skip_layer_norm_{name}', 'SkipLayerNormalization', cast, 4, wants=(0, 3), constant=(2, 3, 4), batch=(0, 1), **loose)
        case(f'skip_rms_norm_{name}', 'SkipSimplifiedLayerNormalization', [cast[0], cast[1], cast[2], cast[4]], 4, wants=(0, 3),
             constant=(2, 3), epsilon=1e-5, batch=(0, 1), **loose)
    case('skip_layer_norm_plain', 'SkipLayerNormalization', [x, skip, gamma], epsilon=1e-6)
    case('skip_layer_norm_broadcast', 'SkipLayerNormalization', [x, skip[:1], gamma, beta])
    case('rms_norm', 'SimplifiedLayerNormalization', [x, gamma], domain='', axis=-1, epsilon=1e-6, constant=(1,), batch=(0,))
    ids, segments = integers(0, 10, 2, 5, dtype=I32), integers(0, 2, 2, 5, dtype=I32)
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5], I32)
    embed = [ids, segments, real(10, 8), real(7, 8), real(2, 8), gamma, beta, mask]
    case('embed_layer_norm', 'EmbedLayerNormalization', embed, 3, constant=(2, 3, 4, 5, 6), batch=(0, 1, 7))
    case('embed_layer_norm_no_mask', 'EmbedLayerNormalization', embed[:7], 2, constant=(2, 3, 4, 5, 6))
    case('embed_layer_norm_no_segments', 'EmbedLayerNormalization', [ids, None, embed[2], embed[3], None, gamma, beta], 2, wants=(0,))
    case('embed_layer_norm_position_ids', 'EmbedLayerNormalization', [*embed, integers(0, 7, 2, 5, dtype=I32)], 2, constant=(2, 3, 4, 5, 6))
    case('gelu', 'Gelu', [x], batch=(0,))
    case('bias_gelu', 'BiasGelu', [x, bias], constant=(1,), batch=(0,))
    case('fast_gelu', 'FastGelu', [x], batch=(0,))
    case('fast_gelu_bias', 'FastGelu', [x, bias], constant=(1,))
    case('quick_gelu', 'QuickGelu', [x], alpha=1.702, batch=(0,))
    case('quick_gelu_alpha', 'QuickGelu', [x], alpha=0.5)

    for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        left, right = real(2, 4, 3), real(2, 4, 5)
        case(f'fused_matmul_{a}{b}', 'FusedMatMul', [left if a else left.transpose(0, 2, 1).copy(), right.transpose(0, 2, 1).copy() if b else right],
             transA=a, transB=b, alpha=0.7, batch=(0, 1))
        case(f'fused_matmul_batch_{a}{b}', 'FusedMatMul', [real(3, 2, 4) if not a else real(4, 2, 3), real(4, 2, 5) if not b else real(5, 2, 4)],
             transA=a, transB=b, transBatchA=1, transBatchB=1)
    case('fused_gemm_relu', 'FusedGemm', [real(3, 4), real(4, 5), real(5)], activation='Relu', alpha=0.5, beta=2.0, constant=(1, 2), batch=(0,))
    case('fused_gemm_leaky', 'FusedGemm', [real(3, 4), real(5, 4), real(5)], activation='LeakyRelu', activation_alpha=0.2, transB=1)
    image, kernel = real(2, 3, 8, 8), real(4, 3, 3, 3)
    for activation, parameters in (('Relu', []), ('Tanh', []), ('Sigmoid', []), ('LeakyRelu', [0.1]), ('Clip', [0.0, 0.5]), ('HardSigmoid', [0.3, 0.4])):
        case(f'fused_conv_{activation.lower()}', 'FusedConv', [image, kernel, real(4)], activation=activation, pads=[1, 1, 1, 1],
             kernel_shape=[3, 3], constant=(1, 2), batch=(0,), **({'activation_params': parameters} if parameters else {}))
    case('fused_conv_sum', 'FusedConv', [image, kernel, real(4), real(2, 4, 6, 6)], activation='Relu', kernel_shape=[3, 3], constant=(1, 2), batch=(0, 3))

    for bits in (4, 8):
        n, k, block = 8, 40, 16
        blocks, blob = (k + block - 1) // block, block * bits // 8
        weights = [integers(0, 256, n, blocks, blob, dtype=U8), np.abs(real(n * blocks)) + F(0.1)]
        zeros = integers(0, 256, n, (blocks * bits + 7) // 8, dtype=U8)
        common = dict(K=k, N=n, bits=bits, block_size=block, constant=(1, 2, 3), batch=(0,), rtol=1e-3, atol=1e-3 * 2 ** bits)
        case(f'matmul_{bits}_bits', 'MatMulNBits', [real(3, k), *weights], **common)
        case(f'matmul_{bits}_bits_zero_points', 'MatMulNBits', [real(2, 3, k), *weights, zeros.reshape(n, -1)], **common)
    case('trilu', 'Trilu', [real(4, 5), np.array(1)], upper=0)
    case('unique', 'Unique', [np.array([3, 1, 1, 2, 3, 5], F)], 3)
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [-0.2, 0.0, 1.1, 0.5]], F)
    for mode in ('bilinear', 'nearest'):
        case(f'crop_and_resize_{mode}', 'CropAndResize', [real(2, 3, 6, 5), boxes, np.array([1, 0], I32), np.array([3, 4], I32)], mode=mode,
             extrapolation_value=2.5, constant=(3,))
    case('inverse', 'Inverse', [real(2, 4, 4) + 3 * np.eye(4, dtype=F)], batch=(0,))
    case('rfft', 'Rfft', [real(3, 8)], signal_ndim=1, normalized=0, onesided=1, batch=(0,), expected=lambda i: [pairs(np.fft.rfft(i[0]))])
    case('rfft_planes', 'Rfft', [real(3, 6, 8)], signal_ndim=2, normalized=0, onesided=1, expected=lambda i: [pairs(np.fft.rfft2(i[0]))])
    case('irfft', 'Irfft', [real(3, 5, 2)], signal_ndim=1, normalized=0, onesided=1, batch=(0,),
         expected=lambda i: [np.fft.irfft(i[0][..., 0] + 1j * i[0][..., 1]).astype(F)])


def quantised():
    def q(*shape, dtype=U8):
        return integers(0 if dtype == U8 else -128, 256 if dtype == U8 else 128, *shape, dtype=dtype)

    def s(value):
        return np.array(value, F)
    for dtype in (U8, I8):
        name = np.dtype(dtype).name
        zero = [np.array(v, dtype) for v in ((120, 3, 100) if dtype == U8 else (5, -3, 20))]
        one = dict(atol=1.0, rtol=0)  # a tie may fall on either side
        case(f'qlinear_add_{name}', 'QLinearAdd', [q(3, 4, dtype=dtype), s(.02), zero[0], q(3, 4, dtype=dtype), s(.03), zero[1], s(.05), zero[2]],
             batch=(0, 3), **one)
        case(f'qlinear_add_broadcast_{name}', 'QLinearAdd', [q(3, 4, dtype=dtype), s(.02), zero[0], q(4, dtype=dtype), s(.03), zero[1], s(.05), zero[2]], **one)
        case(f'qlinear_mul_{name}', 'QLinearMul', [q(3, 4, dtype=dtype), s(.02), zero[0], q(3, 4, dtype=dtype), s(.03), zero[1], s(.05), zero[2]], **one)
        case(f'qlinear_sigmoid_{name}', 'QLinearSigmoid', [q(3, 4, dtype=dtype), s(.05), zero[0], s(1 / 256), np.array(0, dtype)], batch=(0,), constant=(1, 2, 3, 4), **one)
        case(f'qlinear_leaky_relu_{name}', 'QLinearLeakyRelu', [q(3, 4, dtype=dtype), s(.05), zero[0], s(.04), zero[1]], alpha=0.1, constant=(1, 2, 3, 4), **one)
        for last in (0, 1):
            image = q(2, 6, 6, 3, dtype=dtype) if last else q(2, 3, 6, 6, dtype=dtype)
            case(f'qlinear_average_pool_{name}_{last}', 'QLinearAveragePool', [image, s(.05), zero[0], s(.04), zero[1]], kernel_shape=[3, 3], strides=[2, 2],
                 pads=[1, 1, 1, 1], channels_last=last, constant=(1, 2, 3, 4), batch=(0,), **one)
            case(f'qlinear_global_average_pool_{name}_{last}', 'QLinearGlobalAveragePool', [image, s(.05), zero[0], s(.04), zero[1]], channels_last=last,
                 constant=(1, 2, 3, 4), batch=(0,), **one)
        case(f'qlinear_concat_{name}', 'QLinearConcat', [s(.05), zero[2], q(2, 3, dtype=dtype), s(.02), zero[0], q(2, 4, dtype=dtype), s(.06), zero[1]],
             axis=1, constant=(0, 1, 3, 4, 6, 7), **one)
        case(f'qlinear_softmax_{name}', 'QLinearSoftmax', [q(3, 7, dtype=dtype), s(.05), zero[0], s(1 / 256), np.array(0 if dtype == U8 else -128, dtype)],
             axis=-1, opset=13, constant=(1, 2, 3, 4), **one)
        case(f'nhwc_max_pool_{name}', 'NhwcMaxPool', [q(2, 6, 6, 3, dtype=dtype)], kernel_shape=[2, 2], strides=[2, 2], batch=(0,))
        b_scale = np.abs(real(5)) * F(.01) + F(.001)
        case(f'matmul_integer_to_float_{name}', 'MatMulIntegerToFloat', [q(3, 4), q(4, 5, dtype=dtype), s(.02), s(.03), np.array(7, U8), zero[1], real(5)],
             constant=(1, 3, 5, 6), batch=(0,))
        case(f'matmul_integer_to_float_columns_{name}', 'MatMulIntegerToFloat', [q(2, 3, 4), q(4, 5, dtype=dtype), s(.02), b_scale], constant=(1, 3))
        case(f'dynamic_quantize_matmul_{name}', 'DynamicQuantizeMatMul', [real(3, 4), q(4, 5, dtype=dtype), s(.03), zero[1], real(5)],
             constant=(1, 2, 3, 4), batch=(0,))
    case('dynamic_quantize_matmul_columns', 'DynamicQuantizeMatMul', [real(2, 3, 4), q(4, 5, dtype=I8), np.abs(real(5)) * F(.01)], constant=(1, 2))
    case('qgemm_float', 'QGemm', [q(3, 4), s(.02), np.array(7, U8), q(4, 5, dtype=I8), s(.03), np.array(0, I8), integers(-99, 99, 5, dtype=I32)],
         constant=(3, 4, 5, 6), alpha=0.8, batch=(0,))
    case('qgemm_quantised', 'QGemm', [q(4, 3), s(.02), np.array(7, U8), q(5, 4, dtype=I8), s(.03), np.array(0, I8), integers(-99, 99, 5, dtype=I32), s(.2),
                                      np.array(100, U8)], constant=(3, 4, 5, 6), transA=1, transB=1, atol=1.0)


def attentions():
    b, s, heads, size = 2, 5, 2, 4
    hidden = heads * size
    x, weights, bias = real(b, s, 6), real(6, 3 * hidden), real(3 * hidden)
    loose = dict(rtol=1e-3, atol=1e-4)
    past = real(2, b, heads, 3, size)
    raw, lengths = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], I32), np.array([4, 3], I32)
    case('attention', 'Attention', [x, weights, bias], num_heads=heads, constant=(1, 2), batch=(0,), **loose)
    case('attention_no_bias', 'Attention', [x, weights], num_heads=heads, scale=0.3, constant=(1,), **loose)
    case('attention_causal', 'Attention', [x, weights, bias], num_heads=heads, unidirectional=1, constant=(1, 2), batch=(0,), **loose)
    case('attention_raw_mask', 'Attention', [x, weights, bias, raw], num_heads=heads, constant=(1, 2), batch=(0, 3), **loose)
    case('attention_lengths', 'Attention', [x, weights, bias, lengths], num_heads=heads, constant=(1, 2), batch=(0, 3), **loose)
    case('attention_square_mask', 'Attention', [x, weights, bias, integers(0, 2, b, s, s, dtype=I32) | np.eye(s, dtype=I32)], num_heads=heads,
         constant=(1, 2), batch=(0, 3), **loose)
    case('attention_past', 'Attention', [x, weights, bias, None, past], 2, num_heads=heads, unidirectional=1, constant=(1, 2), **loose)
    case('attention_present', 'Attention', [x, weights, bias], 2, num_heads=heads, unidirectional=1, constant=(1, 2), **loose)
    case('attention_bias', 'Attention', [x, weights, bias, None, None, real(b, heads, s, s)], num_heads=heads, constant=(1, 2), batch=(0, 5), **loose)
    case('attention_unequal', 'Attention', [x, real(6, 8 + 8 + 12), real(28)], num_heads=heads, qkv_hidden_sizes=[8, 8, 12], constant=(1, 2), **loose)
    q, k, v = real(b, s, hidden), real(b, 7, hidden), real(b, 7, 6)
    same = real(b, s, hidden), real(b, s, hidden)
    case('mha', 'MultiHeadAttention', [q, k, v], num_heads=heads, batch=(0, 1, 2), **loose)
    case('mha_bias', 'MultiHeadAttention', [q, k, real(b, 7, hidden), real(3 * hidden)], num_heads=heads, scale=0.4, constant=(3,), batch=(0, 1, 2), **loose)
    case('mha_mask', 'MultiHeadAttention', [q, k, v, None, integers(0, 2, b, 7, dtype=I32) | 1], num_heads=heads, batch=(0, 1, 2, 4), **loose)
    case('mha_lengths', 'MultiHeadAttention', [q, k, v, None, np.array([7, 4], I32)], num_heads=heads, batch=(0, 1, 2, 4), **loose)
    case('mha_attention_bias', 'MultiHeadAttention', [q, k, v, None, None, real(1, heads, s, 7)], num_heads=heads, batch=(0, 1, 2), **loose)
    case('mha_causal', 'MultiHeadAttention', [q, *same], num_heads=heads, unidirectional=1, batch=(0, 1, 2), **loose)
    case('mha_past', 'MultiHeadAttention', [q, *same, None, None, None, real(b, heads, 3, size), real(b, heads, 3, size)], 3, num_heads=heads,
         batch=(0, 1, 2, 6, 7), **loose)
    case('mha_present', 'MultiHeadAttention', [q, *same], 3, num_heads=heads, **loose)
    case('mha_cache', 'MultiHeadAttention', [q, real(b, heads, 7, size), real(b, heads, 7, size)], num_heads=heads, batch=(0, 1, 2), **loose)
    case('mha_packed_qkv', 'MultiHeadAttention', [real(b, s, heads, 3, size)], num_heads=heads, **loose,
         expected=lambda i: [attend(*(i[0][:, :, :, n].transpose(0, 2, 1, 3) for n in range(3)))])
    case('mha_packed_kv', 'MultiHeadAttention', [q, real(b, 7, heads, 2, size)], num_heads=heads, **loose,
         expected=lambda i: [attend(i[0].reshape(b, s, heads, size).transpose(0, 2, 1, 3), *(i[1][:, :, :, n].transpose(0, 2, 1, 3) for n in range(2)))])

    cosines, sines = (f(np.arange(16)[:, None] / 3.0 ** np.arange(size // 2)).astype(F) for f in (np.cos, np.sin))
    positions = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]])
    for interleaved in (0, 1):
        case(f'rotary_{interleaved}', 'RotaryEmbedding', [q, positions, cosines, sines], interleaved=interleaved, constant=(2, 3), batch=(0, 1), **loose)
        case(f'rotary_heads_{interleaved}', 'RotaryEmbedding', [real(b, heads, s, size), positions, cosines, sines], interleaved=interleaved, constant=(2, 3),
             batch=(0, 1), **loose)
    case('rotary_offset', 'RotaryEmbedding', [q, np.array([3]), cosines, sines], constant=(2, 3), batch=(0,), **loose)
    case('rotary_partial', 'RotaryEmbedding', [q, positions, cosines[:, :1].copy(), sines[:, :1].copy()], num_heads=heads, rotary_embedding_dim=2, constant=(2, 3), **loose)
    cosines, sines = (f(np.arange(32)[:, None] / 3.0 ** np.arange(8)).astype(F) for f in (np.cos, np.sin))
    wide, narrow = 4 * 16, 2 * 16

    def grouped(batch, length, before):
        total = length + before
        return [real(batch, length, wide), real(batch, length, narrow), real(batch, length, narrow), real(batch, 2, before, 16), real(batch, 2, before, 16),
                np.full(batch, total - 1, I32), np.array(total, I32), cosines, sines]
    group = dict(outputs=3, num_heads=4, kv_num_heads=2, constant=(7, 8), rtol=1e-3, atol=1e-3)
    case('gqa_prompt', 'GroupQueryAttention', grouped(2, 6, 0)[:3] + [None, None] + grouped(2, 6, 0)[5:7], **{**group, 'constant': ()}, batch=(0, 1, 2, 5))
    case('gqa_prompt_rotary', 'GroupQueryAttention', grouped(2, 6, 0)[:3] + [None, None] + grouped(2, 6, 0)[5:], do_rotary=1, **group)
    case('gqa_decode', 'GroupQueryAttention', grouped(1, 1, 5), do_rotary=1, **group, batch=(0, 1, 2, 3, 4, 5))
    case('gqa_decode_interleaved', 'GroupQueryAttention', grouped(2, 1, 5), do_rotary=1, rotary_interleaved=1, scale=0.2, **group)
    case('gqa_window', 'GroupQueryAttention', grouped(1, 8, 0)[:3] + [None, None] + grouped(1, 8, 0)[5:], do_rotary=1, local_window_size=3, **group)
    case('gqa_softcap', 'GroupQueryAttention', grouped(1, 4, 0)[:3] + [None, None] + grouped(1, 4, 0)[5:7], softcap=5.0, **{**group, 'constant': ()})
    packed = grouped(1, 1, 5)
    case('gqa_packed', 'GroupQueryAttention', [real(1, 1, wide + 2 * narrow), None, None, *packed[3:]], do_rotary=1, **group)
    q8 = integers(0, 256, b, s, 6, dtype=U8)
    case('qattention', 'QAttention', [q8, integers(-99, 99, 6, 3 * hidden, dtype=I8), real(3 * hidden), np.array(.02, F), np.array(.01, F), raw,
                                      np.array(128, U8), np.array(0, I8)], num_heads=heads, constant=(1, 2, 3, 4, 6, 7), batch=(0, 5), **loose)


def pairs(x):
    return np.stack([x.real, x.imag], -1).astype(F)


def attend(q, k, v):
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = (weights / weights.sum(-1, keepdims=True)) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype(q.dtype)


def build(c, symbolic):
    names = ['' if a is None else f'i{i}' for i, a in enumerate(c['inputs'])]
    outputs = [f'o{i}' if c['wants'] is None or i in c['wants'] else '' for i in range(c['outputs'])]
    node = helper.make_node(c['op'], names, outputs, name='node', domain=c['domain'], **c['attributes'])
    inputs, constants = [], []
    for i, array in enumerate(c['inputs']):
        if array is None:
            continue
        if i in c['constant']:
            constants.append(numpy_helper.from_array(array, names[i]))
            continue
        shape = list(array.shape)
        if symbolic and i in c['batch']:
            shape[0] = 'batch'
        dtype = onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs.append(helper.make_tensor_value_info(names[i], dtype, shape))
    graph = helper.make_graph([node], c['name'], inputs, [helper.make_empty_tensor_value_info(name) for name in outputs if name], constants)
    opsets = [helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1), helper.make_opsetid('ai.onnx.ml', 4 if 'LabelEncoder' in c['op'] else 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def proto(array, name):
    return numpy_helper.from_array(np.asarray(array), name)


def run_peer(c):
    """Inputs by name, and the outputs wanted."""
    feeds = {f'i{i}': a for i, a in enumerate(c['inputs']) if a is not None and i not in c['constant']}
    if c['expected']:
        return feeds, c['expected'](c['inputs'])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(build(c, False).SerializeToString(), options, providers=['CPUExecutionProvider'])
    return feeds, session.run(None, feeds)


def save(c, folder):
    """The case as a folder of test/conformance/cases."""
    data = folder / 'test_data_set_0'
    shutil.rmtree(folder, ignore_errors=True)
    data.mkdir(parents=True)
    feeds, wanted = run_peer(c)
    onnx.save(build(c, bool(c['batch'])), folder / 'model.onnx')
    for i, (name, array) in enumerate(feeds.items()):
        (data / f'input_{i}.pb').write_bytes(proto(array, name).SerializeToString())
    for i, array in enumerate(wanted):
        array = np.asarray(array)
        (data / f'output_{i}.pb').write_bytes(proto(array.astype(object) if array.dtype.kind == 'U' else array, f'o{i}').SerializeToString())
    meta = dict(checks=f'{c["op"]} of {c["domain"] or "ai.onnx"} gives what ONNX Runtime {onnxruntime.__version__} gives.', outcome='value', rtol=c['rtol'],
                atol=c['atol'], opset=21, ops=[c['op']])
    (folder / 'meta.json').write_text(json.dumps(meta, indent=1))


def judge(tools, work, c):
    """Yields why a claim is false."""
    folder = work / c['name']
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    feeds, wanted = run_peer(c)
    (folder / 'in').mkdir()
    (folder / 'want').mkdir()
    for i, (name, array) in enumerate(feeds.items()):
        (folder / f'in/input_{i}.pb').write_bytes(proto(array, name).SerializeToString())
    for i, array in enumerate(wanted):
        array = np.asarray(array)
        (folder / f'want/output_{i}.pb').write_bytes(proto(array.astype(object) if array.dtype.kind == 'U' else array, '').SerializeToString())
    for symbolic in (False, True) if c['batch'] else (False,):
        onnx.save(build(c, symbolic), folder / 'model.onnx')
        for level in ('-O0', '-O3'):
            how = f'{level}{" symbolic" if symbolic else ""}: '
            result = tools.compile(folder / 'model.onnx', folder / 'model.firn', level)
            if result.status != product.DONE:
                yield how + f'{result.describe()}: {result.message.strip()[:300]}'
                continue
            shutil.rmtree(folder / 'got', ignore_errors=True)
            (folder / 'got').mkdir()
            result = tools.run(folder / 'model.firn', folder / 'in', folder / 'got')
            if result.status != product.DONE:
                yield how + f'{result.describe()}: {result.message.strip()[:300]}'
                continue
            for i in range(len(wanted)):
                path = folder / f'got/output_{i}.pb'
                want, got = product.load_tensor(folder / f'want/output_{i}.pb'), product.load_tensor(path)
                a, b = numpy_helper.to_array(got), numpy_helper.to_array(want)
                if c['atol'] >= 1 and a.dtype.kind in 'iu' and a.shape == b.shape and a.dtype == b.dtype:
                    error = np.abs(a.astype(np.int64) - b.astype(np.int64))
                    why = f'differs by {error.max()}' if error.max(initial=0) > 1 else ''
                else:
                    why = product.difference(got, want, c['rtol'], c['atol'])
                if why:
                    yield how + f'output {i}: {why}'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/conformance/peer')
    parser.add_argument('--only', default='', metavar='TEXT')
    parser.add_argument('--save', nargs='+', default=[], metavar='NAME', help='writes these cases into test/conformance/cases instead')
    args = parser.parse_args()
    for family in (learning, layers, quantised, attentions):
        family()
    if args.save:
        for c in CASES:
            if c['name'] in args.save:
                save(c, HERE / 'cases' / f'{"contrib" if c["domain"] == "com.microsoft" else "learning"}_{c["name"]}')
        return 0
    tools = product.Tools(args.build)
    chosen = [c for c in CASES if args.only in c['name']]

    def why(c):
        try:
            return list(judge(tools, args.work, c))
        except Exception as error:
            return [f'{type(error).__name__}: {str(error)[:300]}']
    failed = 0
    for c, reasons in zip(chosen, product.parallel(why, chosen)):
        failed += bool(reasons)
        if reasons:
            print(f'FAILED {c["name"]}: {reasons[0]}')
    print(f'{len(chosen) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
