#!/usr/bin/env python3
"""Every code that the sources report stands in compiler/DiagnosticCodes.inc, every code there is reported somewhere, and docs/errors.md lists
them all."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / 'compiler/DiagnosticCodes.inc'
PAGE = ROOT / 'docs/errors.md'


def main():
    known = re.findall(r'^FIRN_CODE\("(.*?)"', TABLE.read_text(), re.MULTILINE)
    problems = [f'{TABLE.name}: {code} stands there twice' for code in sorted({c for c in known if known.count(c) > 1})]
    domains = '|'.join(sorted({code.split('.')[0] for code in known}))
    used = {}
    for folder in ('compiler', 'passes', 'dialects', 'tools'):
        for path in sorted((ROOT / folder).rglob('*')):
            if path.suffix in ('.cpp', '.h'):
                # A code is a whole literal; what follows tells it from attributes of the IR such as "firn.name".
                for code in re.findall(rf'"((?:{domains})(?:\.[a-z]+)+)"', path.read_text()):
                    used.setdefault(code, path.relative_to(ROOT))
    used = {code: path for code, path in used.items() if not code.startswith('firn.') or code == 'firn.internal'}
    problems += [f'{path}: {code} is missing from {TABLE.name}' for code, path in used.items() if code not in known]
    problems += [f'{TABLE.name}: nothing reports {code}' for code in known if code not in used]
    listed = re.findall(r'^\| `([a-z.]+)` \|.*\|.*\|$', PAGE.read_text(), re.MULTILINE) if PAGE.exists() else []
    listed = [code for code in listed if '.' in code]
    problems += [f'{PAGE.name}: {code} is missing; run tools/dev/generate-docs errors.md' for code in known if code not in listed]
    problems += [f'{PAGE.name}: {code} is no code; run tools/dev/generate-docs errors.md' for code in listed if code not in known]
    print('\n'.join(problems) or f'{len(known)} codes, {len(used)} reported, {len(listed)} listed')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
