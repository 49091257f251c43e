"""The C API of runtime/include/firn/firn.h through ctypes, on numpy arrays: as much as tests and comparisons need."""
import ctypes
import pathlib
import time

import numpy as np
from onnx import helper

MAX_RANK = 12
ALIGNMENT = 64


class Error(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('status', ctypes.c_int32), ('message', ctypes.c_char * 1016)]


class Tensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('bytes', ctypes.c_int64), ('dims', ctypes.c_int64 * MAX_RANK), ('dtype', ctypes.c_int32),
                ('rank', ctypes.c_int32), ('reserved', ctypes.c_int64)]


class PortInfo(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('dtype', ctypes.c_int32), ('rank', ctypes.c_int32), ('optional', ctypes.c_int32),
                ('name', ctypes.c_char_p), ('dims', ctypes.c_int64 * MAX_RANK), ('symbols', ctypes.c_char_p * MAX_RANK)]


class ModelInfo(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('abi_version', ctypes.c_uint32), ('name', ctypes.c_char_p), ('file_bytes', ctypes.c_uint64),
                ('image_bytes', ctypes.c_uint64), ('weights_bytes', ctypes.c_uint64), ('arena_bytes', ctypes.c_int64),
                ('scratch_bytes', ctypes.c_int64), ('machine', ctypes.c_uint32), ('cpu_features', ctypes.c_uint32),
                ('step_count', ctypes.c_int32), ('thread_hint', ctypes.c_int32), ('has_proof', ctypes.c_int32),
                ('has_late_sizes', ctypes.c_int32), ('digest', ctypes.c_uint8 * 32)]


class Memory(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('reserved', ctypes.c_uint32), ('weights_bytes', ctypes.c_int64),
                ('arena_bytes', ctypes.c_int64), ('scratch_bytes', ctypes.c_int64), ('output_bytes', ctypes.c_int64)]


class SessionOptions(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('threads', ctypes.c_int32), ('spin_micros', ctypes.c_int32), ('pin', ctypes.c_int32),
                ('pool', ctypes.c_void_p), ('arena', ctypes.c_void_p), ('arena_bytes', ctypes.c_uint64), ('allocator', ctypes.c_void_p),
                ('random_seed', ctypes.c_uint64)]


class StepInfo(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('runs', ctypes.c_int32), ('name', ctypes.c_char_p), ('kind', ctypes.c_char_p),
                ('parallel', ctypes.c_int32), ('depth', ctypes.c_int32)]


class StepTime(ctypes.Structure):
    _fields_ = [('step', ctypes.c_int32), ('reserved', ctypes.c_int32), ('start_nanos', ctypes.c_int64), ('duration_nanos', ctypes.c_int64),
                ('flops', ctypes.c_int64), ('bytes', ctypes.c_int64)]


def sized(structure):
    """A zeroed struct that says its size."""
    value = structure()
    value.struct_size = ctypes.sizeof(structure)
    return value


def aligned(array):
    """A copy of the array whose data the executor uses in place."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    view = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


class Failure(Exception):
    """A call failed; its text is the executor's message."""


class Library:

    def __init__(self, build):
        self.calls = ctypes.CDLL(str(pathlib.Path(build).resolve() / 'lib/libfirn_runtime.so'))
        for name in ('firn_session_message', 'firn_status_name', 'firn_version'):
            getattr(self.calls, name).restype = ctypes.c_char_p
        for name in ('firn_session_memory', 'firn_session_profile_count'):
            getattr(self.calls, name).restype = ctypes.c_int64

    def check(self, status, error):
        if status != 0:
            raise Failure(f'{self.calls.firn_status_name(status).decode()}: {error.message.decode()}')


class Model:

    def __init__(self, library, path):
        self.library, self.calls, self.pointer = library, library.calls, ctypes.c_void_p()
        error = sized(Error)
        start = time.perf_counter()
        status = self.calls.firn_model_open(str(path).encode(), ctypes.byref(self.pointer), ctypes.byref(error))
        self.open_seconds = time.perf_counter() - start
        library.check(status, error)

    def describe(self):
        info = sized(ModelInfo)
        self.library.check(self.calls.firn_model_describe(self.pointer, ctypes.byref(info)), sized(Error))
        return info

    def ports(self, kind):
        """The inputs or outputs, by kind 'input' or 'output'."""
        for index in range(getattr(self.calls, f'firn_model_{kind}_count')(self.pointer)):
            port = sized(PortInfo)
            self.library.check(getattr(self.calls, f'firn_model_{kind}')(self.pointer, index, ctypes.byref(port)), sized(Error))
            yield port

    def steps(self):
        for index in range(self.describe().step_count):
            step = sized(StepInfo)
            self.library.check(self.calls.firn_model_step(self.pointer, index, ctypes.byref(step)), sized(Error))
            yield step

    def memory(self, tensors):
        """What a session needs for inputs of these types and dims."""
        memory, error = sized(Memory), sized(Error)
        status = self.calls.firn_model_memory(self.pointer, tensors, ctypes.byref(memory), None, ctypes.byref(error))
        self.library.check(status, error)
        return memory

    def close(self):
        self.calls.firn_model_close(self.pointer)
        self.pointer = None


def tensors(arrays):
    """firn_tensors of numpy arrays, which must outlive them."""
    result = (Tensor * max(1, len(arrays)))()
    for tensor, array in zip(result, arrays):
        tensor.data, tensor.bytes, tensor.rank = array.ctypes.data, array.nbytes, array.ndim
        tensor.dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor.dims[:array.ndim] = array.shape
    return result


class Session:

    def __init__(self, model, threads=0):
        self.model, self.calls, self.pointer = model, model.calls, ctypes.c_void_p()
        self.outputs = (Tensor * max(1, self.calls.firn_model_output_count(model.pointer)))()
        options, error = sized(SessionOptions), sized(Error)
        options.threads = threads
        start = time.perf_counter()
        status = self.calls.firn_session_create(model.pointer, ctypes.byref(options), ctypes.byref(self.pointer), ctypes.byref(error))
        self.create_seconds = time.perf_counter() - start
        model.library.check(status, error)

    def bind(self, arrays):
        """Sets the inputs of the coming runs."""
        self.arrays = [aligned(np.asarray(array)) for array in arrays]
        self.inputs = tensors(self.arrays)

    def bind_state(self, output, input):
        """From now on output `output` of each run is input `input` of the next, by name."""
        indices = [getattr(self.calls, f'firn_model_find_{kind}')(self.model.pointer, name.encode()) for kind, name in (('output', output),
                                                                                                                        ('input', input))]
        if self.calls.firn_session_bind_state(self.pointer, *indices) != 0:
            raise Failure(self.calls.firn_session_message(self.pointer).decode())

    def run(self):
        """One run into the session's own memory."""
        for tensor in self.outputs:
            tensor.data, tensor.bytes = None, 0
        if self.calls.firn_session_run(self.pointer, self.inputs, self.outputs) != 0:
            raise Failure(self.calls.firn_session_message(self.pointer).decode())

    def results(self):
        """Copies of the last run's outputs."""
        for tensor in self.outputs[:self.calls.firn_model_output_count(self.model.pointer)]:
            dtype, shape = helper.tensor_dtype_to_np_dtype(tensor.dtype), tuple(tensor.dims[:tensor.rank])
            count = int(np.prod(shape, dtype=np.int64))
            data = ctypes.string_at(tensor.data, count * dtype.itemsize) if count else b''
            yield np.frombuffer(data, dtype).reshape(shape)

    def profile(self, capacity=100_000):
        """The step times of one run."""
        times = (StepTime * capacity)()
        self.model.library.check(self.calls.firn_session_profile(self.pointer, times, ctypes.c_int64(capacity)), sized(Error))
        self.run()
        count = min(capacity, self.calls.firn_session_profile_count(self.pointer))
        self.calls.firn_session_profile(self.pointer, None, ctypes.c_int64(0))
        return times[:count]

    def memory(self):
        return self.calls.firn_session_memory(self.pointer)

    def close(self):
        self.calls.firn_session_destroy(self.pointer)
        self.pointer = None
