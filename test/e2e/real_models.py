#!/usr/bin/env python3
"""Compiles each real model, runs it on its test data at several optimisation levels and thread counts, compares with the goldens.

Also: two compilations of one model are byte-identical, and an artifact with a proof verifies.
"""
import argparse
import hashlib
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import get_models
import product

RTOL, ATOL = 1e-3, 1e-4


def reason(message):
    """The line of a message that says most: the first error, else the last line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if 'error' in line]
    return (errors or lines[-1:] or ['(no message)'])[0][:300]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check(tools, folder, work, level, threads):
    """Yields (claim, why it is false or '') for one model at one level."""
    artifact = work / f'{folder.name}{level}.firn'
    start = time.monotonic()
    result = tools.compile(folder / 'model.onnx', artifact, level, timeout=600)
    seconds = time.monotonic() - start
    yield f'compiles in {seconds:.1f} s', '' if result.status == product.DONE else f'{result.describe()}: {reason(result.message)}'
    if result.status != product.DONE:
        return
    for data in sorted(folder.glob('test_data_set_*')):
        for count in threads:
            got = work / 'got'
            shutil.rmtree(got, ignore_errors=True)
            got.mkdir()
            result = tools.run(artifact, data, got, '--threads', str(count), timeout=300)
            why = f'{result.describe()}: {reason(result.message)}' if result.status != product.DONE else product.compare_outputs(
                got, data, RTOL, ATOL)
            yield f'{data.name} on {count} threads matches its golden', why


def check_artifact(tools, folder, work, level):
    """Determinism and proof."""
    first, second = work / 'first.firn', work / 'second.firn'
    for path in (first, second):
        result = tools.compile(folder / 'model.onnx', path, level, '--proof', timeout=600)
        if result.status != product.DONE:
            yield 'compiles with --proof', f'{result.describe()}: {reason(result.message)}'
            return
    yield 'two compilations are byte-identical', '' if digest(first) == digest(second) else 'they differ'
    result = product.run([tools.bin / 'firn-run', first, '--verify'], timeout=300)
    yield 'the artifact verifies', '' if result.status == product.DONE else f'{result.describe()}: {reason(result.message)}'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder (default: build/dev)')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models', help='folder of the models (default: .models)')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e', help='where artifacts go')
    parser.add_argument('--only', nargs='+', default=get_models.NAMES, metavar='NAME')
    parser.add_argument('--levels', nargs='+', default=['0', '3'], help='optimisation levels (default: 0 3)')
    parser.add_argument('--threads', nargs='+', type=int, default=[1, 2])
    args = parser.parse_args()

    tools = product.Tools(args.build)
    args.work.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for name in args.only:
        folder = args.models / name
        if not (folder / 'model.onnx').exists():
            raise SystemExit(f'{folder} has no model.onnx: run tools/dev/get-models')
        for level in args.levels:
            results = list(check(tools, folder, args.work, f'-O{level}', args.threads))
            if level == args.levels[-1]:
                results += check_artifact(tools, folder, args.work, f'-O{level}')
            for claim, why in results:
                passed, failed = passed + (not why), failed + bool(why)
                print(f'{"FAILED" if why else "ok    "} {name} -O{level}: {claim}{": " + why if why else ""}', flush=True)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
