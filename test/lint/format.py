#!/usr/bin/env python3
"""Every C and C++ file is formatted as .clang-format says (clang-format-19 -i FILE mends it)."""
import concurrent.futures
import shutil
import subprocess
import sys

import tree

TOOL = shutil.which('clang-format-19')


def unformatted(name):
    """Problems of one file: where its first wrongly formatted line is."""
    result = subprocess.run([TOOL, '--dry-run', '--ferror-limit=1', '-Werror', name], cwd=tree.ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    first = result.stderr.splitlines()[0].split(': error')[0] if result.stderr else name
    return [f'{first}: not formatted; run clang-format-19 -i {name}']


def main():
    if not TOOL:
        return tree.finish('format', ['clang-format-19 not found; tools/dev/install-deps installs it'], '')
    names = tree.files('.c', '.h', '.cpp', '.hpp')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = [line for lines in pool.map(unformatted, names) for line in lines]
    return tree.finish('format', problems, f'{len(names)} files are formatted')


if __name__ == '__main__':
    sys.exit(main())
