// Loading of an ELF shared object. dlopen would do it too, at three to five times the time in a process with many
// libraries, and by a name that it may know already as another file's.
#ifndef FIRN_RUNTIME_LOADER_H
#define FIRN_RUNTIME_LOADER_H

#include <elf.h>

#include "runtime/src/Image.h"

namespace firn::runtime {

struct ProgramHeaders {
  Elf64_Phdr entries[Image::mostSegments * 2];
  int count;
};

/// Maps the segments of `file`, loads the libraries that it needs, sets its pointers, makes what is constant read-only,
/// runs its constructors. The headers have been checked against the file's size.
/// For reading nothing is executable, and no library or function is looked up.
/// name: for messages.
firn_status loadSharedObject(int file, const char *name, const ProgramHeaders &headers, uint32_t machine,
                             LoadFor purpose, Image &image, firn_error *error);

/// The address of a symbol that the loaded object exports, NULL if there is none.
const void *findExport(const Image &image, const char *symbol);

/// Runs destructors and unmaps; also what was loaded in part.
void unloadSharedObject(Image &image);

} // namespace firn::runtime
#endif
