#!/usr/bin/env python3
"""firn-run, firn-bench and firn-inspect on artifacts written by hand: exit status, messages, files."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, numpy_helper

BIN = pathlib.Path(sys.argv[1])
FAILED = []


def tool(name, *arguments):
    done = subprocess.run([BIN / name, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def claim(name, holds, *shown):
    if not holds:
        FAILED.append(name)
        print(f'FAILED {name}', *shown, sep='\n  ')


def store(path, array, name=''):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def load(path):
    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


def check_run(folder, model):
    x, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)
    y = x * np.array([1, 2, 3, 4], np.float32) * 10 + b
    # Names decide, not numbers: the files are the wrong way round.
    store(folder / 'data/input_0.pb', b, 'b')
    store(folder / 'data/input_1.pb', x, 'x')
    store(folder / 'data/output_0.pb', y, 'y')
    status, out, err = tool('firn-run', model, '--inputs', folder / 'data', '--outputs', folder / 'got', '--compare', folder / 'data')
    claim('runs on a folder', status == 0 and 'y: f32[2,4]' in out and '1 of 1 outputs equal' in out, out, err)
    claim('writes what numpy reads', np.array_equal(load(folder / 'got/output_0.pb'), y))
    np.savez(folder / 'in.npz', x=x, b=b, s=np.array([2], np.float32))
    status, out, err = tool('firn-run', model, '--inputs', folder / 'in.npz', '--outputs', folder / 'npy', '--npy', '--threads', 2)
    claim('runs on an archive with the optional input', status == 0 and np.array_equal(np.load(folder / 'npy/output_0.npy'), (y - b) / 5 + b), out, err)
    np.save(folder / 'x.npy', x)
    status, out, err = tool('firn-run', model, '--input', f'x=@{folder}/x.npy', '--input', 'b=random:3', '--dim', 'batch=2', '--repeat', 5)
    claim('mixes files and random inputs', status == 0 and '5 runs' in out, out, err)
    status, out, err = tool('firn-run', model, '--inputs', folder / 'data', '--profile', folder / 'trace.json')
    trace = json.loads((folder / 'trace.json').read_text())
    claim('profiles', status == 0 and [event['name'] for event in trace['traceEvents']] == ['scale', 'add'] and 'GFLOP/s' in out, out, err)


def check_differences(folder, model):
    wrong = load(folder / 'data/output_0.pb').copy()
    wrong[1, 2] += 100
    wrong[0, 1] += 1
    store(folder / 'wrong/output_0.pb', wrong)
    run = ['firn-run', model, '--inputs', folder / 'data', '--compare']
    status, _, err = tool(*run, folder / 'wrong')
    claim('tells the first and the worst difference', status == 4 and "output 'y' 2 of 8 elements differ; first at [0,1]" in err and
          'worst at [1,2]' in err, err)
    claim('takes tolerances', tool(*run, folder / 'wrong', '--atol', 200)[0] == 0)
    for what, array in (('shape', wrong.reshape(4, 2)), ('dtype', wrong.astype(np.float64))):
        store(folder / 'wrong/output_0.pb', array)
        status, _, err = tool(*run, folder / 'wrong')
        claim(f'compares the {what}', status == 4 and 'f32[2,4], expected' in err, err)
    claim('wants something to compare with', tool(*run, folder / 'got', '--quiet')[0] == 0 and tool(*run, folder / 'npy2')[0] == 3)


def check_refusals(folder, model):
    status, _, err = tool('firn-run', model)
    claim('names every missing input but optional ones', status == 1 and "'x' is missing" in err and "'b' is missing" in err and "'s'" not in err, err)
    status, _, err = tool('firn-run', model, '--input', 'z=random')
    claim('names an unknown input', status == 1 and "no input 'z'; its inputs are 'x', 'b', 's'" in err, err)
    status, _, err = tool('firn-run', model, '--input', 'x=random', '--input', 'b=random', '--dim', 'batch=200000')
    claim('a broken constraint says what is allowed', status == 1 and 'allowed is 0 to 100000' in err, err)
    np.save(folder / 'wide.npy', np.ones((2, 4)))
    status, _, err = tool('firn-run', model, '--input', f'x=@{folder}/wide.npy', '--input', 'b=random')
    claim('a wrong dtype is named', status == 1 and "input 'x' must be f32[batch,4], got f64[2,4]" in err, err)
    for arguments in (['--threads', 'x'], ['--nothing'], ['--input', 'x'], ['--input', 'x=file.npy'], ['--input', 'x=random:q'], ['--dim', 'batch=-1']):
        status, _, err = tool('firn-run', model, *arguments)
        claim(f'wrong command line {arguments}', status == 2 and err, status, err)
    for arguments, wanted in (([folder / 'none.firn'], 3), ([folder], 3), ([folder / 'x.npy'], 1), ([model, '--inputs', folder / 'none'], 3),
                              ([model, '--input', 'x=@none.npy'], 3), ([], 2)):
        for name in ('firn-run', 'firn-bench'):
            status, _, err = tool(name, *arguments)
            claim(f'{name} {arguments}: {status}', status == wanted and err.startswith((name, 'FILE')), err)


def check_verify(folder, model):
    status, out, err = tool('firn-run', model, '--verify')
    claim('verifies', status == 0 and out.count('right') == 2, out, err)
    data = bytearray(model.read_bytes())
    data[-121] ^= 1
    (folder / 'bad.firn').write_bytes(data)
    status, out, err = tool('firn-run', folder / 'bad.firn', '--verify')
    claim('finds damage', status == 4 and 'damaged' in err, out, err)


def check_inspect(folder, model, control):
    status, out, err = tool('firn-inspect', model, '--json', '--dim', 'batch=3')
    described = json.loads(out)
    claim('inspects', status == 0 and described['memory']['weights_bytes'] == 288 and described['memory']['arena_bytes'] == 64 and
          described['inputs'][0] == {'name': 'x', 'dtype': 'f32', 'dims': ['batch', 4], 'optional': False}, out, err)
    memory = json.loads(tool('firn-inspect', model, '--json')[1])['memory']
    claim('states a dynamic arena as a formula', memory['arena_bytes'] is None and memory['arena_bytes_at_least'] == '16*batch' and
          memory['arena_bytes_at_most'] == '16*batch + 64', memory)
    described = json.loads(tool('firn-inspect', control, '--json', '--steps')[1])
    claim('lists steps', len(described['steps']['list']) == described['steps']['total'] == 17)
    status, out, err = tool('firn-inspect', model)
    claim('inspects for people', status == 0 and 'x: f32[batch,4]' in out and 'SHA-256' in out, out, err)
    claim('inspects what is there only', tool('firn-inspect', folder / 'none')[0] == 3)


def check_bench(model):
    status, out, err = tool('firn-bench', model, '--json', '--seconds', 0.05, '--starts', 2, '--threads', 1)
    figures = json.loads(out)
    latency = figures['latency_us']
    claim('measures', status == 0 and latency['min'] <= latency['median'] <= latency['p95'] <= latency['p99'] and figures['peak_rss_bytes'] > 1e6 and
          figures['cold_start_ms']['median'] > 0 and figures['load_us']['open'] > 0 and figures['threads'] == 1, out, err)
    status, out, err = tool('firn-bench', model, '--seconds', 0.05, '--starts', 0)
    claim('measures for people', status == 0 and 'median' in out, out, err)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, control = folder / 'model.firn', folder / 'control.firn'
        for name, path in (('ScaleAdd', model), ('Control', control)):
            subprocess.run([BIN / 'write_artifact', name, path], check=True)
        check_run(folder, model)
        check_differences(folder, model)
        check_refusals(folder, model)
        check_verify(folder, model)
        check_inspect(folder, model, control)
        check_bench(model)
    print(f'{len(FAILED)} failed')
    return 1 if FAILED else 0


if __name__ == '__main__':
    sys.exit(main())
