#!/usr/bin/env python3
"""docs/firn-opt.md shows every option of firn-opt, and no other."""
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1])
PAGE = pathlib.Path(__file__).resolve().parents[3] / 'docs/firn-opt.md'


def main():
    text = subprocess.run([BIN / 'firn-opt', '--help'], capture_output=True, text=True, check=True).stdout
    text = text[:text.index('Examples:')]
    # Of "-o,--output" and "--strict,--strict-math" one name is enough.
    options = [re.findall(r'--?[a-z][a-z-]*', line.split('  ')[1]) for line in text.splitlines() if re.match(r'  -', line)]
    page = PAGE.read_text()
    quoted = [command or code for command, code in re.findall(r'^    \$ (firn-opt .*)$|`([^`\n]*)`', page, re.MULTILINE)]
    shown = set(re.findall(r'(?<![\w-])--?[a-z][a-z-]*', '\n'.join(quoted)))
    missing = [names for names in options if not shown & set(names)]
    unknown = {name for name in shown if name.startswith('--')} - {name for names in options for name in names}
    for names in missing:
        print(f'FAILED {PAGE.name} does not show {", ".join(names)}')
    for name in sorted(unknown):
        print(f'FAILED {PAGE.name} shows {name}, which firn-opt does not have')
    print(f'{len(options) - len(missing)} passed, {len(missing) + len(unknown)} failed')
    return 1 if missing or unknown or not options else 0


if __name__ == '__main__':
    sys.exit(main())
