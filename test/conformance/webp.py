#!/usr/bin/env python3
"""Decodes WebP pictures with the kernel of ImageDecoder and compares each byte with what Pillow made of them.

    webp.py LIBRARY [--seed N] [--count N]     compares the goldens, then decodes broken copies of them
    webp.py --make                             makes the goldens again, webp_goldens.json (needs Pillow with WebP)

A golden is a file, its height and width, and the SHA-256 of its pixels as RGB. Of a broken copy only a refusal with a
message or some pixels are asked; with an instrumented library (asan preset) reads and writes out of bounds end the run.
"""
import argparse
import base64
import hashlib
import io
import json
import pathlib
import random
import sys

import numpy as np
from onnx import TensorProto, helper

import reference_kernels

GOLDENS = pathlib.Path(__file__).with_name("webp_goldens.json")
MOST_PIXELS = 1 << 20  # of a broken copy: larger ones take long and show no more


def picture(kind, height, width, seed):
    """Pixels [height, width, 3 or 4] of a kind that makes encoders choose other modes."""
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    if kind == "noise":
        return chance.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "grey":
        return np.repeat((128 + 100 * np.sin(x / 5 + y / 9))[..., None], 3, 2).astype(np.uint8)
    if kind.startswith("palette"):
        colors = chance.integers(0, 256, (int(kind[7:]), 3), np.uint8)
        return colors[((x // 3 + y // 2 * 5) % len(colors)).astype(int)]
    smooth = np.stack([x * 200 / max(1, width), y * 200 / max(1, height), 100 + 90 * np.sin((x + 2 * y) / 7)], 2)
    smooth[(x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(height, width) / 3) ** 2] += 55
    smooth = np.clip(smooth + chance.normal(0, 4, smooth.shape), 0, 255).astype(np.uint8)
    if kind == "alpha":
        return np.dstack([smooth, (x * 8 % 256).astype(np.uint8)])
    return smooth


def recipes():
    """(name, kind, height, width, options of Pillow) of each golden."""
    for height, width in [(1, 1), (1, 2), (2, 1), (3, 5), (16, 16), (17, 15), (15, 33), (32, 48)]:
        yield f"lossy_{height}x{width}", "smooth", height, width, {"quality": 75}
        yield f"lossless_{height}x{width}", "smooth", height, width, {"lossless": True}
    for quality in [0, 20, 50, 90, 100]:
        yield f"lossy_quality_{quality}", "smooth", 37, 41, {"quality": quality}
    for method in range(7):
        yield f"lossy_method_{method}", "smooth", 40, 35, {"quality": 60, "method": method}
        yield f"lossless_method_{method}", "smooth", 24, 21, {"lossless": True, "method": method}
    for kind in ["noise", "grey", "alpha"]:
        yield f"lossy_{kind}", kind, 33, 31, {"quality": 40}
        yield f"lossless_{kind}", kind, 19, 23, {"lossless": True}
    for colors in [1, 2, 4, 16, 17, 200]:
        yield f"lossless_palette_{colors}", f"palette{colors}", 27, 61, {"lossless": True, "method": 6}
    yield "lossless_larger", "grey", 150, 301, {"lossless": True, "method": 6}
    yield "lossy_larger", "smooth", 203, 301, {"quality": 15, "method": 6}


def encoded(kind, height, width, options):
    import PIL.Image  # only here: the goldens are read without it

    buffer = io.BytesIO()
    PIL.Image.fromarray(picture(kind, height, width, 7)).save(buffer, "webp", **options)
    return buffer.getvalue()


def animated():
    import PIL.Image

    first, second = (PIL.Image.fromarray(picture(kind, 20, 26, 7)) for kind in ("smooth", "grey"))
    buffer = io.BytesIO()
    first.save(buffer, "webp", save_all=True, append_images=[second], duration=100)
    return buffer.getvalue()


def pillow_pixels(file):
    import PIL.Image

    return np.array(PIL.Image.open(io.BytesIO(file)).convert("RGB"))


def digest(pixels):
    return hashlib.sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()


def make():
    files = {name: encoded(*recipe) for name, *recipe in recipes()}
    files["animated_shows_its_first_frame"] = animated()
    goldens = {}
    for name, file in files.items():
        pixels = pillow_pixels(file)
        goldens[name] = {"size": pixels.shape[:2], "sha256": digest(pixels), "file": base64.b64encode(file).decode()}
    GOLDENS.write_text(json.dumps(goldens, indent=1) + "\n")


class ImageDecoder:
    def __init__(self, library):
        self.kernels = reference_kernels.Kernels(library)
        self.node = helper.make_node("ImageDecoder", ["encoded"], ["image"], pixel_format="RGB")
        self.entry = self.kernels.find(self.node)

    def decode(self, file):
        encoded_bytes = np.frombuffer(file, np.uint8)
        output = self.kernels.evaluate(self.entry, self.node, [(TensorProto.UINT8, encoded_bytes)])[0]
        return output[1] if isinstance(output, tuple) else output


def broken(file, chance):
    """A copy with some bytes changed, and perhaps an end cut off whose length the header knows."""
    copy = bytearray(file)
    if chance.random() < 0.3:
        del copy[chance.randrange(12, len(copy)) :]
        copy[4:8] = (len(copy) - 8).to_bytes(4, "little")
        copy[16:20] = (len(copy) - 20 if len(copy) > 20 else 0).to_bytes(4, "little")
    for _ in range(chance.randrange(1, 5)):
        copy[chance.randrange(len(copy) if chance.random() < 0.5 else min(len(copy), 64))] = chance.randrange(256)
    return bytes(copy)


def announced_pixels(file):
    """How many pixels the header of a bitstream or of a canvas tells."""
    if file[12:16] == b"VP8X":
        return (int.from_bytes(file[24:27], "little") + 1) * (int.from_bytes(file[27:30], "little") + 1)
    if file[12:16] == b"VP8L":
        sizes = int.from_bytes(file[21:25], "little")
        return ((sizes & 0x3FFF) + 1) * ((sizes >> 14 & 0x3FFF) + 1)
    return (int.from_bytes(file[26:28], "little") & 0x3FFF) * (int.from_bytes(file[28:30], "little") & 0x3FFF)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?")
    parser.add_argument("--make", action="store_true", help="make the goldens instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    options = parser.parse_args()
    if options.make:
        return make()
    decoder = ImageDecoder(options.library)
    goldens = json.loads(GOLDENS.read_text())
    files = {name: base64.b64decode(golden["file"]) for name, golden in goldens.items()}
    failed = []
    for name, golden in goldens.items():
        try:
            pixels = decoder.decode(files[name])
            if list(pixels.shape) != [*golden["size"], 3] or digest(pixels) != golden["sha256"]:
                failed.append(f"{name}: other pixels than Pillow's, shape {list(pixels.shape)}")
        except reference_kernels.Refused as refusal:
            failed.append(f"{name}: refused: {refusal}")
    print(*failed, sep="\n")
    print(f"{len(goldens) - len(failed)} of {len(goldens)} goldens equal")
    decoded = refused = 0
    for number in range(options.count):
        chance = random.Random(f"{options.seed}/{number}")
        file = broken(files[chance.choice(sorted(files))], chance)
        if announced_pixels(file) > MOST_PIXELS:
            continue
        try:
            decoder.decode(file)
            decoded += 1
        except reference_kernels.Refused as refusal:
            if not str(refusal).split(": ", 2)[-1]:
                failed.append(f"copy {number} of seed {options.seed} is refused without a message")
                print(failed[-1])
            refused += 1
    print(f"{decoded} broken copies decoded, {refused} refused, {options.count - decoded - refused} too large")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
