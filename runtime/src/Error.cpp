#include "runtime/src/Error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace firn::runtime {

namespace {
// Bytes of `message` that a caller with this struct_size can hold.
size_t messageCapacity(const firn_error *error) {
  size_t size = error->struct_size < sizeof(firn_error) ? error->struct_size : sizeof(firn_error);
  return size > offsetof(firn_error, message) ? size - offsetof(firn_error, message) : 0;
}
} // namespace

firn_status fail(firn_error *error, firn_status status, const char *format, ...) {
  if (!error || error->struct_size < offsetof(firn_error, message))
    return status;
  error->status = status;
  if (size_t capacity = messageCapacity(error)) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, capacity, format, arguments);
    va_end(arguments);
  }
  return status;
}

firn_status succeed(firn_error *error) {
  if (error && error->struct_size >= offsetof(firn_error, message)) {
    error->status = FIRN_OK;
    if (messageCapacity(error))
      error->message[0] = 0;
  }
  return FIRN_OK;
}

void appendText(char *text, size_t capacity, const char *format, ...) {
  size_t length = strlen(text);
  if (length + 1 >= capacity)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, capacity - length, format, arguments);
  va_end(arguments);
}

} // namespace firn::runtime
