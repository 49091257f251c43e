#!/usr/bin/env python3
"""What numpy and onnx write, the tools read, and the other way round: every element type, shape, order and form of storage."""
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONVERT = sys.argv[1]
FAILED = []


def convert(source, target, dtype=0):
    done = subprocess.run([CONVERT, str(source), str(target), str(dtype)], capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


def claim(name, holds):
    if not holds:
        FAILED.append(name)
        print(f'FAILED {name}')


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def sample(dtype, shape):
    random = np.random.default_rng(5)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(np.bool_)
    if np.dtype(dtype).kind == 'c':
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    if np.dtype(dtype).kind in 'iu':
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return random.normal(size=shape).astype(dtype)


def check_numpy_types(folder):
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_,
                  np.complex64, np.complex128):
        for shape in ((), (0,), (5,), (2, 3), (2, 1, 4, 3)):
            array, name = sample(dtype, shape), f'{np.dtype(dtype).name}{list(shape)}'
            tensor = numpy_helper.from_array(array, 'x')
            (folder / 'a.pb').write_bytes(tensor.SerializeToString())
            claim(f'{name}: pb to npy', convert(folder / 'a.pb', folder / 'b.npy') == (0, '') and same(np.load(folder / 'b.npy'), array))
            claim(f'{name}: npy to pb', convert(folder / 'b.npy', folder / 'c.pb') == (0, ''))
            back = TensorProto.FromString((folder / 'c.pb').read_bytes())
            claim(f'{name}: pb read by onnx', same(numpy_helper.to_array(back), array))
            # The typed fields instead of raw bytes.
            typed = helper.make_tensor('x', tensor.data_type, array.shape, array.flatten().tolist())
            (folder / 'a.pb').write_bytes(typed.SerializeToString())
            claim(f'{name}: typed pb', convert(folder / 'a.pb', folder / 'b.npy') == (0, '') and same(np.load(folder / 'b.npy'), array))
            if array.ndim > 1:
                np.save(folder / 'f.npy', np.asfortranarray(array))
                claim(f'{name}: column-major npy', convert(folder / 'f.npy', folder / 'b.npy') == (0, '') and same(np.load(folder / 'b.npy'), array))
            if array.dtype.itemsize > 1:
                np.save(folder / 'f.npy', array.astype(array.dtype.newbyteorder('>')))
                claim(f'{name}: big-endian npy', convert(folder / 'f.npy', folder / 'b.npy') == (0, '') and same(np.load(folder / 'b.npy'), array))


def check_small_types(folder):
    for number, dtype in ((TensorProto.BFLOAT16, ml_dtypes.bfloat16), (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
                          (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz), (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
                          (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz), (TensorProto.INT4, ml_dtypes.int4),
                          (TensorProto.UINT4, ml_dtypes.uint4), (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn)):
        for shape in ((), (3, 5)):
            values = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7
            name = TensorProto.DataType.Name(number) + str(list(shape))
            for tensor in (numpy_helper.from_array(values.astype(dtype), 'x'), helper.make_tensor('x', number, shape, values.flatten().tolist())):
                (folder / 'a.pb').write_bytes(tensor.SerializeToString())
                claim(f'{name}: pb to pb', convert(folder / 'a.pb', folder / 'b.pb') == (0, ''))
                back = numpy_helper.to_array(TensorProto.FromString((folder / 'b.pb').read_bytes()))
                claim(f'{name}: values', np.array_equal(back.astype(np.float32), values.astype(dtype).astype(np.float32)))
                if number != TensorProto.FLOAT4E2M1:
                    claim(f'{name}: pb to npy to pb', convert(folder / 'a.pb', folder / 'b.npy') == (0, '') and
                          convert(folder / 'b.npy', folder / 'c.pb', number) == (0, '') and
                          (folder / 'c.pb').read_bytes()[:-20] == (folder / 'b.pb').read_bytes().replace(b'\x42\x01x', b'')[:-20])


def check_strings(folder):
    array = np.array([['a', 'longer'], ['', 'ümläut']])
    np.save(folder / 's.npy', array)
    claim('unicode npy', convert(folder / 's.npy', folder / 's.pb') == (0, ''))
    tensor = TensorProto.FromString((folder / 's.pb').read_bytes())
    claim('string pb', [text.decode() for text in tensor.string_data] == array.flatten().tolist() and list(tensor.dims) == [2, 2])
    claim('string npy', convert(folder / 's.pb', folder / 't.npy') == (0, '') and
          [text.decode() for text in np.load(folder / 't.npy').flatten()] == array.flatten().tolist())


def check_archives(folder):
    array = sample(np.float32, (100, 100))
    for save in (np.savez, np.savez_compressed):
        save(folder / 'z.npz', first=np.arange(3), x=array)
        claim(f'{save.__name__}', convert(f'{folder}/z.npz:x', folder / 'b.npy') == (0, '') and same(np.load(folder / 'b.npy'), array))
    save(folder / 'z.npz', np.zeros(4), array)
    claim('unnamed members', convert(f'{folder}/z.npz:x', folder / 'b.npy') == (0, '') and np.load(folder / 'b.npy').shape == (4,))


def check_refusals(folder):
    good = numpy_helper.from_array(sample(np.float32, (3, 4)), 'x').SerializeToString()
    np.save(folder / 'g.npy', sample(np.int32, (3, 4)))
    np.savez_compressed(folder / 'g.npz', x=sample(np.int32, (30, 4)))
    for name, data in (('a.pb', good), ('a.npy', (folder / 'g.npy').read_bytes()), ('a.npz', (folder / 'g.npz').read_bytes())):
        source = f'{folder}/{name}:x' if name == 'a.npz' else folder / name
        for length in range(0, len(data) - 1, max(1, len(data) // 25)):
            (folder / name).write_bytes(data[:length])
            status, message = convert(source, folder / 'out.pb')
            claim(f'{name} cut at {length}: {status} {message}', status == 1 and name in message)
    for what, tensor in (('wrong count', helper.make_tensor('x', 1, [2], [1., 2.])), ('huge', helper.make_tensor('x', 1, [2], [1., 2.]))):
        del tensor.dims[:]
        tensor.dims.extend([3] if what == 'wrong count' else [1 << 40, 1 << 40])
        (folder / 'a.pb').write_bytes(tensor.SerializeToString())
        claim(what, convert(folder / 'a.pb', folder / 'out.pb')[0] == 1)
    external = helper.make_tensor('x', 1, [1], [1.])
    external.data_location = TensorProto.EXTERNAL
    (folder / 'a.pb').write_bytes(external.SerializeToString())
    claim('external data', convert(folder / 'a.pb', folder / 'out.pb') == (1, f'tensor_convert: {folder}/a.pb: is not a TensorProto: its data lies in another file'))
    claim('a missing file', convert(folder / 'none.pb', folder / 'out.pb')[0] == 3)
    claim('an unwritable file', convert(folder / 'g.npy', folder / 'no/out.pb')[0] == 3)
    claim('an unknown extension', convert(CONVERT, folder / 'out.pb')[0] == 2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_numpy_types, check_small_types, check_strings, check_archives, check_refusals):
            check(pathlib.Path(folder))
    print(f'{len(FAILED)} failed')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
