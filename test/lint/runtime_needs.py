#!/usr/bin/env python3
"""The executor stays small and alone: libfirn_runtime needs only libc, libm, libpthread, libdl; it is under 200 KB stripped."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tree

ALLOWED = re.compile(r'^(libc|libm|libpthread|libdl)\.so\.\d+$|^ld-linux')
LIMIT = 200_000


def tool(name):
    return shutil.which(name) or f'/usr/lib/llvm-19/bin/llvm-{name}'


def main():
    library = sys.argv[1]
    dynamic = subprocess.run([tool('readelf'), '-d', library], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r'NEEDED.*\[(.+?)\]', dynamic)
    problems = [f'{library}: needs {name}; the executor may need only libc, libm, libpthread and libdl'
                for name in needed if not ALLOWED.match(name)]
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, 'stripped.so')
        subprocess.run([tool('strip'), '-o', stripped, library], check=True)
        size = os.path.getsize(stripped)
    if size >= LIMIT:
        problems.append(f'{library}: {size:,} bytes stripped, must be under {LIMIT:,}')
    return tree.finish('runtime-needs', problems, f'{size:,} bytes stripped, needs {", ".join(needed) or "nothing"}')


if __name__ == '__main__':
    sys.exit(main())
