#!/usr/bin/env python3
"""What firnc says of wrong models, word for word: `firnc --check` of each model of wrong_models.py against expected/NAME.txt, and the same
problems as JSON. --update rewrites the texts: read the diff. Every rejection must name node and operator where a node is at fault, what is
wrong, and what to do; nothing may crash."""
import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))

import product
import wrong_models

EXPECTED = HERE / 'expected'
OPTIONS = {'limit_of_nodes': ['--max-nodes', '10000'], 'limit_of_depth': ['--max-depth', '10'],
           'limit_of_tensor_bytes': ['--max-tensor-bytes', '100'], 'limit_of_folded_bytes': ['--max-folded-bytes', '100'],
           'limit_of_model_bytes': ['--max-model-bytes', '1000'], 'limit_of_external_bytes': ['--max-model-bytes', '2000']}


def json_problems(text, said):
    """What is wrong with the JSON, which must tell the same as the text `said`."""
    found = json.loads(text)
    if found['schema'] != 'firn.check.v1':
        yield f'schema {found["schema"]}'
    for problem in found['diagnostics']:
        missing = {'severity', 'code', 'file', 'message', 'remedy'} - {key for key, content in problem.items() if content}
        if missing:
            yield f'{problem.get("code")} without {", ".join(sorted(missing))}'
        if problem['message'] not in said.replace('\\x', 'x') or f'[{problem["code"]}]' not in said:
            yield f'the text lacks {problem["message"]}'


def judge(tools, work, name, update):
    made = wrong_models.MODELS[name](work)
    content, suffix = made if isinstance(made, tuple) else (made, '.onnx')
    path = work / f'{name}{suffix}'
    path.write_bytes(content)
    options = OPTIONS.get(name, [])
    done = product.run([tools.bin / 'firnc', '--check', path, *options])
    said = done.message.replace(f'{work}/', '')
    if done.crashed or done.status is None:
        yield f'{done.describe()}: {said}'
        return
    if done.status == product.DONE:
        # Taken, with warnings: what else --check tells is no concern of this test.
        said = ''.join(re.findall(r'^\S+: warning\[.*\n(?:  .*\n)*', said, re.MULTILINE)) or 'no problem\n'
    text = f'{done.describe()}\n{said}'
    golden = EXPECTED / f'{name}.txt'
    if update:
        golden.write_text(text)
    elif not golden.exists() or golden.read_text() != text:
        yield f'expected\n{golden.read_text() if golden.exists() else "(no file)"}found\n{text}'
    if said.count('  fix: ') != len(re.findall(r'^\S+: (?:error|warning)\[', said, re.MULTILINE)):
        yield f'a message without a fix:\n{said}'
    yield from json_problems(product.run([tools.bin / 'firnc', '--check=json', path, *options]).message, said)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--only', help='a part of the names')
    parser.add_argument('--update', action='store_true')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    work = pathlib.Path(args.build).resolve().parent / 'wrong_models'
    work.mkdir(parents=True, exist_ok=True)
    (work / 'short.bin').write_bytes(b'\0' * 16)
    EXPECTED.mkdir(exist_ok=True)
    names = [name for name in wrong_models.MODELS if not args.only or args.only in name]
    failed = 0
    for name, problems in zip(names, product.parallel(lambda name: list(judge(tools, work, name, args.update)), names)):
        failed += bool(problems)
        for problem in problems:
            print(f'FAILED {name}: {problem}')
    stale = {path.stem for path in EXPECTED.glob('*.txt')} - set(wrong_models.MODELS)
    for name in sorted(stale):
        print(f'FAILED expected/{name}.txt belongs to no model')
        if args.update:
            (EXPECTED / f'{name}.txt').unlink()
    print(f'{len(names) - failed} passed, {failed} failed')
    return 1 if failed or stale and not args.update else 0


if __name__ == '__main__':
    sys.exit(main())
