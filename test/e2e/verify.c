/* verify FILE.firn: replays the proof of a compiled model on this machine. The smallest program that does. */
#include "runtime/include/firn/firn.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  firn_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  firn_model *model = NULL;
  firn_status status = argc == 2 ? firn_model_open(argv[1], &model, &error) : FIRN_BAD_ARGUMENT;
  if (status == FIRN_OK)
    status = firn_model_verify(model, FIRN_VERIFY_DIGEST | FIRN_VERIFY_PROOF, 2, &error);
  printf("%s %s\n", firn_status_name(status), error.message);
  firn_model_close(model);
  return status == FIRN_OK ? 0 : 1;
}
