#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/src/Image.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/src/Error.h"
#include "runtime/src/Hash.h"
#include "runtime/src/Loader.h"
#include "runtime/src/Machine.h"

namespace firn::runtime {

bool Image::holds(const void *memory, uint64_t count, uint64_t size) const {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    return false;
  const char *begin = static_cast<const char *>(memory);
  for (int i = 0; i < segmentCount; ++i)
    if (begin >= segments[i].begin && begin <= segments[i].end && bytes <= uint64_t(segments[i].end - begin))
      return true;
  return false;
}

bool Image::holdsCode(const void *function) const {
  const char *address = static_cast<const char *>(function);
  for (int i = 0; i < segmentCount; ++i)
    if (segments[i].isCode && address >= segments[i].begin && address < segments[i].end)
      return true;
  return false;
}

bool Image::holdsText(const char *text) const {
  for (int i = 0; i < segmentCount; ++i)
    if (text >= segments[i].begin && text < segments[i].end)
      return memchr(text, 0, size_t(segments[i].end - text)) != nullptr;
  return false;
}

bool readAt(int file, void *to, size_t bytes, uint64_t offset) {
  char *p = static_cast<char *>(to);
  while (bytes) {
    ssize_t got = pread(file, p, bytes, off_t(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    p += got;
    bytes -= size_t(got);
    offset += uint64_t(got);
  }
  return true;
}

static bool isElf(int file) {
  char start[SELFMAG];
  return readAt(file, start, sizeof start, 0) && memcmp(start, ELFMAG, SELFMAG) == 0;
}

firn_status readFooter(int file, const char *name, firn_footer &footer, firn_error *error) {
  struct stat status;
  if (fstat(file, &status) != 0)
    return fail(error, FIRN_UNREADABLE, "%s: cannot be read: %s", name, strerror(errno));
  if (!S_ISREG(status.st_mode))
    return fail(error, FIRN_UNREADABLE, "%s: is not a regular file", name);
  uint64_t size = uint64_t(status.st_size);
  if (size < sizeof footer)
    return fail(error, FIRN_BAD_MODEL, "%s: is not a compiled model: %llu bytes are too few", name,
                static_cast<unsigned long long>(size));
  if (!readAt(file, &footer, sizeof footer, size - sizeof footer))
    return fail(error, FIRN_UNREADABLE, "%s: cannot be read: %s", name, strerror(errno));
  if (memcmp(footer.magic, FIRN_MAGIC, sizeof footer.magic) != 0)
    return fail(
        error, FIRN_BAD_MODEL,
        isElf(file)
            ? "%s: has no footer of a compiled model at its end: it is cut off, damaged, or another kind of file"
            : "%s: is not a compiled model",
        name);
  if (footer.footer_hash != xxh64(&footer, offsetof(firn_footer, footer_hash)))
    return fail(error, FIRN_BAD_MODEL, "%s: is damaged: the footer's hash does not fit", name);
  if (footer.abi_version != FIRN_ABI_VERSION)
    return fail(error, FIRN_BAD_VERSION, "%s: has format version %u, this executor reads version %u; compile it again",
                name, footer.abi_version, FIRN_ABI_VERSION);
  if (footer.footer_size != sizeof footer || footer.file_size != size)
    return fail(error, FIRN_BAD_MODEL, "%s: is damaged: it has %llu bytes, the footer says %llu", name,
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(footer.file_size));
  uint64_t end = size - sizeof footer;
  if (footer.image_size > footer.weights_offset || footer.weights_offset > end ||
      footer.weights_size != end - footer.weights_offset || footer.weights_offset % FIRN_BUFFER_ALIGNMENT != 0 ||
      footer.image_size < sizeof(Elf64_Ehdr))
    return fail(error, FIRN_BAD_MODEL, "%s: is damaged: the footer's offsets do not fit", name);
  return FIRN_OK;
}

firn_status checkMachine(const firn_footer &footer, const char *name, firn_error *error) {
  if (footer.machine != hostMachine()) {
    const char *wanted = machineName(footer.machine), *present = machineName(hostMachine());
    return fail(error, FIRN_BAD_MACHINE, "%s: is compiled for %s (machine %u), this is %s", name,
                wanted ? wanted : "another machine", footer.machine, present ? present : "an unknown one");
  }
  if (uint32_t missing = footer.cpu_features & ~hostCpuFeatures()) {
    char text[512];
    return fail(error, FIRN_BAD_MACHINE,
                "%s: needs CPU features that this machine lacks: %s; compile it with --target for this machine", name,
                firn_cpu_features_text(missing, text, sizeof text));
  }
  return FIRN_OK;
}

namespace {

// Takes the program headers from the first `bytes` bytes of the file; the linker puts them right behind the header.
firn_status takeHeaders(const char *start, size_t bytes, const char *name, const firn_footer &footer,
                        ProgramHeaders &headers, firn_error *error) {
  Elf64_Ehdr elf;
  memcpy(&elf, start, sizeof elf); // readFooter saw that there are so many
  constexpr int most = Image::mostSegments * 2;
  if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
      elf.e_ident[EI_DATA] != ELFDATA2LSB || elf.e_type != ET_DYN || elf.e_machine != footer.machine ||
      elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum > most || elf.e_phoff > bytes ||
      elf.e_phnum * sizeof(Elf64_Phdr) > bytes - elf.e_phoff)
    return fail(error, FIRN_BAD_MODEL, "%s: is damaged: its ELF header is not one of a compiled model", name);
  headers.count = elf.e_phnum;
  memcpy(headers.entries, start + elf.e_phoff, headers.count * sizeof(Elf64_Phdr));
  int loads = 0;
  for (int i = 0; i < headers.count; ++i) {
    const Elf64_Phdr &header = headers.entries[i];
    if (header.p_type != PT_LOAD)
      continue;
    if (++loads > Image::mostSegments || header.p_filesz > header.p_memsz || header.p_offset > footer.image_size ||
        header.p_filesz > footer.image_size - header.p_offset)
      return fail(error, FIRN_BAD_MODEL, "%s: is damaged: an ELF segment lies outside of the code", name);
  }
  return FIRN_OK;
}

// Checks the hash of the code, then its headers. The code is read and not mapped, so that pages of code that is never
// run do not count as resident.
firn_status checkCode(int file, const char *name, const firn_footer &footer, ProgramHeaders &headers,
                      firn_error *error) {
  Xxh64 hash;
  alignas(64) char chunk[32768];
  firn_status headersFit = FIRN_OK;
  for (uint64_t at = 0; at < footer.image_size;) {
    size_t bytes = footer.image_size - at < sizeof chunk ? size_t(footer.image_size - at) : sizeof chunk;
    if (!readAt(file, chunk, bytes, at))
      return fail(error, FIRN_UNREADABLE, "%s: cannot be read: %s", name, strerror(errno));
    if (at == 0)
      headersFit = takeHeaders(chunk, bytes, name, footer, headers, error);
    hash.update(chunk, bytes);
    at += bytes;
  }
  if (hash.finish() != footer.image_hash)
    return fail(error, FIRN_BAD_MODEL, "%s: is damaged: the hash of its code does not fit", name);
  return headersFit;
}

} // namespace

firn_status loadImage(int file, const char *name, const firn_footer &footer, LoadFor purpose, Image &image,
                      const firn_model_desc *&descriptor, firn_error *error) {
  image = {};
  ProgramHeaders headers;
  FIRN_CHECK_STATUS(checkCode(file, name, footer, headers, error));
  FIRN_CHECK_STATUS(loadSharedObject(file, name, headers, footer.machine, purpose, image, error));
  descriptor = static_cast<const firn_model_desc *>(findExport(image, FIRN_MODEL_SYMBOL));
  if (!descriptor)
    return fail(error, FIRN_BAD_MODEL, "%s: is not a valid model: it has no symbol %s", name, FIRN_MODEL_SYMBOL);
  return FIRN_OK;
}

namespace {

struct ProgramSearch {
  const char *address;
  Image *image;
};

int visitProgram(dl_phdr_info *program, size_t, void *context) {
  auto &search = *static_cast<ProgramSearch *>(context);
  Image found = {};
  bool isInside = false;
  for (int i = 0; i < program->dlpi_phnum && found.segmentCount < Image::mostSegments; ++i) {
    const Elf64_Phdr &header = program->dlpi_phdr[i];
    if (header.p_type != PT_LOAD)
      continue;
    const char *begin = reinterpret_cast<const char *>(program->dlpi_addr + header.p_vaddr);
    const char *end = begin + header.p_memsz;
    isInside |= search.address >= begin && search.address < end;
    found.segments[found.segmentCount++] = {begin, end, (header.p_flags & PF_X) != 0, (header.p_flags & PF_W) != 0};
  }
  if (isInside)
    *search.image = found;
  return isInside;
}

} // namespace

bool findProgramImage(const void *address, Image &image) {
  ProgramSearch search = {static_cast<const char *>(address), &image};
  return dl_iterate_phdr(visitProgram, &search) != 0;
}

void unloadImage(Image &image) {
  if (image.mapping)
    unloadSharedObject(image);
  image = {};
}

} // namespace firn::runtime
