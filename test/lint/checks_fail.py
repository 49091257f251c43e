#!/usr/bin/env python3
"""The lint checks find what they are for: each is run on a tree with one offence."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree

API = '/* Runs. Threads: any. {memory} */\nfirn_status firn_session_run(firn_session *session);\n'
# check, files of the tree, what its output must hold; '' if the tree is good
CASES = [
    ('tools/dev/check-includes', {'passes/fusion/A.cpp': '#include "compiler/Target.h"\n'},
     'passes/fusion/A.cpp:1: passes may not include compiler/Target.h'),
    ('tools/dev/check-includes', {'passes/fold/A.cpp': '#include "runtime/kernels/Kernel.h"\n'}, ''),
    ('tools/dev/check-includes', {'passes/fusion/A.cpp': '#include "runtime/kernels/Kernel.h"\n'}, 'passes may not include'),
    ('tools/dev/check-includes', {'runtime/src/a.cpp': '#include <vector>\n'}, 'runtime may not include vector'),
    ('tools/dev/check-includes', {'runtime/src/a.cpp': '#include "llvm/ADT/Twine.h"\n'}, 'runtime may not include llvm/'),
    ('tools/dev/check-includes', {'runtime/abi/a.h': '#include <stdio.h>\n'}, 'runtime/abi may not include stdio.h'),
    ('tools/dev/check-includes', {'compiler/driver/A.cpp': '#include <onnx/onnx-ml.pb.h>\n'}, 'only compiler/import'),
    ('tools/dev/check-includes', {'compiler/import/A.cpp': '#include <onnx/onnx-ml.pb.h>\n'}, ''),
    ('tools/dev/check-includes', {'tools/firnc/A.cpp': '#include "mlir/IR/Builders.h"\n'}, 'tools may not include mlir/'),
    ('tools/dev/check-includes', {'compiler/B.h': '', 'compiler/A.cpp': '#include "B.h"\n'}, 'write "compiler/B.h"'),
    ('test/lint/format.py', {'.clang-format': 'BasedOnStyle: LLVM\n', 'a.cpp': 'int  a;\n'}, 'a.cpp:1:4: not formatted'),
    ('test/lint/format.py', {'.clang-format': 'BasedOnStyle: LLVM\n', 'a.cpp': 'int a;\n'}, ''),
    ('test/lint/base_names.py', {'passes/Passes.td': 'def FuseA : Pass<"fuse-a"> {}\n'}, 'FuseA has no passes/<group>/FuseA.cpp'),
    ('test/lint/base_names.py', {'passes/Passes.td': 'def FuseA : Pass<"fuse-a"> {}\n', 'passes/fusion/FuseA.cpp': '#define GEN_PASS_DEF_FUSEA\n'},
     'test/passes/fusion/FuseA.mlir is missing'),
    ('test/lint/base_names.py', {'passes/Passes.td': '', 'test/passes/fusion/FuseA.mlir': ''}, 'passes/fusion/FuseA.cpp is missing'),
    ('test/lint/docstrings.py', {'runtime/include/firn/firn.h': API.format(memory='')}, 'firn.h:2: firn_session_run does not say Memory:'),
    ('test/lint/docstrings.py', {'runtime/include/firn/firn.h': API.format(memory='Memory: none.')}, ''),
]


def main():
    problems = []
    for check, files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(['git', 'init', '-q', root], check=True)
            for name in (check, 'test/lint/tree.py'):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree.ROOT / name, root / name)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            result = subprocess.run([sys.executable, root / check], capture_output=True, text=True)
            found = result.returncode == 1 and expected in result.stdout if expected else result.returncode == 0
            if not found:
                problems.append(f'{check} on {sorted(files)}: expected {expected or "no offence"!r}, got status '
                                f'{result.returncode}: {result.stdout}{result.stderr}')
    return tree.finish('checks-fail', problems, f'{len(CASES)} trees judged rightly')


if __name__ == '__main__':
    sys.exit(main())
