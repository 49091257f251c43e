// The file of a compiled model: footer, hash, machine, and its code loaded as a shared object.
#ifndef FIRN_RUNTIME_IMAGE_H
#define FIRN_RUNTIME_IMAGE_H

#include <stddef.h>

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"

namespace firn::runtime {

/// Loaded code and tables. Zeroed, it is empty.
struct Image {
  static constexpr int mostSegments = 16, mostNeeded = 16;
  struct Segment {
    const char *begin;
    const char *end;
    bool isCode;
    bool isWritable;
  };
  char *mapping; // NULL: the program's own
  size_t mappingBytes;
  uint64_t bias;                   // address minus what the file says
  uint64_t strings, symbols, hash; // tables of the dynamic section, as the file says
  Segment segments[mostSegments];
  int segmentCount;
  void *needed[mostNeeded]; // libraries that it is linked with
  int neededCount;
  void (*const *destructors)();
  int64_t destructorCount;

  /// Whether [memory, memory + count * size) lies in one segment.
  bool holds(const void *memory, uint64_t count, uint64_t size) const;
  bool holdsCode(const void *function) const;
  /// Whether `text` lies in a segment, its terminator included.
  bool holdsText(const char *text) const;
};

/// Reads the footer of an open file and checks all that it says, without a look at the code.
/// name: for messages.
firn_status readFooter(int file, const char *name, firn_footer &footer, firn_error *error);

/// Refuses other machines and missing CPU features by name.
firn_status checkMachine(const firn_footer &footer, const char *name, firn_error *error);

/// What it is loaded for. Reading: only the tables are wanted, of any machine.
enum class LoadFor { Running, Reading };

/// Checks the hash of the code, then loads it and finds the descriptor.
firn_status loadImage(int file, const char *name, const firn_footer &footer, LoadFor purpose, Image &image,
                      const firn_model_desc *&descriptor, firn_error *error);

/// The program's or library's segments around `address`, for models that are linked in; false if there are none. Such
/// an image is not unloaded.
bool findProgramImage(const void *address, Image &image);

void unloadImage(Image &image);

/// Reads exactly `bytes` at `offset`.
bool readAt(int file, void *to, size_t bytes, uint64_t offset);

} // namespace firn::runtime
#endif
