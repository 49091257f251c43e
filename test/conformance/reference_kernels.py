#!/usr/bin/env python3
"""Runs ONNX's node tests on the reference kernels, without compiler or executor between them.

    reference_kernels.py LIBRARY [--only PATTERN] [--verbose]

Interprets each test's graph node by node where all nodes have a kernel and are of a form that the operator's newest
version has too; the other tests are skipped. A node's shapes are inferred from types alone first, and from the values
that its kernel asks for.
Exit status 1 if a test fails.
"""
import argparse
import collections
import ctypes
import fnmatch
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

OK, NEEDS_VALUE = 0, 3
LARGEST_OUTPUT = 1 << 28  # bytes; larger ones come from mutated shapes alone
BITS = [0, 32, 8, 8, 16, 16, 32, 64, 128, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4, 8, 2, 2]
# What a test's output is, where the specification leaves it to chance: only its type is compared.
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}

ROUNDING = "its golden rounds intermediate values elsewhere, and one step of its type exceeds the tolerance"
# Tests that fail by design; one that passes fails the run.
EXPECTED_FAILURES = {
    "test_attention_3d_causal_bf16": ROUNDING,
    "test_attention_3d_causal_bf16_expanded": ROUNDING,
    "test_attention_4d_attn_mask_causal_bf16": ROUNDING,
    "test_attention_4d_causal_bf16": ROUNDING,
    "test_attention_4d_causal_padded_kv_bf16": ROUNDING,
    "test_attention_4d_padded_kv_bf16": ROUNDING,
    "test_attention_4d_attn_mask_causal_bf16_expanded": ROUNDING,
    "test_attention_4d_causal_bf16_expanded": ROUNDING,
    "test_attention_4d_causal_fp16_expanded": ROUNDING,
    "test_attention_4d_causal_padded_kv_bf16_expanded": ROUNDING,
    "test_attention_4d_padded_kv_bf16_expanded": ROUNDING,
    "test_dft_inverse": "its golden holds float32 noise of 2e-7 where the exact result is 0",
}


class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dims", ctypes.c_int64 * 12), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32)]


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_int64)]


class Attribute(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("count", ctypes.c_int64), ("kind", ctypes.c_int64)]


class Call(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.POINTER(View)), ("outputs", ctypes.POINTER(View)), ("attributes", ctypes.POINTER(Attribute)),
        ("input_count", ctypes.c_int32), ("output_count", ctypes.c_int32), ("attribute_count", ctypes.c_int32),
        ("needed", ctypes.c_int32), ("message", ctypes.c_void_p), ("message_capacity", ctypes.c_int64),
        ("scratch", ctypes.c_void_p), ("context", ctypes.c_void_p), ("random", ctypes.c_void_p),
    ]


class Refused(Exception):
    pass


def strings(values, keep):
    array = (String * max(1, len(values)))()
    for slot, value in zip(array, values):
        text = value if isinstance(value, bytes) else str(value).encode()
        buffer = ctypes.create_string_buffer(text, len(text) + 1)
        keep.append(buffer)
        slot.data, slot.length = ctypes.addressof(buffer), len(text)
    keep.append(array)
    return array


def view_of(dtype, array, keep):
    """A view of a numpy array; dtype is ONNX's number."""
    view = View(None, (ctypes.c_int64 * 12)(*array.shape), dtype, array.ndim)
    if array.size == 0:
        return view
    if dtype == TensorProto.STRING:
        view.data = ctypes.addressof(strings(list(array.reshape(-1)), keep))
        return view
    flat = np.ascontiguousarray(array).reshape(-1)
    if BITS[dtype] < 8:
        codes = flat.view(np.uint8) & ((1 << BITS[dtype]) - 1)
        per = 8 // BITS[dtype]
        codes = np.concatenate([codes, np.zeros(-len(codes) % per, np.uint8)]).reshape(-1, per)
        packed = np.zeros(len(codes), np.uint8)
        for k in range(per):
            packed |= codes[:, k] << (k * BITS[dtype])
        flat = packed
    keep.append(flat)
    view.data = flat.ctypes.data
    return view


def array_of(view, keep):
    """The numpy array of a view that `allocate` filled."""
    shape = tuple(view.dims[: view.rank])
    buffer, count = keep[view.data or 0] if view.data else b"", int(np.prod(shape, dtype=np.int64))
    if view.dtype == TensorProto.STRING:
        items = ctypes.cast(view.data, ctypes.POINTER(String)) if count else []
        return np.array([ctypes.string_at(items[i].data, items[i].length).decode() for i in range(count)], dtype=object).reshape(shape)
    numpy_dtype = onnx.helper.tensor_dtype_to_np_dtype(view.dtype)
    if BITS[view.dtype] < 8:
        packed, bits = np.frombuffer(buffer, np.uint8), BITS[view.dtype]
        codes = np.stack([(packed >> (k * bits)) & ((1 << bits) - 1) for k in range(8 // bits)], 1).reshape(-1)[:count]
        tensor = TensorProto(data_type=view.dtype, dims=shape, raw_data=bytes(buffer)[: (count * bits + 7) // 8])
        return numpy_helper.to_array(tensor) if count else np.zeros(shape, numpy_dtype)
    return np.frombuffer(buffer, numpy_dtype, count).reshape(shape)


def attribute_of(proto, keep):
    kinds = {onnx.AttributeProto.INT: 1, onnx.AttributeProto.FLOAT: 2, onnx.AttributeProto.STRING: 3, onnx.AttributeProto.TENSOR: 4,
             onnx.AttributeProto.INTS: 5, onnx.AttributeProto.FLOATS: 6, onnx.AttributeProto.STRINGS: 7}
    value, kind, count = onnx.helper.get_attribute_value(proto), kinds.get(proto.type), 1
    if kind is None:
        raise NotImplementedError(f"attribute {proto.name} of type {proto.type}")
    if kind == 1:
        data = ctypes.c_int64(value)
    elif kind == 2:
        data = ctypes.c_float(value)
    elif kind == 3:
        data, count = ctypes.create_string_buffer(value, len(value) + 1), len(value)
    elif kind == 4:
        data = view_of(value.data_type, numpy_helper.to_array(value), keep)
    elif kind == 7:
        data, count = strings(list(value), keep), len(value)
    else:
        data, count = ((ctypes.c_int64 if kind == 5 else ctypes.c_float) * max(1, len(value)))(*value), len(value)
    name = proto.name.encode()
    keep += [data, name]
    return Attribute(name, ctypes.cast(ctypes.pointer(data), ctypes.c_void_p), count, kind)


class Kernels:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.firn_test_find.restype = ctypes.c_void_p
        self.library.firn_test_find.argtypes = [ctypes.c_char_p]
        for function in (self.library.firn_test_infer, self.library.firn_test_run):
            function.argtypes = [ctypes.c_void_p, ctypes.POINTER(Call)]

    def find(self, node):
        return self.library.firn_test_find(f"{node.domain or 'ai.onnx'}::{node.op_type}".encode())

    def evaluate(self, entry, node, inputs):
        """Outputs of a node on (dtype, array) inputs, None for absent ones."""
        keep = []
        views = [View(rank=-1) if i is None else view_of(*i, keep) for i in inputs]
        typed = [View(None, v.dims, v.dtype, v.rank) for v in views]
        outputs = (View * max(1, len(node.output)))(*[View(rank=0 if name else -1) for name in node.output])
        attributes = [attribute_of(a, keep) for a in node.attribute]
        message, seed = ctypes.create_string_buffer(512), ctypes.c_uint64(1)
        call = Call()
        call.outputs, call.output_count = outputs, len(node.output)
        call.attributes, call.attribute_count = (Attribute * max(1, len(attributes)))(*attributes), len(attributes)
        call.message, call.message_capacity = ctypes.addressof(message), len(message)
        call.random = ctypes.addressof(seed)
        call.input_count = len(views)
        while True:
            call.inputs = (View * max(1, len(typed)))(*typed)
            status = self.library.firn_test_infer(entry, ctypes.byref(call))
            if status != NEEDS_VALUE:
                break
            if typed[call.needed].data == views[call.needed].data:
                raise Refused(f"infer asks for input {call.needed}, which it has")
            typed[call.needed] = views[call.needed]
        if status != OK:
            raise Refused(f"infer: status {status}: {message.value.decode()}")
        buffers = {}
        for view in outputs:
            if view.rank < 0:
                continue
            count = int(np.prod(view.dims[: view.rank], dtype=np.int64))
            size = (count * BITS[view.dtype] + 7) // 8
            if size > LARGEST_OUTPUT:
                raise MemoryError(f"an output of {size} bytes")
            if size:
                buffer = (ctypes.c_uint8 * size)(*([0xCD] * min(size, 4096)))
                view.data = ctypes.addressof(buffer)
                buffers[view.data] = buffer
        call.inputs = (View * max(1, len(views)))(*views)
        status = self.library.firn_test_run(entry, ctypes.byref(call))
        if status != OK:
            raise Refused(f"run: status {status}: {message.value.decode()}")
        return [None if v.rank < 0 else (v.dtype, array_of(v, buffers)) for v in outputs[: len(node.output)]]


def difference(name, got, want, rtol, atol):
    """Why two (dtype, array) differ, or None."""
    if got[0] != want[0]:
        return f"{name}: element type {got[0]}, want {want[0]}"
    got, want = got[1], want[1]
    if got.shape != want.shape:
        return f"{name}: shape {got.shape}, want {want.shape}"
    if want.dtype == object:
        return None if all(a == b for a, b in zip(got.reshape(-1), want.reshape(-1))) else f"{name}: {got} want {want}"
    try:
        if np.issubdtype(want.dtype, np.integer) or want.dtype == bool:
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.complex128 if np.iscomplexobj(want) else np.float64
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)
    except AssertionError as error:
        return f"{name}: {error}"
    return None


def tensor_of(value, declared):
    """(dtype, array) of a test's value, which is an array, a scalar or a TensorProto."""
    if isinstance(value, TensorProto):
        declared, value = value.data_type, numpy_helper.to_array(value)
    return declared, np.asarray(value)


def tensors_of(values, declarations):
    return [tensor_of(v, d.type.tensor_type.elem_type) for v, d in zip(values, declarations)]


def constant_of(node):
    """(dtype, array) of a Constant node."""
    attribute, value = node.attribute[0], onnx.helper.get_attribute_value(node.attribute[0])
    if attribute.name == "value":
        return tensor_of(value, 0)
    kinds = {"value_int": TensorProto.INT64, "value_ints": TensorProto.INT64, "value_float": TensorProto.FLOAT,
             "value_floats": TensorProto.FLOAT, "value_string": TensorProto.STRING, "value_strings": TensorProto.STRING}
    dtype = kinds[attribute.name]
    return dtype, np.array(value, dtype=object if dtype == TensorProto.STRING else onnx.helper.tensor_dtype_to_np_dtype(dtype))


def interpret(kernels, graph, values):
    """Adds every node's outputs to `values`."""
    for node in graph.node:
        if node.op_type == "Constant":
            values[node.output[0]] = constant_of(node)
            continue
        try:
            results = kernels.evaluate(kernels.find(node), node, [values[n] if n else None for n in node.input])
        except Refused as refusal:
            raise Refused(f"{node.op_type}: {refusal}") from None
        values.update(zip(node.output, results))


def check(kernels, case):
    """None if the graph's outputs are right, else why not."""
    graph = case.model.graph
    for inputs, outputs in case.data_sets:
        values = {i.name: tensor_of(i, 0) for i in graph.initializer}
        values.update({v.name: tensor for v, tensor in zip(graph.input, tensors_of(inputs, graph.input))})
        try:
            interpret(kernels, graph, values)
        except Refused as refusal:
            return str(refusal)
        is_random = any(node.op_type in RANDOM for node in graph.node)
        for v, want in zip(graph.output, tensors_of(outputs, graph.output)):
            got = values[v.name]
            if is_random and got[0] == want[0] and got[1].shape == want[1].shape:
                continue
            if problem := difference(v.name, got, want, case.rtol, case.atol):
                return problem
    return None


def has_newest_form(node, model):
    """Whether the node means the same under the newest version: no attribute or default has gone, no input been added
    in front of others."""
    version = next(o.version for o in model.opset_import if o.domain == node.domain)
    old = onnx.defs.get_schema(node.op_type, version, node.domain)
    new = onnx.defs.get_schema(node.op_type, node.domain)
    if old.since_version == new.since_version:
        return True
    for name, attribute in old.attributes.items():
        if name not in new.attributes or attribute.default_value != new.attributes[name].default_value:
            return False
    return [i.name for i in old.inputs] == [i.name for i in new.inputs[: len(old.inputs)]]


def why_skipped(kernels, model):
    """Why a test's graph is not for this script, or None."""
    for node in model.graph.node:
        if node.op_type != "Constant" and not kernels.find(node):
            return f"no kernel: {node.domain}{'::' if node.domain else ''}{node.op_type}"
        if not has_newest_form(node, model):
            return f"old form: {node.op_type}"
    return None if is_tensor_only(model) else "sequence or optional"


def is_tensor_only(model):
    return all(v.type.HasField("tensor_type") for v in list(model.graph.input) + list(model.graph.output))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--only", default="*", help="operators to test, e.g. 'Reduce*'")
    parser.add_argument("--verbose", action="store_true", help="print why each failing test fails in full")
    options = parser.parse_args()
    kernels = Kernels(options.library)
    passed, failed, skipped = collections.Counter(), collections.defaultdict(list), collections.Counter()
    warnings.simplefilter("ignore")  # the tests compute their goldens with overflows on purpose
    for case in load_model_tests(kind="node"):
        model, ops = case.model, [node.op_type for node in case.model.graph.node]
        if not any(fnmatch.fnmatchcase(op, options.only) for op in ops):
            continue
        op = ops[0] if len(ops) == 1 else "graphs"
        if reason := why_skipped(kernels, model):
            skipped[reason] += 1
        elif case.name in EXPECTED_FAILURES:
            if check(kernels, case):
                skipped[f"fails as expected: {case.name}: {EXPECTED_FAILURES[case.name]}"] += 1
            else:
                failed[op].append((case.name, "passes, but is listed as an expected failure"))
        elif problem := check(kernels, case):
            failed[op].append((case.name, problem))
        else:
            passed[op] += 1
    for op in sorted(set(passed) | set(failed)):
        print(f"{op:30} {passed[op]:4} passed {len(failed[op]):4} failed")
        for name, problem in failed[op]:
            print(f"    {name}: {problem if options.verbose else ' '.join(problem.split())[:200]}")
    for reason, count in sorted(skipped.items()):
        print(f"skipped {count:4}: {reason}")
    print(f"{sum(passed.values())} passed, {sum(map(len, failed.values()))} failed, {sum(skipped.values())} skipped")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
