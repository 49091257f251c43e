#!/usr/bin/env python3
"""Compares firn-opt with onnxslim and onnxsim on the real models. Run it as tools/dev/compare-optimizers.

Each optimises each model in a process of its own, in turns; a time is the least of the turns, from start to end of the process. Nodes are
counted with those of nested graphs. A model's result is worse where a peer's has fewer nodes or fewer bytes, and slow where the model has
more than a megabyte and firn-opt takes more than half of the faster peer's time.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import onnx

import get_models
import product

LARGE = 1 << 20


def nodes(graph):
    nested = (g for node in graph.node for a in node.attribute for g in ([a.g] if a.HasField('g') else a.graphs))
    return len(graph.node) + sum(map(nodes, nested))


def result_of(path):
    if not path.exists():
        return None
    size = sum(file.stat().st_size for file in path.parent.glob(path.name + '*'))
    return {'nodes': nodes(onnx.load(path, load_external_data=False).graph), 'bytes': size}


def measure(commands, folder, turns):
    """Of each tool its seconds, nodes and bytes; nothing where it fails."""
    seconds = {name: math.inf for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            start = time.monotonic()
            done = subprocess.run([*command, folder / f'{name}.onnx'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                seconds[name] = min(seconds[name], time.monotonic() - start)
    results = {name: result_of(folder / f'{name}.onnx') for name in commands if seconds[name] < math.inf}
    return {name: {**result, 'seconds': round(seconds[name], 3)} for name, result in results.items() if result}


def faults(entry):
    ours, peers = entry['tools'].get('firn-opt'), [r for name, r in entry['tools'].items() if name != 'firn-opt']
    if not ours:
        return ['failed']
    found = [what for what in ('nodes', 'bytes') if any(ours[what] > peer[what] for peer in peers)]
    slow = entry['bytes'] > LARGE and any(ours['seconds'] > peer['seconds'] / 2 for peer in peers)
    return found + ['time'] * slow


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--peers', type=pathlib.Path, required=True, help="the peers' programs")
    parser.add_argument('--build', type=pathlib.Path, default=product.ROOT / 'build/release')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models')
    parser.add_argument('--only', default='', metavar='TEXT', help='models with TEXT in their name')
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--json', type=pathlib.Path, help='write the table to this file')
    args = parser.parse_args()
    print(f'{"model":18}{"input":>18}{"firn-opt":>27}{"onnxslim":>27}{"onnxsim":>27}   worse')
    entries = []
    for name in get_models.NAMES:
        model = args.models / name / 'model.onnx'
        if args.only not in name or not model.exists():
            continue
        entry = {'model': name, **result_of(model)}
        with tempfile.TemporaryDirectory() as folder:
            commands = {'firn-opt': [args.build / 'bin/firn-opt', model, '-o'], 'onnxslim': [args.peers / 'onnxslim', model],
                        'onnxsim': [args.peers / 'onnxsim', model]}
            entry['tools'] = measure(commands, pathlib.Path(folder), args.turns)
        entry['worse'] = faults(entry)
        entries.append(entry)

        def cell(tool):
            result = entry['tools'].get(tool)
            return f'{result["nodes"]:6} {result["bytes"]:11,} {result["seconds"]:6.2f} s' if result else 'failed'

        print(f'{name:18}{entry["nodes"]:6} {entry["bytes"]:11,}' + ''.join(f'{cell(tool):>27}' for tool in commands)
              + '   ' + ', '.join(entry['worse']), flush=True)
    if args.json:
        args.json.write_text(json.dumps(entries, indent=1) + '\n')
    print(f'{sum(not entry["worse"] for entry in entries)} of {len(entries)} models at least as good')
    return 0


if __name__ == '__main__':
    sys.exit(main())
