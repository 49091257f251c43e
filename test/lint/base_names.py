#!/usr/bin/env python3
"""One pass is passes/<group>/<Name>.cpp, `def <Name>` in passes/Passes.td and test/passes/<group>/<Name>.mlir, letter for letter.

Passes that only order others are in passes/Pipelines.cpp, tested by test/passes/Pipelines.mlir. A group whose passes the compiler calls as
functions registers them in passes/<group>/RegisterPasses.cpp instead of Passes.td, as `struct <Name>Pass`.
"""
import pathlib
import re
import sys

import tree

DEFINITION = re.compile(r'^def\s+(\w+)\s*:\s*\w*Pass\b', re.MULTILINE)
WRAPPER = re.compile(r'^struct (\w+)Pass : PassWrapper<', re.MULTILINE)
IMPLEMENTATION = re.compile(r'^\s*#\s*define\s+GEN_PASS_DEF_(\w+)', re.MULTILINE)


def main():
    problems = []
    passes_td = tree.ROOT / 'passes/Passes.td'
    defined = set(DEFINITION.findall(passes_td.read_text())) if passes_td.exists() else set()
    sources = {}  # pass: its group
    pipelines = tree.ROOT / 'passes/Pipelines.cpp'
    ordering = set(IMPLEMENTATION.findall(pipelines.read_text())) if pipelines.exists() else set()
    if ordering and not (tree.ROOT / 'test/passes/Pipelines.mlir').exists():
        problems.append('passes/Pipelines.cpp: test/passes/Pipelines.mlir is missing')
    for name in tree.files('.cpp'):
        path = pathlib.PurePosixPath(name)
        if path.parts[0] != 'passes' or len(path.parts) != 3:
            continue
        if path.name == 'RegisterPasses.cpp':
            for wrapped in WRAPPER.findall((tree.ROOT / name).read_text()):
                if not (tree.ROOT / 'passes' / path.parts[1] / f'{wrapped}.cpp').exists():
                    problems.append(f'{name}: passes/{path.parts[1]}/{wrapped}.cpp is missing')
                sources[wrapped] = path.parts[1]
                defined.add(wrapped)
            continue
        macros = IMPLEMENTATION.findall((tree.ROOT / name).read_text(errors='replace'))
        if len(macros) > 1:
            problems.append(f'{name}: holds {len(macros)} passes; one pass has one file')
        for macro in macros:
            if macro != path.stem.upper():
                problems.append(f'{name}: implements the pass of GEN_PASS_DEF_{macro}; its file must have that base name')
            else:
                sources[path.stem] = path.parts[1]
    tests = {(path.parts[2], path.stem) for path in map(pathlib.PurePosixPath, tree.files('.mlir'))
             if path.parts[:2] == ('test', 'passes') and len(path.parts) == 4}
    for name in sorted(defined - set(sources)):
        if name.upper() not in ordering:
            problems.append(f'passes/Passes.td: {name} has no passes/<group>/{name}.cpp')
    for name, group in sorted(sources.items()):
        if name not in defined:
            problems.append(f'passes/{group}/{name}.cpp: Passes.td has no `def {name}`')
        if (group, name) not in tests:
            problems.append(f'passes/{group}/{name}.cpp: test/passes/{group}/{name}.mlir is missing')
    for group, name in sorted(tests):
        if sources.get(name) != group:
            problems.append(f'test/passes/{group}/{name}.mlir: passes/{group}/{name}.cpp is missing')
    return tree.finish('base-names', problems, f'{len(sources)} passes, each with its entry and its test')


if __name__ == '__main__':
    sys.exit(main())
