#!/usr/bin/env python3
"""firnc --emit=obj: two models linked into one C program open, and compute what their proofs say. A tampered description is refused."""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import product

# Generated kernels; reference kernels (TopK has no generated code).
CASES = {'gemm': 'gemm_transposes_alpha_beta_column_bias', 'topk': 'topk_k_input_axis_zero_opset10'}

PROGRAM = r'''
#include "gemm.h"
#include "topk.h"
#include <stdio.h>
int main(void) {
  const firn_static_model *linked[] = {&gemm_model, &topk_model};
  firn_model *model;
  firn_error error = {.struct_size = sizeof error};
  for (int i = 0; i < 2; ++i) {
    if (firn_model_open_static(linked[i], &model, &error))
      return puts(error.message), 1;
    firn_status status = firn_model_verify(model, FIRN_VERIFY_DIGEST | FIRN_VERIFY_PROOF, 1, &error);
    printf("%s\n", firn_status_name(status));
    firn_model_close(model);
  }
  firn_static_model other = gemm_model;
  other.machine += 1;
  if (firn_model_open_static(&other, &model, &error) != FIRN_BAD_MACHINE)
    return puts("a model for another machine was opened"), 1;
  other = gemm_model;
  other.digest[0] ^= 1;
  if (firn_model_open_static(&other, &model, &error))
    return puts(error.message), 1;
  if (firn_model_verify(model, FIRN_VERIFY_DIGEST, 1, &error) == FIRN_OK)
    return puts("a wrong digest was accepted"), 1;
  firn_model_close(model);
  return 0;
}
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build/dev')
    args = parser.parse_args()
    tools = product.Tools(args.build)
    work = pathlib.Path(args.build).resolve().parent / 'static_object'
    work.mkdir(parents=True, exist_ok=True)
    objects = []
    for name, case in CASES.items():
        objects.append(work / f'{name}.o')
        model = HERE.parent / 'conformance/cases' / case / 'model.onnx'
        done = tools.compile(model, objects[-1], '--emit=obj', '--proof')
        if done.status != product.DONE:
            sys.exit(f'{case}: {done.describe()}: {done.message}')
    (work / 'program.c').write_text(PROGRAM)
    library = pathlib.Path(args.build).resolve() / 'lib/libfirn_runtime.a'
    done = product.run(['cc', '-I', product.ROOT / 'runtime/include', '-I', work, work / 'program.c', *objects, library, '-lm', '-lpthread',
                        '-ldl', '-o', work / 'program'])
    if done.status == 0:
        done = product.run([work / 'program'])
    print(done.message, end='')
    passed = done.status == 0 and done.message.split() == ['FIRN_OK', 'FIRN_OK']
    print(f'{int(passed)} passed, {int(not passed)} failed')
    sys.exit(not passed)


if __name__ == '__main__':
    main()
