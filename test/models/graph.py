"""A small builder of ONNX graphs with seeded random weights."""
import zlib

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Nodes and weights in order of use. A value is its name; weights are drawn from a generator seeded by the name of the
    graph, so two builds give the same bytes. Weights are never constant: a splat folds to nothing and measures nothing."""

    def __init__(self, name):
        self.name = name
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, name, dtype, shape):
        """Makes `value` the graph output `name`."""
        self.nodes.append(helper.make_node('Identity', [value], [name], name=f'{name}/identity'))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, value, dtype=None):
        name = f'weight_{len(self.weights)}'
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value):
        return self.constant(value, np.float32)

    def ints(self, *values):
        return self.constant(values, np.int64)

    def normal(self, shape, deviation):
        return self.constant(self.random.standard_normal(shape, np.float32) * np.float32(deviation))

    def uniform(self, shape, low, high):
        return self.constant(self.random.uniform(low, high, shape), np.float32)

    def he(self, shape, fan_in, gain=2.0):
        """He's initialisation keeps the variance of activations through a ReLU (gain 2) or a linear layer (gain 1)."""
        return self.normal(shape, (gain / fan_in)**0.5)

    def node(self, operator, *inputs, outputs=1, **attributes):
        """Appends a node and returns its output, or the tuple of its outputs. `outputs` is a count or a list of names."""
        label = f'{operator}_{len(self.nodes)}'
        names = outputs if isinstance(outputs, list) else [f'{label}/{i}' for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=label, **attributes))
        return names[0] if len(names) == 1 else tuple(names)

    def model(self, opset):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8, producer_name='firn-test-models')
        checker.check_model(model)
        return model
