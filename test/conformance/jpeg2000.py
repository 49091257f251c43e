#!/usr/bin/env python3
"""Decodes JPEG 2000 pictures with the kernel of ImageDecoder and compares them with what Pillow made of them.

    jpeg2000.py LIBRARY [--seed N] [--count N]     compares the goldens, then decodes broken copies of them
    jpeg2000.py --make                             makes the goldens again, jpeg2000_goldens.json (needs Pillow with JPEG 2000)

A golden is a file and its pixels. Those of the reversible wavelet must be equal. Those of the other one may be off by 1: it computes with
floats, whose roundings the standard leaves open. Of a broken copy only a refusal with a message or some pixels are asked.
"""
import argparse
import base64
import io
import json
import pathlib
import random
import sys
import zlib

import numpy as np

import reference_kernels
import webp

GOLDENS = pathlib.Path(__file__).with_name('jpeg2000_goldens.json')
MOST_PIXELS = 1 << 20  # of a broken copy


def recipes():
    """(name, kind, height, width, options of Pillow) of each golden."""
    for height, width in [(1, 1), (7, 1), (1, 5), (2, 3), (16, 16), (33, 17)]:
        yield f'reversible_{height}x{width}', 'smooth', height, width, {}
        yield f'irreversible_{height}x{width}', 'smooth', height, width, {'irreversible': True}
    for progression in ('LRCP', 'RLCP', 'RPCL', 'PCRL', 'CPRL'):
        layers = {'quality_mode': 'rates', 'quality_layers': [20, 8, 2]}
        yield f'layers_{progression}', 'smooth', 26, 30, {**layers, 'progression': progression, 'precinct_size': (16, 16), 'codeblock_size': (8, 8)}
        tiles = {'tile_size': (16, 12), 'num_resolutions': 3, 'precinct_size': (16, 16)}
        yield f'tiles_{progression}', 'smooth', 27, 33, {**tiles, 'progression': progression, 'irreversible': progression == 'RPCL'}
    yield 'cut_short', 'smooth', 60, 50, {'quality_mode': 'rates', 'quality_layers': [30]}
    yield 'codestream_alone', 'smooth', 20, 20, {'no_jp2': True}
    yield 'components_apart', 'smooth', 20, 20, {'mct': 0}
    yield 'one_resolution', 'smooth', 20, 20, {'num_resolutions': 1}
    yield 'many_blocks', 'noise', 13, 17, {'codeblock_size': (4, 4)}
    yield 'wide_blocks', 'grey', 5, 260, {'codeblock_size': (256, 16)}
    yield 'alpha', 'alpha', 20, 24, {}


def make():
    import PIL.Image  # only here: the goldens are read without it

    goldens = {}
    for name, kind, height, width, options in recipes():
        buffer = io.BytesIO()
        PIL.Image.fromarray(webp.picture(kind, height, width, 7)).save(buffer, 'jpeg2000', **options)
        pixels = np.array(PIL.Image.open(io.BytesIO(buffer.getvalue())).convert('RGB'))
        golden = {'size': pixels.shape[:2], 'file': base64.b64encode(buffer.getvalue()).decode()}
        if options.get('irreversible'):
            golden['pixels'] = base64.b64encode(zlib.compress(np.ascontiguousarray(pixels).tobytes(), 9)).decode()
        else:
            golden['sha256'] = webp.digest(pixels)
        goldens[name] = golden
    GOLDENS.write_text(json.dumps(goldens, indent=1) + '\n')


def broken(file, chance):
    """A copy with some bytes changed, and perhaps an end cut off."""
    copy = bytearray(file)
    if chance.random() < 0.3:
        del copy[chance.randrange(12, len(copy)):]
    for _ in range(chance.randrange(1, 5)):
        copy[chance.randrange(len(copy) if chance.random() < 0.7 else min(len(copy), 200))] = chance.randrange(256)
    return bytes(copy)


def announced_pixels(file):
    """How many pixels the codestream's header tells."""
    at = file.find(b'\xff\x4f\xff\x51')
    x1, y1, x0, y0 = (int.from_bytes(file[at + 8 + 4 * i:at + 12 + 4 * i], 'big') for i in range(4))
    return max(0, x1 - x0) * max(0, y1 - y0) if at >= 0 else 0


def difference(pixels, golden):
    """What is wrong with the pixels, or ''."""
    if list(pixels.shape) != [*golden['size'], 3]:
        return f'shape {list(pixels.shape)}, expected {[*golden["size"], 3]}'
    if 'sha256' in golden:
        return '' if webp.digest(pixels) == golden['sha256'] else "other pixels than Pillow's"
    expected = np.frombuffer(zlib.decompress(base64.b64decode(golden['pixels'])), np.uint8).reshape(pixels.shape)
    worst = np.abs(pixels.astype(int) - expected).max()
    return '' if worst <= 1 else f'pixels differ by up to {worst}, allowed 1'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('library', nargs='?')
    parser.add_argument('--make', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=2000, help='broken copies')
    args = parser.parse_args()
    if args.make:
        return make()
    decoder = webp.ImageDecoder(args.library)
    goldens = json.loads(GOLDENS.read_text())
    failed = 0
    for name, golden in goldens.items():
        if why := difference(decoder.decode(base64.b64decode(golden['file'])), golden):
            failed += 1
            print(f'FAILED {name}: {why}')
    chance = random.Random(args.seed)
    files = [base64.b64decode(golden['file']) for golden in goldens.values()]
    decoded = refused = large = 0
    for _ in range(args.count):
        file = broken(chance.choice(files), chance)
        if announced_pixels(file) > MOST_PIXELS:
            large += 1
            continue
        try:
            decoder.decode(file)
            decoded += 1
        except reference_kernels.Refused as refusal:
            refused += 1
            if not str(refusal).split(': ', 2)[-1]:
                failed += 1
                print('FAILED a broken copy is refused without a message')
    print(f'{decoded} broken copies decoded, {refused} refused, {large} too large')
    print(f'{len(goldens) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
