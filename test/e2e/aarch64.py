#!/usr/bin/env python3
"""Artifacts for AArch64 compute the right values: compiled here with a proof, replayed there by the executor under qemu-user."""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import product

CASES = HERE.parent / 'conformance/cases'
MODELS = {
    'bytes_depthwise': CASES / 'qlinearconv_depthwise_then_pointwise_per_channel/model.onnx',
    'bytes_dynamic': CASES / 'matmulinteger_behind_dynamic_quantisation/model.onnx',
    'bytes_product': CASES / 'matmul_of_two_quantised_inputs/model.onnx',
    'conv': CASES / 'conv_qdq_per_channel_weights/model.onnx',
    'gemm': CASES / 'gemm_transposes_alpha_beta_column_bias/model.onnx',
    'gru': CASES / 'gru_bidirectional_sequence_lengths/model.onnx',
    'layer_norm': CASES / 'layernorm_spelled_out_scale_per_row/model.onnx',
    'mlp': product.ROOT / '.models/mlp/model.onnx',
    'squeezenet': product.ROOT / '.models/squeezenet/model.onnx',
}
QEMU = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu']


def build_verifier(work):
    """The executor and verify.c for AArch64, by Debian's cross compilers."""
    program, sources = work / 'verify', sorted((product.ROOT / 'runtime/src').glob('*.cpp'))
    newest = max(path.stat().st_mtime for path in [*sources, HERE / 'verify.c', *(product.ROOT / 'runtime').rglob('*.h')])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    include = ['-I', product.ROOT, '-O1', '-c']
    jobs = [['aarch64-linux-gnu-g++', '-std=c++17', '-fno-exceptions', '-fno-rtti', '-fno-threadsafe-statics', '-DFIRN_VERSION="test"', *include,
             source, '-o', work / f'{source.stem}.o'] for source in sources]
    jobs.append(['aarch64-linux-gnu-gcc', '-std=c11', *include, HERE / 'verify.c', '-o', work / 'main.o'])
    objects = [job[-1] for job in jobs]
    for result in product.parallel(lambda job: product.run(job, 300), jobs):
        if result.status != 0:
            raise SystemExit(f'cross compiler: {result.message}')
    result = product.run(['aarch64-linux-gnu-gcc', *objects, '-o', program, '-lpthread', '-ldl', '-lm'])
    if result.status != 0:
        raise SystemExit(f'cross linker: {result.message}')
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default=product.ROOT / 'build/dev', help='build folder (default: build/dev)')
    parser.add_argument('--work', type=pathlib.Path, default=product.ROOT / 'build/e2e/aarch64')
    parser.add_argument('--only', nargs='+', default=list(MODELS), choices=list(MODELS))
    args = parser.parse_args()

    tools = product.Tools(args.build)
    args.work.mkdir(parents=True, exist_ok=True)
    verifier = build_verifier(args.work)
    passed = failed = 0
    for name in args.only:
        artifact = args.work / f'{name}.firn'
        result = tools.compile(MODELS[name], artifact, '--target', 'aarch64', '--proof', timeout=600)
        if result.status == product.DONE:
            result = product.run([*QEMU, verifier, artifact], timeout=300)
        if result.status == product.DONE:  # this machine reads what it cannot run
            result = product.run([tools.bin / 'firn-inspect', artifact])
            if "AArch64" not in result.message:
                result.status = product.REJECTED
        good = result.status == product.DONE
        passed, failed = passed + good, failed + (not good)
        print(f'{"ok    " if good else "FAILED"} {name}: {result.describe()}: {result.message.strip()[-300:]}', flush=True)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
