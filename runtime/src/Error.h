// Messages of failed calls.
#ifndef FIRN_RUNTIME_ERROR_H
#define FIRN_RUNTIME_ERROR_H

#include <stddef.h>

#include "runtime/include/firn/firn.h"

namespace firn::runtime {

/// Writes status and message into `error` (NULL is fine; no further than its struct_size) and returns the status.
__attribute__((format(printf, 3, 4))) firn_status fail(firn_error *error, firn_status status, const char *format, ...);

/// Empties `error` and returns FIRN_OK.
firn_status succeed(firn_error *error);

/// Appends to terminated text of `capacity` bytes; what does not fit is left out.
__attribute__((format(printf, 3, 4))) void appendText(char *text, size_t capacity, const char *format, ...);

/// Evaluates an expression that yields a status and returns it from the enclosing function unless it is FIRN_OK.
#define FIRN_CHECK_STATUS(expression)                                                                                  \
  do {                                                                                                                 \
    firn_status firnStatus = (expression);                                                                             \
    if (firnStatus != FIRN_OK)                                                                                         \
      return firnStatus;                                                                                               \
  } while (0)

} // namespace firn::runtime
#endif
