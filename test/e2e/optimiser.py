#!/usr/bin/env python3
"""What holds for firn-opt on every model: optimising twice is optimising once, byte for byte; a Firn graph and back loses nothing; inputs
and outputs keep names, order, types and dynamic dimensions; the result is valid ONNX that still computes the same, with --allow-growth
too, and is no larger than the model without.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import get_models
import product

CASES = HERE.parent / 'conformance/cases'


def interface(path):
    """Names, types and dimensions of inputs; names and types of outputs, whose dimensions may become known."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}

    def describe(value, with_dims):
        tensor = value.type.tensor_type
        # Some converters write -1 for a dimension that they leave open.
        dims = [d.dim_param or (d.dim_value if d.HasField('dim_value') and d.dim_value >= 0 else '?') for d in tensor.shape.dim]
        return value.name, tensor.elem_type, dims if with_dims and tensor.HasField('shape') else None

    return [describe(v, True) for v in graph.input if v.name not in weights], [describe(v, False) for v in graph.output]


def interface_change(before, after):
    """What differs, or ''. An output whose type the file leaves open (0) may get one."""
    (inputs, outputs), (new_inputs, new_outputs) = interface(before), interface(after)
    typed = [(name, new_type if kind == 0 else kind, dims) for (name, kind, dims), (_, new_type, _) in zip(outputs, new_outputs)]
    if inputs == new_inputs and typed == new_outputs and len(outputs) == len(new_outputs):
        return ''
    return f'the interface changed: {inputs} -> {outputs} to {new_inputs} -> {new_outputs}'


def tensors(value):
    """The tensors of an output, which may be a list of them, a map (keys and values), or nothing."""
    if isinstance(value, dict):
        return [np.asarray(list(value)), np.asarray(list(value.values()))]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return [] if value is None else [np.asarray(value)]


def evaluate(path, data):
    """The outputs by ONNX Runtime, or None where it refuses the model."""
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 2
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
        feeds = {}
        for file in data.glob('input_*.pb'):
            tensor = product.load_tensor(file)
            feeds[tensor.name] = numpy_helper.to_array(tensor)
        return session.run(None, {v.name: feeds[v.name] for v in session.get_inputs() if v.name in feeds})
    except Exception:
        return None


def fault(tools, model, data, rtol, atol, work):
    """The first property that does not hold, or ''. None where firn-opt rejects the model."""
    once, twice, free, firn, back = (work / name for name in ('once.onnx', 'twice.onnx', 'free.onnx', 'free.fpb', 'back.onnx'))
    growing = ['--allow-growth']
    for source, target, *flags in ((model, once), (once, twice), (model, free, growing), (free, firn, growing), (firn, back, growing)):
        result = product.run([tools.bin / 'firn-opt', source, '-o', target, *sum(flags, [])], 300)
        if result.status == product.REJECTED and source == model:
            return None
        if result.status != product.DONE:
            return f'firn-opt {source.name} -o {target.name}: {result.describe()}: {result.message.strip()[-300:]}'
    if once.read_bytes() != twice.read_bytes():
        return 'optimising again changes the file'
    if free.read_bytes() != back.read_bytes():
        return 'a Firn graph and back is another file'
    if once.stat().st_size > model.stat().st_size:
        return f'{once.stat().st_size} bytes, {model.stat().st_size} before'
    # A small model stays as it is where every form of it is larger.
    results = [free] if once.read_bytes() in (free.read_bytes(), model.read_bytes()) else [once, free]
    return next((why for result in results if (why := change(model, result, data, rtol, atol))), '')


def change(model, once, data, rtol, atol):
    """What is wrong with the optimised model `once`, or ''."""
    if why := interface_change(model, once):
        return why
    try:
        onnx.checker.check_model(str(once))
    except Exception as error:
        return f'not valid ONNX: {str(error)[:200]}'
    before, after = evaluate(model, data), evaluate(once, data)
    if before is not None and after is None:
        return 'ONNX Runtime runs the model but not the optimised one'
    for i, (a, b) in enumerate(zip(before or [], after or [])):
        a, b = tensors(a), tensors(b)
        if len(a) != len(b):
            return f'output {i} has {len(b)} tensors, {len(a)} before'
        for expected, found in zip(a, b):
            if why := product.difference(numpy_helper.from_array(found), numpy_helper.from_array(expected), max(rtol, 1e-5), max(atol, 1e-6)):
                return f'output {i} changed: {why}'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/optimiser')
    parser.add_argument('--also', type=pathlib.Path, nargs='*', default=[], metavar='FOLDER',
                        help='models of these folders too, laid out as build/conformance/node is')
    parser.add_argument('--only', default='', metavar='TEXT', help='models with TEXT in their name')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    jobs = []
    for meta in sorted(CASES.glob('*/meta.json')):
        facts = json.loads(meta.read_text())
        if facts['outcome'] == 'value':
            jobs.append((meta.parent.name, meta.parent, facts['rtol'], facts['atol']))
    jobs += [(name, args.models / name, 1e-3, 1e-4) for name in get_models.NAMES]
    jobs += [(model.parent.name, model.parent, 1e-3, 1e-5) for folder in args.also for model in sorted(folder.glob('*/model.onnx'))]
    jobs = [job for job in jobs if args.only in job[0]]

    def judge(job):
        name, folder, rtol, atol = job
        work = args.work / name
        work.mkdir(parents=True, exist_ok=True)
        return fault(tools, folder / 'model.onnx', folder / 'test_data_set_0', rtol, atol, work)

    passed = failed = rejected = 0
    for (name, *_), why in zip(jobs, product.parallel(judge, jobs)):
        if why is None:
            rejected += 1
            continue
        passed, failed = passed + (not why), failed + bool(why)
        if why:
            print(f'FAILED {name}: {why}', flush=True)
    print(f'{rejected} rejected')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
