"""Small wrong models, one problem (or one family of problems) each. `MODELS` maps a name to a function that gives the file's bytes, or a
(bytes, suffix) pair; side files are written by the function itself, into the folder that it gets."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, F16, F64, I32, I64, U8, I8, BOOL, STRING = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64,
                                                TensorProto.UINT8, TensorProto.INT8, TensorProto.BOOL, TensorProto.STRING)
OPSET = 22
MODELS = {}


def case(function):
    MODELS[function.__name__] = function
    return function


def add(name, function):
    MODELS[name] = function


def value(name, dtype=F32, dims=None):
    return helper.make_tensor_value_info(name, dtype, dims)


def const(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def node(operator, inputs, outputs, name='n', **attributes):
    return helper.make_node(operator, inputs.split(',') if inputs else [], outputs.split(',') if outputs else [], name=name, **attributes)


def proto(nodes, inputs, outputs=('y',), constants=(), opset=OPSET, ir_version=10, functions=(), opsets=()):
    outputs = [output if not isinstance(output, str) else value(output) for output in outputs]
    graph = helper.make_graph(nodes, 'wrong', inputs, outputs, list(constants))
    imports = [helper.make_opsetid('', opset)] if opset else []
    model = helper.make_model(graph, opset_imports=imports + [helper.make_opsetid(*entry) for entry in opsets], functions=functions)
    model.ir_version = ir_version
    if not imports and not opsets:
        del model.opset_import[:]
    return model


def model(*args, **kwargs):
    return proto(*args, **kwargs).SerializeToString()


def one(name, operator, inputs, constants=(), opset=OPSET, outputs='y', **attributes):
    """A model of one node. `inputs`: name to dims, or to (dtype, dims); names of constants follow in the order given."""
    values = [value(key, *(dims if isinstance(dims, tuple) else (F32, dims))) for key, dims in inputs.items()]
    names = list(inputs) + [tensor.name if tensor is not None else '' for tensor in constants]
    add(name, lambda folder: model([node(operator, ','.join(names), outputs, **attributes)], values, outputs.split(','),
                                   [tensor for tensor in constants if tensor is not None], opset))


def relu(**kwargs):
    return proto([node('Relu', 'x', 'y')], [value('x', F32, [2, 3])], **kwargs)


# --- the file --------------------------------------------------------------------------------------------------------
add('file_empty', lambda folder: b'')
add('file_is_no_protobuf', lambda folder: b'PK\x03\x04 this is a zip archive')
add('file_is_text', lambda folder: b'{"model": "json"}')
add('file_cut_off', lambda folder: relu().SerializeToString()[:-10])
add('file_without_a_graph', lambda folder: onnx.ModelProto(ir_version=8, producer_name='nobody').SerializeToString())
add('format_version_unknown', lambda folder: relu(ir_version=99).SerializeToString())
add('firn_text_malformed', lambda folder: (b'format: "firn.v1"\ngraph { nodes { op: "Relu" inputs: ["x"] outputs: ["y" } }', '.fpbtxt'))
add('firn_text_of_another_format', lambda folder: (b'format: "firn.v9"\ngraph { }', '.fpbtxt'))
add('firn_text_with_problems', lambda folder: (b'''format: "firn.v1"
graph {
  inputs { name: "x" type { dtype: F32 shape { dims: ["2", "3"] } } }
  constants { name: "w" dtype: F32 dims: [4] floats { values: [1, 2, 3] } }
  nodes { name: "sum" op: "Add" inputs: ["x", "w"] outputs: ["s"] }
  nodes { name: "typo" op: "Reluu" inputs: ["s"] outputs: ["y"] }
  outputs { name: "y" }
}''', '.fpbtxt'))
add('firn_constant_side_file_missing', lambda folder: (b'''format: "firn.v1"
graph {
  inputs { name: "x" type { dtype: F32 shape { dims: ["2"] } } }
  constants { name: "w" dtype: F32 dims: [2] external { location: "nowhere.bin" length: 8 } }
  nodes { name: "sum" op: "Add" inputs: ["x", "w"] outputs: ["y"] }
  outputs { name: "y" }
}''', '.fpbtxt'))


# --- tensors ---------------------------------------------------------------------------------------------------------
def with_tensor(name, dtype=F32, dims=(2, 3), **fields):
    def build(folder):
        tensor = TensorProto(name='w', data_type=dtype, dims=dims)
        for key, content in fields.items():
            if key == 'external':
                tensor.data_location = TensorProto.EXTERNAL
                for entry in content.items():
                    tensor.external_data.add(key=entry[0], value=entry[1])
            elif isinstance(content, (bytes, int)):
                setattr(tensor, key, content)
            else:
                getattr(tensor, key).extend(content)
        return model([node('Add', 'x,w', 'y')], [value('x', F32, [2, 3])], constants=[tensor])
    add(name, build)


with_tensor('tensor_raw_data_too_short', raw_data=b'\0' * 20)
with_tensor('tensor_raw_data_too_long', raw_data=b'\0' * 28)
with_tensor('tensor_too_few_floats', float_data=[1, 2, 3])
with_tensor('tensor_values_in_the_wrong_field', int32_data=[1, 2, 3, 4, 5, 6])
with_tensor('tensor_too_few_strings', dtype=STRING, string_data=[b'a', b'b'])
with_tensor('tensor_without_contents')
with_tensor('tensor_negative_dimension', dims=(-2, 3), float_data=[1])
with_tensor('tensor_dimensions_overflow', dims=(1 << 40, 1 << 40), float_data=[1])
with_tensor('tensor_unknown_element_type', dtype=77, raw_data=b'\0' * 24)
with_tensor('tensor_element_type_undefined', dtype=0, raw_data=b'\0' * 24)
with_tensor('external_outside_the_folder', external={'location': '../secret.bin'})
with_tensor('external_absolute_path', external={'location': '/etc/passwd'})
with_tensor('external_missing', external={'location': 'nowhere.bin'})
with_tensor('external_without_location', external={'offset': '0'})
with_tensor('external_offset_is_no_number', external={'location': 'short.bin', 'offset': 'ten'})
with_tensor('external_negative_offset', external={'location': 'short.bin', 'offset': '-4'})
with_tensor('external_too_short', external={'location': 'short.bin'})
with_tensor('external_offset_beyond_the_end', external={'location': 'short.bin', 'offset': '4096'})
with_tensor('external_wrong_length', external={'location': 'short.bin', 'length': '10'})


@case
def sparse_index_out_of_range(folder):
    sparse = helper.make_sparse_tensor(const('w', [1.0]), const('i', [99], np.int64), [2, 3])
    made = relu()
    made.graph.sparse_initializer.append(sparse)
    made.graph.node[0].CopyFrom(node('Add', 'x,w', 'y'))
    return made.SerializeToString()


# --- names and edges -------------------------------------------------------------------------------------------------
@case
def cyclic(folder):
    return model([node('Add', 'x,c', 'a', 'p'), node('Neg', 'a', 'b', 'q'), node('Relu', 'b', 'c', 'r')], [value('x', F32, [2])], ['c'])


@case
def reads_itself(folder):
    return model([node('Add', 'x,y', 'y')], [value('x', F32, [2])])


@case
def dangling_names(folder):
    return model([node('Add', 'x,encoder/weigth', 'a', 'sum'), node('Neg', 'nowhere', 'b', 'minus')], [value('x', F32, [2])], ['a', 'bb'],
                 [const('encoder/weight', [1, 2])])


@case
def duplicate_outputs(folder):
    return model([node('Relu', 'x', 'a', 'first'), node('Neg', 'x', 'a', 'second'), node('Split', 'x', 'b,b', 'third', num_outputs=2)],
                 [value('x', F32, [2])], ['a'])


@case
def duplicate_inputs_and_initializers(folder):
    return model([node('Add', 'x,w', 'y')], [value('x', F32, [2]), value('x', F32, [3])], ['y'], [const('w', [1, 2]), const('w', [3, 4])])


add('output_computed_by_nobody', lambda folder: model([node('Relu', 'x', 'y')], [value('x', F32, [2])], ['y', 'logits']))
add('graph_without_outputs', lambda folder: model([node('Relu', 'x', 'y')], [value('x', F32, [2])], []))
add('input_without_a_name', lambda folder: model([node('Relu', 'x', 'y')], [value('x', F32, [2]), value('', F32, [2])]))
add('input_without_a_type', lambda folder: model([node('Relu', 'x', 'y')], [onnx.ValueInfoProto(name='x')]))
add('input_is_a_map', lambda folder: model([node('Relu', 'x', 'y')], [helper.make_value_info('x', helper.make_map_type_proto(
    I64, helper.make_tensor_type_proto(F32, [2])))]))
add('input_is_sparse', lambda folder: model([node('Relu', 'x', 'y')], [helper.make_sparse_tensor_value_info('x', F32, [2])]))


# --- operators, opsets -----------------------------------------------------------------------------------------------
one('operator_unknown', 'Frobnicate', {'x': [2]})
one('operator_misspelt', 'Softmaxx', {'x': [2]})
one('operator_without_a_name', '', {'x': [2]})
one('operator_newer_than_the_opset', 'Gelu', {'x': [2]}, opset=13)
one('domain_unknown', 'Relu', {'x': [2]}, domain='com.example')
add('domain_known_operator_unknown', lambda folder: model([node('Frob', 'x', 'y', domain='com.example')], [value('x', F32, [2])],
                                                          opsets=[('com.example', 1)]))
add('opset_missing', lambda folder: relu(opset=None).SerializeToString())
add('opset_of_the_future', lambda folder: relu(opset=999).SerializeToString())
add('opset_zero', lambda folder: relu(opsets=[('ai.onnx.ml', 0)]).SerializeToString())
add('opset_twice', lambda folder: relu(opsets=[('', 13)]).SerializeToString())


@case
def many_problems_at_once(folder):
    return model([node('Frobnicate', 'x', 'a', 'first'), node('MatMul', 'x,w', 'b', 'second'), node('Relu', 'nowhere', 'c', 'third'),
                  node('Transpose', 'x', 'd', 'fourth', perm=[0, 0]), node('Frobnicate', 'x', 'e', 'fifth'), node('Conv', 'x', 'f', 'sixth'),
                  node('Softmax', 'x', 'g', 'seventh', axis=9), node('Relu', 'x', 'y', 'good')],
                 [value('x', F32, [2, 5])], list('abcdefgy'), [const('w', np.ones((4, 3)))])


# --- inputs and attributes -------------------------------------------------------------------------------------------
one('inputs_too_few', 'Add', {'x': [2]})
one('inputs_too_many', 'Relu', {'x': [2], 'z': [2]})
one('inputs_required_one_left_out', 'Conv', {'x': [1, 1, 4, 4]}, [None, const('b', [1])])
one('inputs_none', 'Concat', {}, axis=0)
one('outputs_too_many', 'Relu', {'x': [2]}, outputs='y,z')
one('attribute_missing', 'Cast', {'x': [2]})
one('attribute_missing_of_concat', 'Concat', {'x': [2], 'z': [2]})
one('attribute_of_the_wrong_kind', 'Transpose', {'x': [2, 3]}, perm='01')
one('attribute_float_for_an_int', 'Softmax', {'x': [2, 3]}, axis=1.0)
one('attribute_unknown_is_a_warning', 'Relu', {'x': [2]}, alpha=1)
one('attribute_with_an_unknown_value', 'Resize', {'x': [1, 1, 4, 4]}, [None, const('s', [1, 1, 2, 2])], mode='bicubic9')
one('attribute_direction_unknown', 'LSTM', {'x': [5, 1, 3], 'w': [1, 16, 3], 'r': [1, 16, 4]}, hidden_size=4, direction='upwards')
one('attribute_cast_to_nothing', 'Cast', {'x': [2]}, to=99)


@case
def attribute_given_twice(folder):
    made = proto([node('Softmax', 'x', 'y', axis=1)], [value('x', F32, [2, 3])])
    made.graph.node[0].attribute.add().CopyFrom(made.graph.node[0].attribute[0])
    return made.SerializeToString()


@case
def attribute_tensor_damaged(folder):
    made = proto([node('ConstantOfShape', 's', 'y')], [], constants=[const('s', [2], np.int64)])
    made.graph.node[0].attribute.append(helper.make_attribute('value', TensorProto(name='v', data_type=F32, dims=[1], raw_data=b'12')))
    return made.SerializeToString()


# --- element types ---------------------------------------------------------------------------------------------------
one('dtype_mixed_in_add', 'Add', {'x': [2], 'z': (I64, [2])})
one('dtype_mixed_in_matmul', 'MatMul', {'x': [2, 3], 'w': (F16, [3, 2])})
one('dtype_mixed_in_concat', 'Concat', {'x': [2], 'z': (F64, [2])}, axis=0)
one('dtype_mixed_in_gemm', 'Gemm', {'x': [2, 3], 'w': [3, 2], 'c': (F64, [2])})
one('dtype_condition_is_no_bool', 'Where', {'c': [2], 'x': [2], 'z': [2]})
one('dtype_indices_are_floats', 'Gather', {'x': [3, 2], 'i': [2]})
one('dtype_shape_is_float', 'Reshape', {'x': [2, 3], 's': [2]})
one('dtype_sqrt_of_bool', 'Sqrt', {'x': (BOOL, [2])})
one('dtype_not_of_float', 'Not', {'x': [2]})
one('dtype_add_of_strings', 'Add', {'x': (STRING, [2]), 'z': (STRING, [2])})
one('dtype_conv_of_ints', 'Conv', {'x': (I32, [1, 1, 4, 4]), 'w': (I32, [1, 1, 3, 3])})
one('dtype_softmax_of_ints', 'Softmax', {'x': (I64, [2, 3])})
one('dtype_zero_point_of_another_type', 'QuantizeLinear', {'x': [2]}, [const('s', 0.5), const('z', 0, np.int32)])
one('dtype_unknown_in_input', 'Relu', {'x': (0, [2])})

# --- dimensions ------------------------------------------------------------------------------------------------------
one('shape_matmul_inner', 'MatMul', {'x': [2, 5]}, [const('w', np.ones((4, 3)))])
one('shape_matmul_batch', 'MatMul', {'x': [2, 3, 4], 'w': [3, 4, 5]})
one('shape_matmul_scalar', 'MatMul', {'x': [], 'w': [3]})
one('shape_gemm_rank', 'Gemm', {'x': [1, 2, 3], 'w': [3, 2]})
one('shape_gemm_bias', 'Gemm', {'x': [2, 3], 'w': [3, 4]}, [const('c', [1, 2, 3])])
one('shape_broadcast', 'Add', {'x': [2, 5], 'z': [3, 5]})
one('shape_where', 'Where', {'c': (BOOL, [2]), 'x': [3], 'z': [3]})
one('shape_conv_channels', 'Conv', {'x': [1, 3, 8, 8]}, [const('w', np.ones((8, 5, 3, 3)))])
one('shape_conv_groups', 'Conv', {'x': [1, 6, 8, 8]}, [const('w', np.ones((7, 3, 3, 3)))], group=2)
one('shape_conv_kernel_shape', 'Conv', {'x': [1, 3, 8, 8]}, [const('w', np.ones((8, 3, 3, 3)))], kernel_shape=[5, 5])
one('shape_conv_kernel_too_large', 'Conv', {'x': [1, 1, 2, 2]}, [const('w', np.ones((1, 1, 5, 5)))])
one('shape_conv_bias', 'Conv', {'x': [1, 1, 8, 8]}, [const('w', np.ones((4, 1, 3, 3))), const('b', [1, 2, 3])])
one('shape_conv_rank', 'Conv', {'x': [1, 3, 8]}, [const('w', np.ones((8, 3, 3, 3)))])
one('strides_zero', 'Conv', {'x': [1, 1, 8, 8]}, [const('w', np.ones((1, 1, 3, 3)))], strides=[0, 1])
one('strides_negative', 'MaxPool', {'x': [1, 1, 8, 8]}, kernel_shape=[2, 2], strides=[-1, 1])
one('strides_too_many', 'MaxPool', {'x': [1, 1, 8, 8]}, kernel_shape=[2, 2], strides=[1, 1, 1])
one('dilations_zero', 'Conv', {'x': [1, 1, 8, 8]}, [const('w', np.ones((1, 1, 3, 3)))], dilations=[1, 0])
one('pads_negative_of_conv', 'Conv', {'x': [1, 1, 8, 8]}, [const('w', np.ones((1, 1, 3, 3)))], pads=[-1, 0, 0, 0])
one('pads_too_few', 'AveragePool', {'x': [1, 1, 8, 8]}, kernel_shape=[2, 2], pads=[1, 1])
one('shape_conv_transpose_channels', 'ConvTranspose', {'x': [1, 3, 8, 8]}, [const('w', np.ones((4, 2, 3, 3)))])
one('shape_pool_rank', 'GlobalAveragePool', {'x': [3]})
one('shape_concat_off_axis', 'Concat', {'x': [2, 3], 'z': [2, 4]}, axis=0)
one('shape_concat_rank', 'Concat', {'x': [2, 3], 'z': [2]}, axis=0)
one('axis_concat', 'Concat', {'x': [2, 3], 'z': [2, 3]}, axis=2)
one('axis_softmax', 'Softmax', {'x': [2, 3]}, axis=-3)
one('axis_gather', 'Gather', {'x': [2, 3]}, [const('i', [0], np.int64)], axis=4)
one('axis_reduce', 'ReduceSum', {'x': [2, 3]}, [const('a', [5], np.int64)])
one('axis_squeeze_of_more_than_one', 'Squeeze', {'x': [2, 3]}, [const('a', [1], np.int64)])
one('axis_unsqueeze_twice', 'Unsqueeze', {'x': [2]}, [const('a', [0, 0], np.int64)])
one('index_gather', 'Gather', {'x': [3, 4]}, [const('i', [99], np.int64)])
one('index_gather_elements_rank', 'GatherElements', {'x': [3, 4]}, [const('i', [0], np.int64)])
one('index_gather_nd_too_long', 'GatherND', {'x': [3, 4]}, [const('i', [[0, 0, 0]], np.int64)])
one('shape_reshape_elements', 'Reshape', {'x': [2, 5]}, [const('s', [7], np.int64)])
one('shape_reshape_two_unknown', 'Reshape', {'x': [2, 6]}, [const('s', [-1, -1], np.int64)])
one('shape_reshape_below_minus_one', 'Reshape', {'x': [2, 6]}, [const('s', [-2, 6], np.int64)])
one('shape_reshape_remainder', 'Reshape', {'x': [2, 5]}, [const('s', [-1, 3], np.int64)])
one('shape_transpose', 'Transpose', {'x': [2, 3]}, perm=[0, 1, 2])
one('shape_expand', 'Expand', {'x': [2, 3]}, [const('s', [2, 4], np.int64)])
one('shape_tile_repeats', 'Tile', {'x': [2, 3]}, [const('r', [2], np.int64)])
one('shape_pad_count', 'Pad', {'x': [2, 3]}, [const('p', [1, 1, 1], np.int64)])
one('shape_pad_cuts_too_much', 'Pad', {'x': [2, 3]}, [const('p', [0, -4, 0, 0], np.int64)])
one('shape_split_sum', 'Split', {'x': [6]}, [const('s', [2, 3], np.int64)], outputs='y,z')
one('shape_split_count', 'Split', {'x': [6]}, [const('s', [2, 2, 2], np.int64)], outputs='y,z')
one('shape_slice_lengths', 'Slice', {'x': [6]}, [const('b', [0], np.int64), const('e', [3, 4], np.int64)])
one('shape_slice_step_zero', 'Slice', {'x': [6]}, [const('b', [0], np.int64), const('e', [3], np.int64), const('a', [0], np.int64), const('t', [0], np.int64)])
one('shape_resize_scales', 'Resize', {'x': [1, 1, 4, 4]}, [None, const('s', [2, 2])])
one('shape_resize_negative_scale', 'Resize', {'x': [1, 1, 4, 4]}, [None, const('s', [1, 1, -2, 2])])
one('shape_resize_neither', 'Resize', {'x': [1, 1, 4, 4]})
one('shape_depth_to_space', 'DepthToSpace', {'x': [1, 3, 2, 2]}, blocksize=2)
one('shape_top_k', 'TopK', {'x': [2, 3]}, [const('k', [5], np.int64)], outputs='y,z')
one('shape_one_hot_values', 'OneHot', {'i': (I64, [2])}, [const('d', 3, np.int64), const('v', [0, 1, 2])])
one('shape_lstm_weights', 'LSTM', {'x': [5, 1, 3], 'w': [1, 15, 3], 'r': [1, 16, 4]}, hidden_size=4)
one('shape_lstm_recurrence', 'LSTM', {'x': [5, 1, 3], 'w': [1, 16, 3], 'r': [1, 16, 5]}, hidden_size=4)
one('shape_gru_directions', 'GRU', {'x': [5, 1, 3], 'w': [1, 12, 3], 'r': [1, 12, 4]}, hidden_size=4, direction='bidirectional')
one('shape_layer_norm_scale', 'LayerNormalization', {'x': [2, 8]}, [const('s', np.ones(16))])
one('shape_batch_norm_mean', 'BatchNormalization', {'x': [1, 3, 4, 4]}, [const('s', np.ones(3)), const('b', np.ones(3)), const('m', np.ones(4)),
                                                                        const('v', np.ones(3))])
one('shape_instance_norm', 'InstanceNormalization', {'x': [1, 3, 4]}, [const('s', np.ones(3)), const('b', np.ones(2))])
one('shape_einsum_dims', 'Einsum', {'x': [2, 3], 'z': [4, 5]}, equation='ij,jk->ik')
one('shape_einsum_terms', 'Einsum', {'x': [2, 3]}, equation='ij,jk->ik')
one('shape_einsum_rank', 'Einsum', {'x': [2, 3]}, equation='ijk->i')
one('shape_einsum_malformed', 'Einsum', {'x': [2, 3]}, equation='i1->i')
one('shape_attention_heads', 'Attention', {'q': [1, 4, 30], 'k': [1, 4, 30], 'v': [1, 4, 30]}, opset=23, q_num_heads=4, kv_num_heads=4)
one('shape_quantise_axis', 'QuantizeLinear', {'x': [2, 3]}, [const('s', [1, 1, 1, 1])], axis=1)
one('shape_dequantise_zero_point', 'DequantizeLinear', {'x': (U8, [2, 3])}, [const('s', [1, 1, 1]), const('z', [0, 0], np.uint8)], axis=1)
one('shape_qlinear_conv_channels', 'QLinearConv', {'x': (U8, [1, 2, 4, 4])}, [
    const('xs', 1.0), const('xz', 0, np.uint8), const('w', np.ones((1, 3, 3, 3)), np.uint8), const('ws', 1.0), const('wz', 0, np.uint8),
    const('ys', 1.0), const('yz', 0, np.uint8)])
one('shape_scatter_updates', 'ScatterElements', {'x': [3, 3]}, [const('i', [[0, 1]], np.int64), const('u', [[1.0, 2.0, 3.0]])])
one('shape_range_delta_zero', 'Range', {}, [const('a', 0, np.int64), const('b', 3, np.int64), const('d', 0, np.int64)])
one('shape_constant_of_negative', 'ConstantOfShape', {}, [const('s', [-3], np.int64)])
one('shape_gridsample', 'GridSample', {'x': [1, 1, 4, 4], 'g': [1, 2, 2, 3]})
one('shape_cumsum_axis', 'CumSum', {'x': [2, 3]}, [const('a', 7, np.int64)])
one('shape_prelu_slope', 'PRelu', {'x': [2, 3]}, [const('s', [1, 2])])


@case
def output_declared_and_contradicted(folder):
    return model([node('MatMul', 'x,w', 'y')], [value('x', F32, [2, 3])], [value('y', F32, [2, 5])], [const('w', np.ones((3, 4)))])


@case
def dim_param_for_two_sizes(folder):
    return model([node('MatMul', 'x,w', 'h', 'left'), node('MatMul', 'z,v', 'g', 'right'), node('Add', 'h,g', 'y', 'sum')],
                 [value('x', F32, ['n', 'k']), value('z', F32, ['n', 'k'])], ['y'], [const('w', np.ones((3, 4))), const('v', np.ones((5, 4)))])


# --- control flow ----------------------------------------------------------------------------------------------------
def graph(nodes, inputs, outputs, constants=()):
    return helper.make_graph(nodes, 'nested', inputs, [value(name) if isinstance(name, str) else name for name in outputs], list(constants))


def conditional(then, other, inputs=()):
    return model([node('If', 'c', 'y', then_branch=then, else_branch=other)], [value('c', BOOL, []), *inputs])


@case
def branches_of_different_types(folder):
    return conditional(graph([node('Neg', 'x', 'a')], [], ['a']), graph([node('Cast', 'x', 'b', to=I64)], [], ['b']), [value('x', F32, [2])])


@case
def branch_reads_what_does_not_exist(folder):
    return conditional(graph([node('Neg', 'xx', 'a')], [], ['a']), graph([node('Relu', 'x', 'b')], [], ['b']), [value('x', F32, [2])])


@case
def branch_with_the_wrong_number_of_outputs(folder):
    return conditional(graph([node('Neg', 'x', 'a')], [], ['a', 'x']), graph([node('Relu', 'x', 'b')], [], []), [value('x', F32, [2])])


@case
def branches_broken_both(folder):
    return conditional(graph([node('MatMul', 'x,x', 'a', 'left')], [], ['a']), graph([node('Transpose', 'x', 'b', 'right', perm=[1, 1])], [], ['b']),
                       [value('x', F32, [2, 3])])


@case
def branch_value_used_outside(folder):
    return model([node('If', 'c', 'y', then_branch=graph([node('Neg', 'x', 'a')], [], ['a']), else_branch=graph([node('Relu', 'x', 'b')], [], ['b'])),
                  node('Add', 'y,a', 'z', 'reader')], [value('c', BOOL, []), value('x', F32, [2])], ['z'])


def loop(body, outputs='y'):
    return model([node('Loop', 'm,,x', outputs, body=body)], [value('m', I64, []), value('x', F32, [2])], outputs.split(','))


@case
def loop_body_with_too_few_inputs(folder):
    return loop(graph([node('Identity', 'c', 'd')], [value('i', I64, []), value('c', BOOL, [])], ['d']))


@case
def loop_body_with_too_few_outputs(folder):
    return loop(graph([node('Neg', 'v', 'w')], [value('i', I64, []), value('c', BOOL, []), value('v')], ['w']))


@case
def loop_carried_value_changes_its_type(folder):
    return loop(graph([node('Identity', 'c', 'd'), node('Cast', 'v', 'w', to=I64)], [value('i', I64, []), value('c', BOOL, []), value('v')], ['d', 'w']))


@case
def loop_without_its_body(folder):
    return model([node('Loop', 'm,,x', 'y')], [value('m', I64, []), value('x', F32, [2])])


@case
def loop_carried_value_left_out(folder):
    body = graph([node('Identity', 'c', 'd'), node('Neg', 'v', 'w')], [value('i', I64, []), value('c', BOOL, []), value('v')], ['d', 'w'])
    return model([node('Loop', 'm,,', 'y', body=body)], [value('m', I64, [])])


@case
def scan_body_with_the_wrong_arity(folder):
    return model([node('Scan', 'x', 'y', num_scan_inputs=1, body=graph([node('Add', 'a,b', 's')], [value('a'), value('b')], ['s']))],
                 [value('x', F32, [4, 2])])


# --- functions, nesting, limits --------------------------------------------------------------------------------------
def function(name, nodes, inputs='a', outputs='b'):
    return helper.make_function('local', name, inputs.split(','), outputs.split(','), nodes,
                                [helper.make_opsetid('', OPSET), helper.make_opsetid('local', 1)])


def calls(functions, inputs='x', outputs='y'):
    return model([node('F', inputs, outputs, domain='local')], [value('x', F32, [2])], outputs.split(','), opsets=[('local', 1)], functions=functions)


add('function_recursive', lambda folder: calls([function('F', [node('F', 'a', 'b', domain='local')])]))
add('function_recursive_by_another', lambda folder: calls([function('F', [node('G', 'a', 'b', domain='local')]),
                                                           function('G', [node('F', 'a', 'b', domain='local')])]))
add('function_called_with_too_many_inputs', lambda folder: calls([function('F', [node('Neg', 'a', 'b')])], inputs='x,x'))
add('function_defined_twice', lambda folder: calls([function('F', [node('Neg', 'a', 'b')]), function('F', [node('Relu', 'a', 'b')])]))
add('function_with_a_wrong_node', lambda folder: calls([function('F', [node('Frobnicate', 'a', 'b', 'inner')])]))
add('limit_of_nodes', lambda folder: calls([function('F' if i == 0 else f'F{i}', [node(f'F{i + 1}', 'a', 't', domain='local'),
                                                                              node(f'F{i + 1}', 't', 'b', domain='local')]) for i in range(30)]))


@case
def limit_of_depth(folder):
    inner = graph([node('Neg', 'x', 'y')], [], ['y'])
    for _ in range(20):
        inner = graph([node('If', 'c', 'y', then_branch=inner, else_branch=graph([node('Relu', 'x', 'y')], [], ['y']))], [], ['y'])
    return conditional(inner, graph([node('Relu', 'x', 'y')], [], ['y']), [value('x', F32, [2])])


add('limit_of_tensor_bytes', lambda folder: model([node('Add', 'x,w', 'y')], [value('x', F32, [50])], ['y'], [const('w', np.ones(50))]))
add('limit_of_model_bytes', lambda folder: model([node('Add', 'x,w', 'y')], [value('x', F32, [500])], ['y'], [const('w', np.ones(500))]))


@case
def limit_of_folded_bytes(folder):
    sparse = helper.make_sparse_tensor(const('w', [1.0]), const('i', [3], np.int64), [50])
    made = proto([node('Add', 'x,w', 'y')], [value('x', F32, [50])])
    made.graph.sparse_initializer.append(sparse)
    return made.SerializeToString()


@case
def limit_of_external_bytes(folder):
    (folder / 'large.bin').write_bytes(b'\0' * 4000)
    tensor = TensorProto(name='w', data_type=F32, dims=[1000], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key='location', value='large.bin')
    return model([node('Add', 'x,w', 'y')], [value('x', F32, [1000])], constants=[tensor])
