#!/usr/bin/env python3
"""A damaged compiled model is refused, or gives right results: never a crash, never a wrong result.

Flips every byte of the ELF header, the program headers and the footer in turn, then some in between, and cuts the file at 50 places.
"""
import argparse
import pathlib
import random
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import product

FOOTER = 120  # sizeof(firn_footer)


def damages(data):
    """Yields (what was done, damaged bytes)."""
    program_headers = struct.unpack_from('<Q', data, 32)[0]
    entry_size, count = struct.unpack_from('<HH', data, 54)
    header_end = max(64, program_headers + entry_size * count)
    between = random.Random(1).sample(range(header_end, len(data) - FOOTER), 200)
    for at in [*range(header_end), *range(len(data) - FOOTER, len(data)), *sorted(between)]:
        damaged = bytearray(data)
        damaged[at] ^= 0xff
        yield f'byte {at} flipped', damaged
    for k in range(50):
        length = len(data) * k // 50
        yield f'cut at {length}', data[:length]
    yield 'one byte longer', data + b'\0'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder that compiles (default: build/dev)')
    parser.add_argument('--run-build', help='build folder whose firn-run is tested, e.g. build/asan (default: as --build)')
    parser.add_argument('--case', default='gemm_transposes_alpha_beta_column_bias', help='model, of test/conformance/cases')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/damaged')
    args = parser.parse_args()

    tools = product.Tools(args.build)
    case = HERE.parent / 'conformance/cases' / args.case
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    artifact = args.work / 'good.firn'
    result = tools.compile(case / 'model.onnx', artifact, '--proof')
    if result.status != product.DONE:
        raise SystemExit(f'firnc: {result.describe()}: {result.message}')
    if args.run_build:
        tools.bin = pathlib.Path(args.run_build).resolve() / 'bin'

    def judge(job):
        number, (what, data) = job
        damaged, got = args.work / f'{number}.firn', args.work / f'{number}'
        damaged.write_bytes(data)
        got.mkdir()
        result = tools.run(damaged, case / 'test_data_set_0', got, timeout=20)
        why = ''
        if result.status == product.DONE:
            why = product.compare_outputs(got, case / 'test_data_set_0', 1e-5, 1e-6)
        elif result.status not in (product.REJECTED, 3) or not result.message.strip():
            why = f'{result.describe()}: {result.message.strip()[-300:]}'
        damaged.unlink()
        shutil.rmtree(got)
        return what, result.status, why

    passed = failed = refused = 0
    for what, status, why in product.parallel(judge, enumerate(damages(artifact.read_bytes()))):
        passed, failed, refused = passed + (not why), failed + bool(why), refused + (status != product.DONE)
        if why:
            print(f'FAILED {what}: {why}')
    print(f'{refused} refused, the others gave right results')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
