#include <firn/firn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  firn_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  firn_model *model = NULL;
  firn_status status = firn_model_open("no-such-file.firn", &model, &error);
  printf("C, %s: %s: %s\n", firn_version(), firn_status_name(status), error.message);
  return status == FIRN_UNREADABLE && strstr(error.message, "no-such-file.firn") ? 0 : 1;
}
