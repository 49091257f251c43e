#!/usr/bin/env python3
"""firn-opt --convert: each case and model with floats of 16 bits keeps the types of its inputs and outputs (or changes all that are f32), is
valid ONNX, loads in ONNX Runtime and computes nearly the same.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import numpy as np
import onnx

import get_models
import optimiser
import product

# Of the largest magnitude in an output: some hundred roundings, of 11 and of 8 bits.
TOLERANCES = {'fp16': .02, 'bf16': .1}
LARGEST = 60000.  # what half holds
# What no conversion can keep, or ONNX Runtime not compute.
UNLIKE = {
    'cse_one_of_two_equal_nodes_is_graph_output': 'Floor of a number next to an integer',
    'layernormalization_large_offset': 'rows of 1e4 whose differences are below half\'s steps',
    'scatterelements_duplicate_negative_index_add': 'ONNX Runtime scatters no sums of halves',
}


def difference(expected, found, tolerance):
    if expected.shape != found.shape:
        return f'shape {found.shape}, {expected.shape} before'
    if expected.dtype.kind != 'f' or not expected.size:
        return ''  # an index or a comparison may turn with a rounding
    finite = np.isfinite(expected) & (np.abs(expected) < LARGEST)
    if np.isnan(found[finite]).any():
        return 'NaN where a number was'
    found = np.clip(found[finite].astype(np.float64), -LARGEST, LARGEST)
    scale = max(np.abs(expected[finite]).max(initial=0.), 1e-3)
    worst = np.abs(found - expected[finite]).max(initial=0.) / scale
    return f'off by {worst:.3g} of the largest value' if worst > tolerance else ''


def types(path):
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [(v.name, v.type.tensor_type.elem_type) for v in [*graph.input, *graph.output] if v.name not in weights]


def fault(tools, model, data, work, kind, options):
    """What is wrong, '' for nothing, None where there is nothing to compare."""
    target = work / 'converted.onnx'
    result = product.run([tools.bin / 'firn-opt', model, '-o', target, f'--convert={kind}', *options], 300)
    if result.status == product.REJECTED:
        return None
    if result.status != product.DONE:
        return f'{result.describe()}: {result.message.strip()[-300:]}'
    narrow = {'fp16': onnx.TensorProto.FLOAT16, 'bf16': onnx.TensorProto.BFLOAT16}[kind]
    wanted = [(name, narrow if dtype == onnx.TensorProto.FLOAT and '--convert-io' in options else dtype) for name, dtype in types(model)]
    if any(b[1] and a != b for a, b in zip(types(target), wanted)):
        return f'types of the interface: {types(target)}, expected {wanted}'
    try:
        onnx.checker.check_model(str(target), full_check=True)
    except Exception as error:
        try:
            onnx.checker.check_model(str(model), full_check=True)
        except Exception:
            return None  # nor does the model pass
        return f'not valid ONNX: {str(error)[-200:]}'
    if '--convert-io' in options or kind == 'bf16' or model.parent.name in UNLIKE:  # ONNX Runtime has few kernels for bfloat16: our own ones judge
        again = product.run([tools.bin / 'firn-opt', target, '-o', work / 'again.onnx'], 300)
        return '' if again.status == product.DONE else f'firn-opt refuses the result: {again.message.strip()[-300:]}'
    before, after = optimiser.evaluate(model, data), optimiser.evaluate(target, data)
    if before is None:
        return None
    if after is None:
        return 'ONNX Runtime runs the model but not the converted one'
    for i, (a, b) in enumerate(zip(before, after)):
        for expected, found in zip(optimiser.tensors(a), optimiser.tensors(b)):
            if why := difference(expected, found, TOLERANCES[kind]):
                return f'output {i}: {why}'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/convert')
    parser.add_argument('--only', default='', metavar='TEXT', help='models with TEXT in their name')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    ways = [('fp16', []), ('fp16', ['--convert-io']), ('fp16', ['--keep-f32=none', '--no-optimise']), ('bf16', [])]
    jobs = []
    for meta in sorted(optimiser.CASES.glob('*/meta.json')):
        if json.loads(meta.read_text())['outcome'] == 'value' and args.only in meta.parent.name:
            jobs += [(meta.parent, *way) for way in ways]
    jobs += [(args.models / name, *way) for name in ('magika', 'squeezenet', 'mlp', 'lstm_tagger', 'silero_vad') for way in ways[:1]
             if args.only in name and name in get_models.NAMES]

    def judge(job):
        folder, kind, options = job
        work = args.work / folder.name / '_'.join([kind, *options])
        work.mkdir(parents=True, exist_ok=True)
        return fault(tools, folder / 'model.onnx', folder / 'test_data_set_0', work, kind, options)

    passed = failed = left = 0
    for (folder, kind, options), why in zip(jobs, product.parallel(judge, jobs)):
        passed, failed, left = passed + (why == ''), failed + bool(why), left + (why is None)
        if why:
            print(f'FAILED {folder.name}, {kind} {" ".join(options)}: {why}', flush=True)
    print(f'nothing to compare: {left}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
