#!/usr/bin/env python3
"""Each function of the C API says who may call it when (Threads:) and what it allocates (Memory:)."""
import re
import sys

import tree

HEADER = 'runtime/include/firn/firn.h'
FIELDS = ('Threads:', 'Memory:')
# A comment, then a declaration of a firn_ function up to its semicolon.
FUNCTION = re.compile(r'(?P<comment>/\*(?:[^*]|\*(?!/))*\*/)?\s*(?P<declaration>(?:^[A-Za-z_][\w\s\*]*?\b(?P<name>firn_\w+)\s*\([^;{]*\)[^;{]*;))',
                      re.MULTILINE)


def main():
    path = tree.ROOT / HEADER
    if not path.exists():
        return tree.finish('docstrings', [], f'{HEADER} does not exist')
    problems, count = [], 0
    text = path.read_text()
    for match in FUNCTION.finditer(text):
        if match['declaration'].startswith('typedef'):
            continue
        count += 1
        line = text.count('\n', 0, match.start('declaration')) + 1
        missing = [field for field in FIELDS if field not in (match['comment'] or '')]
        if missing:
            problems.append(f'{HEADER}:{line}: {match["name"]} does not say {" and ".join(missing)}')
    if count == 0:
        problems.append(f'{HEADER}: no function found')
    return tree.finish('docstrings', problems, f'{count} functions say {" and ".join(FIELDS)}')


if __name__ == '__main__':
    sys.exit(main())
