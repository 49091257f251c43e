// Loading of a model's code: sealed files whose ELF headers lie.
#include <catch2/catch.hpp>
#include <cstddef>
#include <dirent.h>
#include <elf.h>
#include <functional>

#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

// Opens ScaleAdd with a changed image that its hash fits.
std::string openChanged(const std::function<void(std::string &)> &change) {
  std::string image = readImage("ScaleAdd");
  change(image);
  std::string bytes = makeFile(image, scaleAddWeights());
  firn_error error{};
  error.struct_size = sizeof error;
  firn_model *model = nullptr;
  firn_status status = firn_model_open_memory(bytes.data(), bytes.size(), &model, &error);
  firn_model_close(model);
  return status == FIRN_OK ? "opened" : error.message;
}

Elf64_Phdr *headerOf(std::string &image, uint32_t type) {
  auto *elf = reinterpret_cast<Elf64_Ehdr *>(&image[0]);
  auto *headers = reinterpret_cast<Elf64_Phdr *>(&image[elf->e_phoff]);
  for (int i = 0; i < elf->e_phnum; ++i)
    if (headers[i].p_type == type)
      return headers + i;
  return nullptr;
}

int threadsNow() {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  REQUIRE(folder);
  while (dirent *entry = readdir(folder))
    count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

} // namespace

TEST_CASE("an unchanged image opens") {
  CHECK(openChanged([](std::string &) {}) == "opened");
}

TEST_CASE("segments that do not follow one another or hold no contents are refused") {
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_LOAD)->p_vaddr += uint64_t(1) << 50; }),
             Contains("its code cannot be loaded"));
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_LOAD)->p_vaddr += 8; }), Contains("aligned"));
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_LOAD)->p_flags = PF_R | PF_W | PF_X; }),
             Contains("writable and executable"));
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_DYNAMIC)->p_type = PT_TLS; }),
             Contains("variables of threads"));
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_DYNAMIC)->p_type = PT_NULL; }),
             Contains("no dynamic section"));
  CHECK_THAT(openChanged([](std::string &image) { headerOf(image, PT_DYNAMIC)->p_vaddr += uint64_t(1) << 30; }),
             Contains("no dynamic section"));
}

TEST_CASE("relocations outside of the data or of unknown types are refused") {
  auto eachDynamic = [](std::string &image, const std::function<void(Elf64_Dyn &)> &change) {
    Elf64_Phdr header = *headerOf(image, PT_DYNAMIC);
    auto *entries = reinterpret_cast<Elf64_Dyn *>(&image[header.p_offset]);
    for (size_t i = 0; i < header.p_filesz / sizeof *entries && entries[i].d_tag != DT_NULL; ++i)
      change(entries[i]);
  };
  auto changed = [&](int64_t tag, uint64_t to) {
    return openChanged([&](std::string &image) {
      eachDynamic(image, [&](Elf64_Dyn &entry) {
        if (entry.d_tag == tag)
          entry.d_un.d_val = to;
      });
    });
  };
  CHECK_THAT(changed(DT_RELA, uint64_t(1) << 40), Contains("relocations lie outside"));
  CHECK_THAT(changed(DT_RELASZ, uint64_t(1) << 40), Contains("relocations lie outside"));
  CHECK_THAT(changed(DT_SYMTAB, uint64_t(1) << 40), Contains("model"));
  CHECK_THAT(changed(DT_STRTAB, uint64_t(1) << 40), Contains("model"));
  CHECK_THAT(changed(DT_GNU_HASH, uint64_t(1) << 40), Contains("no symbol firn_model_v1"));
  // Each of the first relocation's bytes: its place, its type.
  auto first = [&](size_t offset, uint64_t to) {
    return openChanged([&](std::string &image) {
      uint64_t rela = 0;
      eachDynamic(image, [&](Elf64_Dyn &entry) { rela = entry.d_tag == DT_RELA ? entry.d_un.d_val : rela; });
      std::memcpy(&image[rela + offset], &to, sizeof to); // the first segment's addresses are its offsets
    });
  };
  CHECK_THAT(first(offsetof(Elf64_Rela, r_offset), 64), Contains("outside of its data"));
  CHECK_THAT(first(offsetof(Elf64_Rela, r_offset), ~uint64_t(7)), Contains("outside of its data"));
  CHECK_THAT(first(offsetof(Elf64_Rela, r_info), 999), Contains("relocation of type 999"));
}

TEST_CASE("a session starts its threads with its first run") {
  std::string bytes = makeArtifact("Workers");
  firn_model *model = nullptr;
  REQUIRE(firn_model_open_memory(bytes.data(), bytes.size(), &model, nullptr) == FIRN_OK);
  firn_session_options options{};
  options.struct_size = sizeof options;
  options.threads = 3;
  int before = threadsNow();
  firn_session *session = nullptr;
  REQUIRE(firn_session_create(model, &options, &session, nullptr) == FIRN_OK);
  CHECK(firn_session_threads(session) == 3);
  CHECK(threadsNow() == before);
  firn_session_destroy(session);
  firn_model_close(model);
}
