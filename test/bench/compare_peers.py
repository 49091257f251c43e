#!/usr/bin/env python3
"""Compares Firn with ONNX Runtime on the real models: speed, start and memory. Run it as tools/dev/compare-peers.

Both run in this process, in turns of a fraction of a second, with equal threads, inputs bound in advance, f32 as the model has it.
Between the turns is a pause, because the workers of both spin for a while after a run; between creations of sessions too. A figure is
the median over all turns without each turn's first run, or over all creations. Dimensions are fixed to those of the inputs for both (with --dynamic: as the model leaves them).
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import numpy as np
import onnx
import onnxruntime

import firn_api
import get_models
import product

PAUSE_SECONDS = .02
CREATIONS = 15


def fixed_model(model, arrays, path):
    """Writes the model with the inputs' dimensions as the arrays have them; declared outputs keep no dimensions."""
    model = onnx.load(model)
    by_name = dict(arrays)
    for value in model.graph.input:
        if value.name in by_name:
            shape = value.type.tensor_type.shape
            shape.ClearField('dim')
            for size in by_name[value.name].shape:
                shape.dim.add().dim_value = size
    for value in model.graph.output:  # symbolic names in them would contradict the fixed inputs
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField('dim_value'):
                dim.ClearField('dim_param')
    onnx.save(model, path)


def load_inputs(folder):
    pairs = []
    for i in range(len(list(folder.glob('input_*.pb')))):
        tensor = product.load_tensor(folder / f'input_{i}.pb')
        pairs.append((tensor.name, product.to_array(tensor)))
    return pairs


class Peer:
    """ONNX Runtime with all optimisations, inputs and outputs bound."""

    def __init__(self, model, inputs, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        start = time.perf_counter()
        self.session = onnxruntime.InferenceSession(str(model), options, providers=['CPUExecutionProvider'])
        self.create_seconds = time.perf_counter() - start
        self.binding = self.session.io_binding()
        for name, array in inputs:
            self.binding.bind_cpu_input(name, np.ascontiguousarray(array))
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, 'cpu')

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return self.binding.copy_outputs_to_cpu()


def turn(run, seconds, times, reset=lambda: None):
    """Runs for about `seconds`, at least twice, and notes all times but the first."""
    end = time.perf_counter() + seconds
    first = True
    while True:
        reset()
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        if not first:
            times.append(now - start)
            if now > end:
                return
        first = False


def largest_difference(got, want):
    worst = 0.
    for a, b in zip(got, want):
        if a.dtype.kind == 'f' and a.size and a.shape == b.shape:
            worst = max(worst, float(np.nanmax(np.abs(a - b) / (1e-4 + 1e-3 * np.abs(b)))))
        elif a.shape != b.shape:
            return math.inf
    return worst


def first_error(message):
    return next((line for line in message.splitlines() if 'error' in line), message.strip()[-300:])


def measure(name, folder, tools, library, threads, args, work):
    inputs = load_inputs(folder / 'test_data_set_0')
    model = folder / 'model.onnx'
    if not args.dynamic:
        model = work / f'{name}.onnx'
        if not model.exists():
            fixed_model(folder / 'model.onnx', inputs, model)
            try:
                Peer(model, inputs, 1)
            except Exception as error:  # silero_vad: an If's branch for another window length becomes ill-shaped
                print(f'{name}: dimensions stay dynamic, ONNX Runtime refuses fixed ones: {str(error)[:120]}', file=sys.stderr)
                model.write_bytes((folder / 'model.onnx').read_bytes())
    artifact, row = work / f'{name}.firn', {'model': name, 'threads': threads}
    if not artifact.exists():
        start = time.perf_counter()
        result = tools.compile(model, artifact, *args.options.split(), timeout=600)
        row['compile_seconds'] = round(time.perf_counter() - start, 2)
        if result.status != 0:
            return {**row, 'error': f'firnc: {result.describe()}: {first_error(result.message)}'}
    try:
        return {**row, **compare(artifact, model, inputs, library, threads, args)}
    except (firn_api.Failure, RuntimeError) as error:
        return {**row, 'error': str(error)}


def compare(artifact, model, inputs, library, threads, args):
    creations = []
    for _ in range(CREATIONS):
        peer = Peer(model, inputs, threads)
        time.sleep(PAUSE_SECONDS)
        compiled = firn_api.Model(library, artifact)
        session = firn_api.Session(compiled, threads)
        time.sleep(PAUSE_SECONDS)
        creations.append((compiled.open_seconds + session.create_seconds, peer.create_seconds))
        if len(creations) < CREATIONS:
            session.close()
            compiled.close()
    by_name = dict(inputs)
    session.bind([by_name[port.name.decode()] for port in compiled.ports('input')])
    session.run()
    peer.run()
    error = largest_difference(list(session.results()), peer.results())

    def reset():
        for tensor in session.outputs:
            tensor.data, tensor.bytes = None, 0

    # Without the wrapper's checks: a microsecond counts for the small models.
    call, pointer, bound, outputs = library.calls.firn_session_run, session.pointer, session.inputs, session.outputs
    ours, theirs = [], []
    for _ in range(args.turns):
        turn(lambda: call(pointer, bound, outputs), args.seconds / args.turns, ours, reset)
        time.sleep(PAUSE_SECONDS)
        turn(peer.run, args.seconds / args.turns, theirs)
        time.sleep(PAUSE_SECONDS)
    info, memory = compiled.describe(), compiled.memory(session.inputs)
    result = {
        'firn_ms': statistics.median(ours) * 1e3,
        'ort_ms': statistics.median(theirs) * 1e3,
        'ratio': statistics.median(ours) / statistics.median(theirs),
        'difference': error,  # in units of the tolerance rtol 1e-3, atol 1e-4 against ONNX Runtime; below 1 is equal
        'firn_create_ms': statistics.median(c[0] for c in creations) * 1e3,
        'ort_create_ms': statistics.median(c[1] for c in creations) * 1e3,
        'weights_bytes': info.weights_bytes,
        'arena_bytes': memory.arena_bytes,
        'reference_steps': sum(step.runs == 1 for step in compiled.steps()),
    }
    session.close()
    compiled.close()
    return result


def start_and_memory(name, folder, tools, artifact, row):
    """A new process of firn-run until its end, and the peak resident memory of many runs in one."""
    inputs = folder / 'test_data_set_0'
    command = [str(tools.bin / 'firn-run'), str(artifact), '--inputs', str(inputs), '--threads', str(row['threads'])]
    times = []
    for _ in range(8):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    allowed = row['firn_ms'] + 10 + .1 * row['weights_bytes'] / 1e6
    row['process_ms'], row['process_allowed_ms'] = min(times) * 1e3, allowed
    # Not by getrusage(): a child's peak begins with the memory of whoever started it.
    done = subprocess.run([str(tools.bin / 'firn-bench'), *command[1:], '--seconds', '.3', '--starts', '1', '--json'], capture_output=True,
                          text=True, check=True)
    row['peak_rss_bytes'] = json.loads(done.stdout)['peak_rss_bytes']
    row['peak_rss_allowed_bytes'] = row['weights_bytes'] + row['arena_bytes'] + 8 * 1024 * 1024


def print_table(rows):
    print(f'{"model":14} {"thr":>3} {"Firn ms":>9} {"ORT ms":>9} {"ratio":>6}  {"create":>15} {"process":>17} {"peak RSS MiB":>14}  notes')
    for row in rows:
        if 'error' in row:
            print(f'{row["model"]:14} {row["threads"]:3} {row["error"].splitlines()[0][:120]}')
            continue
        notes = [] if row['difference'] <= 1 else [f'DIFFERS {row["difference"]:.3g}']
        if row['reference_steps']:
            notes.append(f'{row["reference_steps"]} reference steps')
        create = f'{row["firn_create_ms"]:.2f} of {row["ort_create_ms"]:.0f}'
        process = f'{row["process_ms"]:.1f} <= {row["process_allowed_ms"]:.1f}' if 'process_ms' in row else ''
        rss = f'{row["peak_rss_bytes"] / 2**20:.0f} <= {row["peak_rss_allowed_bytes"] / 2**20:.0f}' if 'peak_rss_bytes' in row else ''
        print(f'{row["model"]:14} {row["threads"]:3} {row["firn_ms"]:9.3f} {row["ort_ms"]:9.3f} {row["ratio"]:6.2f}  {create:>15} {process:>17} '
              f'{rss:>14}  {", ".join(notes)}')


def summarise(rows, threads):
    measured = [row for row in rows if 'ratio' in row]
    summary = {'failed': [row['model'] for row in rows if 'error' in row]}
    for count in threads:
        ratios = [row['ratio'] for row in measured if row['threads'] == count]
        if ratios:
            summary[f'geometric_mean_{count}_threads'] = math.exp(statistics.mean(map(math.log, ratios)))
    if measured:
        summary['geometric_mean'] = math.exp(statistics.mean(math.log(row['ratio']) for row in measured))
        summary['worst'] = max(measured, key=lambda row: row['ratio'])['model']
        summary['worst_ratio'] = max(row['ratio'] for row in measured)
        summary['worst_create_ratio'] = max(row['firn_create_ms'] / row['ort_create_ms'] for row in measured)
        summary['different'] = sorted({row['model'] for row in measured if row['difference'] > 1})
        summary['slow_starts'] = sorted({row['model'] for row in measured if row.get('process_ms', 0) > row.get('process_allowed_ms', 0)})
        summary['large_peaks'] = sorted({row['model'] for row in measured if row.get('peak_rss_bytes', 0) > row.get('peak_rss_allowed_bytes', 0)})
    return summary


def page(report):
    """The report as docs/performance.md."""
    summary, threads = report['summary'], sorted({row['threads'] for row in report['rows']})
    models = list(dict.fromkeys(row['model'] for row in report['rows']))
    cell = {(row['model'], row['threads']): row for row in report['rows']}
    lines = [
        '<!-- Written by tools/dev/compare-peers --page docs/performance.md; do not edit. -->', '# Performance', '',
        f'Firn against ONNX Runtime {report["onnxruntime"]} on {report["processor"]}, {report["cores"]} cores, {report["date"][:10]}, commit '
        f'{report["commit"][:10]}. Batch 1, f32 as the models have it, ' + (
            'dimensions dynamic where the models leave them so' if '--dynamic' in report['arguments'] else 'dimensions fixed for both') +
        ', inputs bound in advance; both in one process, in turns; medians in ms. Ratios below 1: Firn is faster.', '',
        '| model | ' + ' | '.join(f'Firn, {n} thr | ORT | ratio' for n in threads) + ' | open + session, Firn / ORT |',
        '|---|' + '---:|' * (3 * len(threads) + 1)
    ]
    for model in models:
        cells = []
        for count in threads:
            row = cell[model, count]
            cells += [f'{row["firn_ms"]:.3f}', f'{row["ort_ms"]:.3f}', f'{row["ratio"]:.2f}'] if 'ratio' in row else ['fails', '', '']
        row = cell[model, threads[0]]
        cells.append(f'{row["firn_create_ms"]:.2f} / {row["ort_create_ms"]:.0f}' if 'ratio' in row else '')
        lines.append(f'| {model} | ' + ' | '.join(cells) + ' |')
    lines += ['', f'Geometric mean of all ratios: {summary["geometric_mean"]:.2f}; worst: {summary["worst"]}, {summary["worst_ratio"]:.2f}.', '']
    return '\n'.join(lines)


def processor():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.split(': ', 1)[1]
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=product.ROOT / 'build/release', help='build folder (default: build/release)')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models', help='folder of the models (default: .models)')
    parser.add_argument('--only', nargs='+', default=get_models.NAMES, metavar='NAME', help='these models only')
    parser.add_argument('--threads', nargs='+', type=int, default=[1, 2])
    parser.add_argument('--seconds', type=float, default=2., help='time for each side, model and thread count (default: 2)')
    parser.add_argument('--turns', type=int, default=5, help='turns of each side (default: 5)')
    parser.add_argument('--options', default='', help='options for firnc')
    parser.add_argument('--dynamic', action='store_true', help='leave dynamic dimensions dynamic')
    parser.add_argument('--speed-only', action='store_true', help='skip process start and peak memory')
    parser.add_argument('--json', type=pathlib.Path, default=product.ROOT / 'build/compare-peers.json', help='where the figures go')
    parser.add_argument('--page', type=pathlib.Path, help='also write the figures as a Markdown page, docs/performance.md')
    args = parser.parse_args()

    tools, library = product.Tools(args.build), firn_api.Library(args.build)
    rows = []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name in args.only:
            folder = args.models / name
            if not (folder / 'model.onnx').exists():
                sys.exit(f'{folder} has no model.onnx: run tools/dev/get-models')
            for threads in args.threads:
                row = measure(name, folder, tools, library, threads, args, work)
                if 'error' not in row and not args.speed_only:
                    try:
                        start_and_memory(name, folder, tools, work / f'{name}.firn', row)
                    except subprocess.CalledProcessError as error:
                        row['error'] = f'firn-run: exit status {error.returncode}'
                rows.append(row)
                print(f'{name}, {threads} threads: {row.get("ratio", row.get("error"))}', file=sys.stderr, flush=True)
    summary = summarise(rows, args.threads)
    print_table(rows)
    for key, value in summary.items():
        print(f'{key}: {value:.3f}' if isinstance(value, float) else f'{key}: {value}')
    args.json.parent.mkdir(parents=True, exist_ok=True)
    report = {
        'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds'), 'processor': processor(), 'cores': os.cpu_count(),
        'onnxruntime': onnxruntime.__version__, 'commit': subprocess.run(['git', '-C', product.ROOT, 'rev-parse', 'HEAD'], capture_output=True,
                                                                         text=True).stdout.strip(),
        'arguments': sys.argv[1:], 'rows': rows, 'summary': summary}
    args.json.write_text(json.dumps(report, indent=1) + '\n')
    if args.page:
        args.page.write_text(page(report))
    print(f'written to {args.json}')
    return 1 if summary['failed'] or summary.get('different') else 0


if __name__ == '__main__':
    sys.exit(main())
