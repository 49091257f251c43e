"""Drives the built tools as a user would, and judges what they give. Shared by the conformance and end-to-end tests."""
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[1]
DONE, REJECTED, OUTPUTS_DIFFER = 0, 1, 4  # exit statuses of the tools, docs/cli.md


@dataclasses.dataclass
class Result:
    """How a command ended. status is None for a time-out; negative is the signal that killed it."""
    status: int | None
    message: str

    @property
    def crashed(self):
        """Ended in a way that no input may cause: a signal, also one reported by a shell or emulator, or a failure of Firn."""
        return self.status is not None and (self.status < 0 or self.status == 70 or self.status > 128)

    def describe(self):
        if self.status is None:
            return 'timed out'
        if self.status < 0:
            return f'killed by signal {-self.status}'
        return f'exit status {self.status}'


def run(command, timeout=60):
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout, text=True, errors='replace')
    except subprocess.TimeoutExpired:
        return Result(None, '')
    except FileNotFoundError as error:
        return Result(127, str(error))
    return Result(done.returncode, done.stdout)


class Tools:
    """The tools of one build folder."""

    def __init__(self, build):
        self.bin = pathlib.Path(build).resolve() / 'bin'
        missing = [name for name in ('firnc', 'firn-run') if not (self.bin / name).exists()]
        if missing:
            raise SystemExit(f'{self.bin} has no {" and no ".join(missing)}: build first')

    def compile(self, model, artifact, *options, timeout=120):
        return run([self.bin / 'firnc', model, '-o', artifact, *options], timeout)

    def run(self, artifact, inputs, outputs, *options, timeout=60):
        return run([self.bin / 'firn-run', artifact, '--inputs', inputs, '--outputs', outputs, *options], timeout)


def load_tensor(path):
    tensor = TensorProto()
    tensor.ParseFromString(pathlib.Path(path).read_bytes())
    return tensor


def to_array(tensor):
    """The values of a TensorProto; small float types become float32, exactly."""
    array = numpy_helper.to_array(tensor)
    if array.dtype.kind == 'V' or array.dtype.name.startswith(('bfloat', 'float8', 'float4')):
        return array.astype(np.float32)
    if array.dtype.name in ('int4', 'uint4', 'int2', 'uint2'):
        return array.astype(np.int8 if array.dtype.name.startswith('i') else np.uint8)
    return array


def load_value(path, type_proto):
    """An output in the form of its type: a TensorProto, None for an optional without a value, or a list of values; a map is the list
    of its keys (a tensor) and its values (tensors)."""
    def value(proto, kind):
        if kind.HasField('sequence_type'):
            held = kind.sequence_type.elem_type
            maps = held.HasField('map_type')
            return [value(item, held) for item in (proto.map_values if maps else proto.tensor_values)]
        if kind.HasField('optional_type'):
            held = kind.optional_type.elem_type
            if proto.elem_type == onnx.OptionalProto.UNDEFINED:
                return None
            return value(proto.sequence_value if held.HasField('sequence_type') else proto.tensor_value, held)
        if kind.HasField('map_type'):
            strings = proto.key_type == TensorProto.STRING
            keys = np.array(list(proto.string_keys if strings else proto.keys), object if strings else np.int64)
            return [numpy_helper.from_array(keys), list(proto.values.tensor_values)]
        return proto

    kinds = {'sequence_type': onnx.SequenceProto, 'optional_type': onnx.OptionalProto, 'map_type': onnx.MapProto}
    proto = next((made for field, made in kinds.items() if type_proto and type_proto.HasField(field)), TensorProto)()
    proto.ParseFromString(pathlib.Path(path).read_bytes())
    return value(proto, type_proto or onnx.TypeProto())


def value_difference(got, want, rtol, atol):
    """As difference(), for what load_value() gives."""
    if got is None or want is None:
        return '' if got is want else f'{"no" if got is None else "a"} value, expected {"none" if want is None else "one"}'
    if not isinstance(want, list):
        return difference(got, want, rtol, atol)
    if len(got) != len(want):
        return f'{len(got)} items, expected {len(want)}'
    reasons = (f'item {i}: {why}' for i, pair in enumerate(zip(got, want)) if (why := value_difference(*pair, rtol, atol)))
    return next(reasons, '')


def difference(got, want, rtol, atol):
    """Why the tensor `got` is not `want`, or ''. Floats: |got - want| <= atol + rtol * |want|, NaN equals NaN, an infinity equals
    itself. All else exactly. Types and shapes must be equal."""
    if got.data_type != want.data_type:
        return f'type {TensorProto.DataType.Name(got.data_type)}, expected {TensorProto.DataType.Name(want.data_type)}'
    if list(got.dims) != list(want.dims):
        return f'shape {list(got.dims)}, expected {list(want.dims)}'
    a, b = to_array(got), to_array(want)
    if a.dtype.kind not in 'fc':
        wrong = a != b
    else:
        with np.errstate(all='ignore'):
            near = np.abs(a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64) - b) <= atol + rtol * np.abs(b).astype(np.float64)
            wrong = ~(near & np.isfinite(b) | (a == b) | (np.isnan(a) & np.isnan(b)))
    wrong = np.atleast_1d(wrong)
    if not wrong.any():
        return ''
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (f'{int(wrong.sum())} of {wrong.size} elements differ, first at {list(first)}: '
            f'{np.atleast_1d(a)[first]!r}, expected {np.atleast_1d(b)[first]!r}')


def compare_outputs(got_folder, want_folder, rtol, atol, types=None):
    """Why the output_i.pb of one folder are not those of the other, or ''. types: of each output; None: all are tensors."""
    wanted = sorted(pathlib.Path(want_folder).glob('output_*.pb'))
    for path in wanted:
        got = pathlib.Path(got_folder) / path.name
        if not got.exists():
            return f'{path.name} was not written'
        try:
            kind = types[int(path.stem.rpartition('_')[2])] if types else None
            why = value_difference(load_value(got, kind), load_value(path, kind), rtol, atol)
        except Exception as error:  # a damaged file is a finding, not the end of the run
            return f'{path.name}: {error}'
        if why:
            return f'{path.name}: {why}'
    extra = len(list(pathlib.Path(got_folder).glob('output_*.pb'))) - len(wanted)
    return f'{extra} outputs too many' if extra > 0 else ''


def operators(graph):
    """All operator names of a graph and its subgraphs."""
    names = set()
    for node in graph.node:
        names.add(node.op_type)
        for attribute in node.attribute:
            for subgraph in [attribute.g, *attribute.graphs] if attribute.HasField('g') or attribute.graphs else []:
                names |= operators(subgraph)
    return names


def model_operators(path):
    model = onnx.load(path, load_external_data=False)
    return operators(model.graph) | {node.op_type for function in model.functions for node in function.node}


def parallel(function, items, jobs=os.cpu_count()):
    """The results of function(item), in order, computed `jobs` at a time; yields as they come."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(function, items)
