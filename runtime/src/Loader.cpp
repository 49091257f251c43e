#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/src/Loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/src/Error.h"

namespace firn::runtime {

namespace {

// What relocations of a machine mean.
struct RelocationTypes {
  uint32_t relative; // address of the object plus addend
  uint32_t pointer;  // symbol plus addend
  uint32_t entry;    // symbol, in a table of pointers
  uint32_t call;     // symbol, in a table of functions
};

RelocationTypes relocationTypes(uint32_t machine) {
  switch (machine) {
  case FIRN_MACHINE_AARCH64:
    return {R_AARCH64_RELATIVE, R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT};
  case FIRN_MACHINE_RISCV:
    return {R_RISCV_RELATIVE, R_RISCV_64, R_RISCV_64, R_RISCV_JUMP_SLOT};
  }
  return {R_X86_64_RELATIVE, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
}

// The entries of the dynamic section that matter.
struct Dynamic {
  const Elf64_Dyn *entries;
  size_t count;

  uint64_t get(int64_t tag) const {
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i)
      if (entries[i].d_tag == tag)
        return entries[i].d_un.d_val;
    return 0;
  }
};

class Loader {
public:
  Loader(int from, const char *fileName, const ProgramHeaders &checked, uint32_t machine, LoadFor purpose,
         Image &loaded, firn_error *reported)
      : file(from), name(fileName), headers(checked), types(relocationTypes(machine)),
        isRunning(purpose == LoadFor::Running), image(loaded), error(reported), page(uint64_t(sysconf(_SC_PAGESIZE))) {}

  firn_status run() {
    FIRN_CHECK_STATUS(measure());
    for (int i = 0; i < headers.count; ++i)
      if (headers.entries[i].p_type == PT_LOAD)
        FIRN_CHECK_STATUS(map(headers.entries[i]));
    FIRN_CHECK_STATUS(findDynamic());
    if (isRunning)
      FIRN_CHECK_STATUS(loadNeeded());
    FIRN_CHECK_STATUS(relocate(dynamic.get(DT_RELA), dynamic.get(DT_RELASZ)));
    FIRN_CHECK_STATUS(relocate(dynamic.get(DT_JMPREL), dynamic.get(DT_PLTRELSZ)));
    FIRN_CHECK_STATUS(protect());
    return isRunning ? construct() : FIRN_OK;
  }

private:
  const int file;
  const char *const name;
  const ProgramHeaders &headers;
  const RelocationTypes types;
  const bool isRunning;
  Image &image;
  firn_error *const error;
  const uint64_t page;
  uint64_t lowest = 0; // of what the file calls addresses
  Dynamic dynamic{};

  __attribute__((format(printf, 2, 3))) firn_status bad(const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(error, FIRN_BAD_MODEL, "%s: its code cannot be loaded: %s", name, text);
  }

  uint64_t down(uint64_t address) const { return address / page * page; }
  uint64_t up(uint64_t address) const { return down(address + page - 1); }
  char *place(uint64_t address) const { return reinterpret_cast<char *>(image.bias + address); }

  // The table of `count` entries at an address of the file, NULL if it is not all there.
  template <typename T> const T *table(uint64_t address, uint64_t count) const {
    const T *at = reinterpret_cast<const T *>(place(address));
    return address % alignof(T) == 0 && image.holds(at, count, sizeof(T)) ? at : nullptr;
  }

  firn_status measure() {
    uint64_t end = 0;
    bool isFirst = true;
    for (int i = 0; i < headers.count; ++i) {
      const Elf64_Phdr &header = headers.entries[i];
      if (header.p_type == PT_TLS)
        return bad("it has variables of threads");
      if (header.p_type != PT_LOAD)
        continue;
      uint64_t last;
      if (__builtin_add_overflow(header.p_vaddr, header.p_memsz, &last) || last > (uint64_t(1) << 40) ||
          (!isFirst && down(header.p_vaddr) < up(end)))
        return bad("its segments do not follow one another");
      if (header.p_vaddr % page != header.p_offset % page)
        return bad("its segments are not aligned to the %llu bytes of this machine's pages",
                   static_cast<unsigned long long>(page));
      if ((header.p_flags & PF_W) && (header.p_flags & PF_X))
        return bad("a segment is writable and executable");
      if (!(header.p_flags & PF_W) && header.p_memsz != header.p_filesz)
        return bad("a read-only segment has no contents");
      if (isFirst)
        lowest = down(header.p_vaddr);
      isFirst = false;
      end = last;
    }
    if (isFirst || end == lowest)
      return bad("it has no segments");
    image.mappingBytes = size_t(up(end) - lowest);
    return FIRN_OK;
  }

  firn_status refused() { return bad("the system refused a mapping: %s", strerror(errno)); }

  // The first segment's mapping reserves the addresses of all.
  firn_status map(const Elf64_Phdr &header) {
    int protection = (header.p_flags & PF_R ? PROT_READ : 0) | (header.p_flags & PF_W ? PROT_WRITE : 0) |
                     (header.p_flags & PF_X && isRunning ? PROT_EXEC : 0);
    off_t offset = off_t(down(header.p_offset));
    if (!image.mapping) {
      void *mapping = mmap(nullptr, image.mappingBytes, protection, MAP_PRIVATE, file, offset);
      if (mapping == MAP_FAILED)
        return refused();
      image.mapping = static_cast<char *>(mapping);
      image.bias = reinterpret_cast<uint64_t>(mapping) - lowest;
    } else if (header.p_filesz &&
               mmap(place(down(header.p_vaddr)), size_t(up(header.p_vaddr + header.p_filesz) - down(header.p_vaddr)),
                    protection, MAP_PRIVATE | MAP_FIXED, file, offset) == MAP_FAILED) {
      return refused();
    }
    uint64_t contents = header.p_vaddr + header.p_filesz, end = header.p_vaddr + header.p_memsz;
    uint64_t whole = header.p_filesz ? up(contents) : down(header.p_vaddr);
    if (end > contents && whole > contents)
      memset(place(contents), 0, size_t((end < whole ? end : whole) - contents));
    if (end > whole && mmap(place(whole), size_t(up(end) - whole), protection, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS,
                            -1, 0) == MAP_FAILED)
      return refused();
    const char *begin = place(header.p_vaddr);
    image.segments[image.segmentCount++] = {begin, begin + header.p_memsz, (header.p_flags & PF_X) != 0,
                                            (header.p_flags & PF_W) != 0};
    return FIRN_OK;
  }

  firn_status findDynamic() {
    for (int i = 0; i < headers.count; ++i)
      if (headers.entries[i].p_type == PT_DYNAMIC)
        dynamic.count = size_t(headers.entries[i].p_filesz / sizeof(Elf64_Dyn)),
        dynamic.entries = table<Elf64_Dyn>(headers.entries[i].p_vaddr, dynamic.count);
    if (!dynamic.entries)
      return bad("it has no dynamic section");
    if (dynamic.get(DT_TEXTREL) || (dynamic.get(DT_FLAGS) & DF_TEXTREL))
      return bad("its code would have to be changed");
    image.strings = dynamic.get(DT_STRTAB);
    image.symbols = dynamic.get(DT_SYMTAB);
    image.hash = dynamic.get(DT_GNU_HASH);
    return FIRN_OK;
  }

  const char *text(uint64_t offset) const {
    const char *at = place(image.strings + offset);
    return image.strings && image.holdsText(at) ? at : nullptr;
  }

  firn_status loadNeeded() {
    for (size_t i = 0; i < dynamic.count && dynamic.entries[i].d_tag != DT_NULL; ++i) {
      if (dynamic.entries[i].d_tag != DT_NEEDED)
        continue;
      const char *library = text(dynamic.entries[i].d_un.d_val);
      if (!library || image.neededCount == Image::mostNeeded)
        return bad("it names more than %d libraries, or none", Image::mostNeeded);
      void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
      if (!handle)
        return bad("%s", dlerror());
      image.needed[image.neededCount++] = handle;
    }
    return FIRN_OK;
  }

  firn_status resolve(uint64_t index, uint64_t &value) {
    const Elf64_Sym *symbol = table<Elf64_Sym>(image.symbols + index * sizeof(Elf64_Sym), 1);
    const char *called = symbol ? text(symbol->st_name) : nullptr;
    if (!called)
      return bad("a symbol lies outside of it");
    if (symbol->st_shndx != SHN_UNDEF) {
      value = image.bias + symbol->st_value;
      return FIRN_OK;
    }
    value = 0;
    if (!isRunning)
      return FIRN_OK;
    void *found = dlsym(RTLD_DEFAULT, called);
    for (int i = 0; !found && i < image.neededCount; ++i)
      found = dlsym(image.needed[i], called);
    if (!found && ELF64_ST_BIND(symbol->st_info) != STB_WEAK)
      return bad("this process has no '%s'", called);
    value = reinterpret_cast<uint64_t>(found);
    return FIRN_OK;
  }

  // Whether 8 bytes there may be written.
  bool isWritable(const char *at) const {
    for (int i = 0; i < image.segmentCount; ++i)
      if (image.segments[i].isWritable && at >= image.segments[i].begin && at < image.segments[i].end)
        return image.segments[i].end - at >= 8;
    return false;
  }

  firn_status relocate(uint64_t address, uint64_t bytes) {
    uint64_t count = bytes / sizeof(Elf64_Rela);
    const Elf64_Rela *list = table<Elf64_Rela>(address, count);
    if (count && !list)
      return bad("its relocations lie outside of it");
    for (uint64_t i = 0; i < count; ++i) {
      const Elf64_Rela &entry = list[i];
      uint32_t type = uint32_t(ELF64_R_TYPE(entry.r_info));
      uint64_t value = 0;
      if (type == types.relative)
        value = image.bias;
      else if (type == types.pointer || type == types.entry || type == types.call)
        FIRN_CHECK_STATUS(resolve(ELF64_R_SYM(entry.r_info), value));
      else
        return bad("it has a relocation of type %u", type);
      char *at = place(entry.r_offset);
      if (!isWritable(at))
        return bad("a relocation lies outside of its data");
      value += uint64_t(entry.r_addend);
      memcpy(at, &value, sizeof value);
    }
    return FIRN_OK;
  }

  firn_status protect() {
    for (int i = 0; i < headers.count; ++i) {
      const Elf64_Phdr &header = headers.entries[i];
      if (header.p_type != PT_GNU_RELRO)
        continue;
      uint64_t begin = down(header.p_vaddr), end;
      if (__builtin_add_overflow(header.p_vaddr, header.p_memsz, &end) || begin < lowest ||
          down(end) > lowest + image.mappingBytes)
        return bad("what is to be read-only lies outside of it");
      if (down(end) > begin && mprotect(place(begin), size_t(down(end) - begin), PROT_READ) != 0)
        return refused();
    }
    return FIRN_OK;
  }

  using Function = void (*)();

  firn_status functions(int64_t tag, int64_t sizeTag, Function const *&list, int64_t &count) {
    count = int64_t(dynamic.get(sizeTag) / sizeof(Function));
    list = table<Function>(dynamic.get(tag), uint64_t(count));
    if (count && !list)
      return bad("its constructors lie outside of it");
    for (int64_t i = 0; i < count; ++i)
      if (!image.holdsCode(reinterpret_cast<const void *>(list[i])))
        return bad("a constructor lies outside of it");
    return FIRN_OK;
  }

  // The compiler writes no constructors; code that a user brings may have them.
  firn_status construct() {
    Function const *constructors, *destructors;
    int64_t count, last;
    FIRN_CHECK_STATUS(functions(DT_INIT_ARRAY, DT_INIT_ARRAYSZ, constructors, count));
    FIRN_CHECK_STATUS(functions(DT_FINI_ARRAY, DT_FINI_ARRAYSZ, destructors, last));
    for (int64_t i = 0; i < count; ++i)
      constructors[i]();
    image.destructors = destructors;
    image.destructorCount = last;
    return FIRN_OK;
  }
};

uint32_t gnuHash(const char *text) {
  uint32_t hash = 5381;
  for (; *text; ++text)
    hash = hash * 33 + static_cast<unsigned char>(*text);
  return hash;
}

} // namespace

firn_status loadSharedObject(int file, const char *name, const ProgramHeaders &headers, uint32_t machine,
                             LoadFor purpose, Image &image, firn_error *error) {
  return Loader(file, name, headers, machine, purpose, image, error).run();
}

const void *findExport(const Image &image, const char *symbol) {
  // Header: buckets, the first symbol in the table, words of the Bloom filter; then filter, buckets, chains.
  auto word = [&](uint64_t offset, uint32_t &value) {
    const char *at = reinterpret_cast<const char *>(image.bias + image.hash + offset);
    if (!image.hash || !image.holds(at, 1, sizeof value))
      return false;
    memcpy(&value, at, sizeof value);
    return true;
  };
  uint32_t buckets, first, filter, index, hash = gnuHash(symbol);
  if (!word(0, buckets) || !word(4, first) || !word(8, filter) || buckets == 0)
    return nullptr;
  uint64_t begin = 16 + uint64_t(filter) * 8, chains = begin + uint64_t(buckets) * 4;
  if (!word(begin + uint64_t(hash % buckets) * 4, index) || index < first)
    return nullptr;
  for (uint32_t link = 0; !(link & 1); ++index) { // the last link of a chain is odd
    Elf64_Sym entry;
    const char *at = reinterpret_cast<const char *>(image.bias + image.symbols + uint64_t(index) * sizeof entry);
    if (!word(chains + uint64_t(index - first) * 4, link) || !image.holds(at, 1, sizeof entry))
      return nullptr;
    memcpy(&entry, at, sizeof entry);
    const char *called = reinterpret_cast<const char *>(image.bias + image.strings + entry.st_name);
    if ((link | 1) == (hash | 1) && image.holdsText(called) && strcmp(called, symbol) == 0)
      return reinterpret_cast<const void *>(image.bias + entry.st_value);
  }
  return nullptr;
}

void unloadSharedObject(Image &image) {
  for (int64_t i = image.destructorCount - 1; i >= 0; --i)
    image.destructors[i]();
  if (image.mapping)
    munmap(image.mapping, image.mappingBytes);
  for (int i = 0; i < image.neededCount; ++i)
    dlclose(image.needed[i]);
}

} // namespace firn::runtime
