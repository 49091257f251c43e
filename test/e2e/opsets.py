#!/usr/bin/env python3
"""firn-opt --opset: each case and model in older and newer opsets is valid ONNX of that opset that computes the same, or is refused with
the node that has no form there.
"""
import argparse
import collections
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / 'models')]

import onnx

import get_models
import optimiser
import product

OPSETS = 9, 11, 13, 17, 21, 26


def fault(tools, model, data, rtol, atol, work, opset, options):
    """What is wrong, '' for nothing, None where the model has no form in the opset."""
    target = work / f'opset_{opset}.onnx'
    result = product.run([tools.bin / 'firn-opt', model, '-o', target, f'--opset={opset}', *options], 300)
    if result.status == product.REJECTED:
        return None if 'export.opset' in result.message or 'import.' in result.message else f'refused: {result.message.strip()[-300:]}'
    if result.status != product.DONE:
        return f'{result.describe()}: {result.message.strip()[-300:]}'
    found = {entry.domain: entry.version for entry in onnx.load(target, load_external_data=False).opset_import}
    if found.get('') != opset:
        return f'opset {found.get("")}'
    return optimiser.change(model, target, data, rtol, atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=product.ROOT / 'build/dev')
    parser.add_argument('--models', type=pathlib.Path, default=product.ROOT / '.models')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/opsets')
    parser.add_argument('--only', default='', metavar='TEXT', help='models with TEXT in their name')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    jobs = []
    for meta in sorted(optimiser.CASES.glob('*/meta.json')):
        facts = json.loads(meta.read_text())
        if facts['outcome'] == 'value' and args.only in meta.parent.name:
            jobs += [(meta.parent, facts['rtol'], facts['atol'], opset, options) for opset in OPSETS for options in ([], ['--no-optimise'])]
    jobs += [(args.models / name, 1e-3, 1e-4, opset, []) for name in ('magika', 'squeezenet', 'mlp', 'ppocr4_cls') for opset in (13, 17)
             if args.only in name and name in get_models.NAMES]

    def judge(job):
        folder, rtol, atol, opset, options = job
        work = args.work / folder.name / '_'.join([str(opset), *options])
        work.mkdir(parents=True, exist_ok=True)
        return fault(tools, folder / 'model.onnx', folder / 'test_data_set_0', rtol, atol, work, opset, options)

    passed = failed = 0
    refused = collections.Counter()
    for (folder, _, _, opset, options), why in zip(jobs, product.parallel(judge, jobs)):
        refused[opset] += why is None
        passed, failed = passed + (why == ''), failed + bool(why)
        if why:
            print(f'FAILED {folder.name}, opset {opset} {" ".join(options)}: {why}', flush=True)
    print('refused:', ', '.join(f'{count} in opset {opset}' for opset, count in refused.items()))
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
