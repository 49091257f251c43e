// Opening, describing and verifying models; damage.
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/include/firn/firn.hpp"
#include "runtime/src/Machine.h"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

struct Opened {
  firn_status status = FIRN_OK;
  std::string message;
};

Opened open(const std::string &bytes) {
  firn_error error{};
  error.struct_size = sizeof error;
  firn_model *model = nullptr;
  Opened result;
  result.status = firn_model_open_memory(bytes.data(), bytes.size(), &model, &error);
  result.message = error.message;
  firn_model_close(model);
  return result;
}

std::string withFooter(std::string bytes, const std::function<void(firn_footer &)> &change) {
  firn_footer footer;
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  change(footer);
  sealFooter(footer);
  return bytes.replace(bytes.size() - sizeof footer, sizeof footer, reinterpret_cast<const char *>(&footer),
                       sizeof footer);
}

std::string scaleAdd() { return makeArtifact("ScaleAdd", scaleAddWeights()); }

// y of ScaleAdd for one row, or nothing if the model is refused.
std::vector<float> runIfOpens(const std::string &bytes) {
  firn_model *model = nullptr;
  if (firn_model_open_memory(bytes.data(), bytes.size(), &model, nullptr) != FIRN_OK)
    return {};
  firn_session *session = nullptr;
  REQUIRE(firn_session_create(model, nullptr, &session, nullptr) == FIRN_OK);
  std::vector<float> x = {1, 2, 3, 4}, b = {5, 6, 7, 8}, result;
  firn_tensor inputs[3] = {tensorOf(x, {1, 4}, FIRN_F32), tensorOf(b, {1, 4}, FIRN_F32), {}};
  firn_tensor output{};
  REQUIRE(firn_session_run(session, inputs, &output) == FIRN_OK);
  result.assign(static_cast<float *>(output.data), static_cast<float *>(output.data) + 4);
  firn_session_destroy(session);
  firn_model_close(model);
  return result;
}

} // namespace

TEST_CASE("a model says what it is") {
  std::string bytes = scaleAdd();
  firn::Model model(bytes.data(), bytes.size());
  REQUIRE(model.inputCount() == 3);
  REQUIRE(model.outputCount() == 1);
  firn_port_info x = model.input(0), s = model.input(2), y = model.output(0);
  CHECK(std::string(x.name) == "x");
  CHECK(x.dtype == FIRN_F32);
  CHECK(x.rank == 2);
  CHECK(x.dims[0] == -1);
  CHECK(x.dims[1] == 4);
  CHECK(std::string(x.symbols[0]) == "batch");
  CHECK(x.symbols[1] == nullptr);
  CHECK(x.optional == 0);
  CHECK(s.optional == 1);
  CHECK(y.dims[0] == -1);
  CHECK(model.findInput("b") == 1);
  CHECK(model.findInput("nobody") == -1);
  CHECK(model.findOutput("y") == 0);
  firn_model_info info = model.describe();
  CHECK(std::string(info.name) == "scale_add");
  CHECK(info.weights_bytes == scaleAddWeights().size() * 4);
  CHECK(info.arena_bytes == -1);
  CHECK(info.step_count == 2);
  CHECK(info.has_proof == 1);
  CHECK(info.has_late_sizes == 0);
  const char *key, *value;
  REQUIRE(firn_model_metadata(model.get(), 0, &key, &value) == FIRN_OK);
  CHECK(std::string(key) == "author");
  CHECK(firn_model_metadata(model.get(), 1, &key, &value) == FIRN_BAD_ARGUMENT);
  REQUIRE(firn_model_provenance(model.get(), 1, &key, &value) == FIRN_OK);
  CHECK(std::string(value) == "x86-64");
  CHECK_THAT(firn_model_constraint(model.get(), 0), Contains("(batch)"));
  CHECK(firn_model_constraint(model.get(), 2) == nullptr);
  firn_step_info step{};
  step.struct_size = sizeof step;
  REQUIRE(firn_model_step(model.get(), 1, &step) == FIRN_OK);
  CHECK(std::string(step.name) == "add");
  CHECK(step.runs == FIRN_RUNS_KERNEL);
  CHECK(firn_model_step(model.get(), 2, &step) == FIRN_BAD_ARGUMENT);
}

TEST_CASE("memory and output dims are known for given input dims") {
  std::string bytes = scaleAdd();
  firn::Model model(bytes.data(), bytes.size());
  firn_tensor inputs[3] = {firn::tensor(nullptr, FIRN_F32, {100, 4}), firn::tensor(nullptr, FIRN_F32, {100, 4}), {}};
  firn_memory memory{};
  memory.struct_size = sizeof memory;
  firn_tensor output{};
  REQUIRE(firn_model_memory(model.get(), inputs, &memory, &output, nullptr) == FIRN_OK);
  CHECK(memory.arena_bytes == 1600);
  CHECK(memory.output_bytes == 1600);
  CHECK(output.dims[0] == 100);
  CHECK(firn_model_memory(model.get(), nullptr, &memory, nullptr, nullptr) == FIRN_BAD_ARGUMENT);
  inputs[1].dims[0] = 99;
  CHECK(firn_model_memory(model.get(), inputs, &memory, nullptr, nullptr) == FIRN_BAD_SHAPE);
}

TEST_CASE("what is no compiled model is refused with the reason") {
  CHECK(open("").status == FIRN_BAD_MODEL);
  CHECK_THAT(open("tiny").message, Contains("4 bytes are too few"));
  CHECK_THAT(open(std::string(5000, 'x')).message, Contains("is not a compiled model"));
  CHECK_THAT(open(readImage("ScaleAdd")).message, Contains("no footer"));
  CHECK_THAT(open(scaleAdd() + "x").message, Contains("no footer"));
  firn_model *model = nullptr;
  firn_error error{};
  error.struct_size = sizeof error;
  CHECK(firn_model_open("/nowhere/model.firn", &model, &error) == FIRN_UNREADABLE);
  CHECK_THAT(error.message, Contains("/nowhere/model.firn: cannot be opened: No such file"));
  CHECK(firn_model_open("/tmp", &model, &error) == FIRN_UNREADABLE);
  CHECK(model == nullptr);
}

TEST_CASE("other versions, machines and CPU features are refused by name") {
  CHECK(open(withFooter(scaleAdd(), [](firn_footer &f) { f.abi_version = 7; })).status == FIRN_BAD_VERSION);
  Opened machine = open(withFooter(scaleAdd(), [](firn_footer &f) {
    f.machine = f.machine == FIRN_MACHINE_AARCH64 ? FIRN_MACHINE_X86_64 : FIRN_MACHINE_AARCH64;
  }));
  CHECK(machine.status == FIRN_BAD_MACHINE);
  CHECK_THAT(machine.message, Contains("AArch64"));
  CHECK_THAT(machine.message, Contains("x86-64"));
  Opened features = open(withFooter(scaleAdd(), [](firn_footer &f) { f.cpu_features = 1u << 31 | FIRN_CPU_DOTPROD; }));
  CHECK(features.status == FIRN_BAD_MACHINE);
  CHECK_THAT(features.message, Contains("unknown features 0x80000000"));
  CHECK(open(withFooter(scaleAdd(), [](firn_footer &f) {
          f.cpu_features = firn::runtime::hostCpuFeatures();
        })).status == FIRN_OK);
}

TEST_CASE("a model for another CPU can be read, but not run") {
  std::string path = temporaryPath("foreign");
  writeBytes(path, withFooter(scaleAdd(), [](firn_footer &footer) { footer.cpu_features |= 1u << 30; }));
  firn_model *model = nullptr;
  REQUIRE(firn_model_open(path.c_str(), &model, nullptr) == FIRN_BAD_MACHINE);
  firn_error error{};
  error.struct_size = sizeof error;
  REQUIRE(firn_model_open_to_read(path.c_str(), &model, &error) == FIRN_OK);
  std::remove(path.c_str());
  CHECK(firn_model_find_input(model, "x") == 0);
  firn_session *session = nullptr;
  CHECK(firn_session_create(model, nullptr, &session, &error) == FIRN_BAD_MACHINE);
  CHECK_THAT(error.message, Contains("opened to be read"));
  firn_model_close(model);
}

TEST_CASE("a footer whose offsets do not fit is refused") {
  for (auto change : std::vector<std::function<void(firn_footer &)>>{
           [](firn_footer &f) { f.file_size += 1; }, [](firn_footer &f) { f.image_size = f.weights_offset + 1; },
           [](firn_footer &f) { f.weights_offset += 64; }, [](firn_footer &f) { f.weights_size = UINT64_MAX; },
           [](firn_footer &f) { f.weights_offset = 0; }, [](firn_footer &f) { f.image_size = 10; },
           [](firn_footer &f) { f.footer_size = 64; }, [](firn_footer &f) { f.image_hash ^= 1; },
           [](firn_footer &f) { f.weights_offset -= 1, f.weights_size += 1; }}) {
    Opened result = open(withFooter(scaleAdd(), change));
    CHECK(result.status == FIRN_BAD_MODEL);
    CHECK_THAT(result.message, Contains("damaged"));
  }
}

TEST_CASE("each flipped byte of headers and footer is refused or changes nothing") {
  const std::string good = scaleAdd();
  const std::vector<float> wanted = runIfOpens(good);
  REQUIRE(wanted.size() == 4);
  std::vector<size_t> places;
  for (size_t at = 0; at < 64 + 56 * 12; ++at) // the ELF header and its program headers
    places.push_back(at);
  for (size_t at = good.size() - sizeof(firn_footer); at < good.size(); ++at)
    places.push_back(at);
  for (size_t at = 1000; at < readImage("ScaleAdd").size(); at += 101)
    places.push_back(at);
  for (size_t at : places) {
    std::string bad = good;
    bad[at] = char(~bad[at]);
    std::vector<float> got = runIfOpens(bad);
    if (!got.empty())
      CHECK(got == wanted);
  }
}

TEST_CASE("a file cut off at fifty places is refused") {
  const std::string good = scaleAdd();
  for (size_t k = 0; k < 50; ++k) {
    Opened result = open(good.substr(0, good.size() * k / 50));
    CHECK(result.status == FIRN_BAD_MODEL);
    CHECK(!result.message.empty());
  }
}

TEST_CASE("verification finds a changed weight and a wrong result") {
  std::string good = scaleAdd();
  firn::Model(good.data(), good.size()).verify();

  std::string flipped = good; // a weight of the proof's output, which no footer hash covers
  flipped[flipped.size() - sizeof(firn_footer) - 1] ^= 1;
  firn::Model damaged(flipped.data(), flipped.size());
  CHECK_THROWS_WITH(damaged.verify(FIRN_VERIFY_DIGEST), Contains("SHA-256"));
  CHECK_THROWS_WITH(damaged.verify(FIRN_VERIFY_PROOF), Contains("output 'y' differs in 1 of 8 elements"));

  std::vector<float> wrong = scaleAddWeights();
  wrong[64 + 3] += 1;
  std::string unproven = makeArtifact("ScaleAdd", wrong);
  firn_error error{};
  error.struct_size = sizeof error;
  firn::Model model(unproven.data(), unproven.size());
  CHECK(firn_model_verify(model.get(), FIRN_VERIFY_DIGEST, 1, &error) == FIRN_OK);
  CHECK(firn_model_verify(model.get(), FIRN_VERIFY_PROOF, 1, &error) == FIRN_DIFFERS);
  CHECK_THAT(error.message, Contains("worst at 3: expected 121.5, got 120.5"));

  std::string unprovable = makeArtifact("Workers");
  firn::Model without(unprovable.data(), unprovable.size());
  CHECK(firn_model_verify(without.get(), FIRN_VERIFY_PROOF, 1, &error) == FIRN_NO_PROOF);
}

TEST_CASE("a model that replaces an open one on disk is not confused with it") {
  std::string path = temporaryPath("replaced");
  writeBytes(path, scaleAdd());
  firn::Model old(path);
  firn::Model same(path);
  writeBytes(path, makeArtifact("Workers"));
  firn::Model replaced(path);
  CHECK(std::string(old.describe().name) == "scale_add");
  CHECK(std::string(same.describe().name) == "scale_add");
  CHECK(std::string(replaced.describe().name) == "workers");
  writeBytes(path, makeArtifact("Control"));
  CHECK(std::string(firn::Model(path).describe().name) == "control");
  CHECK(std::string(firn::Model(path).describe().name) == "control");
  std::remove(path.c_str());
}

TEST_CASE("models in memory that follow each other are not confused") {
  std::vector<std::string> names = {"ScaleAdd", "Workers", "Control", "Positive"},
                           titles = {"scale_add", "workers", "control", "positive"};
  for (int round = 0; round < 3; ++round) {
    std::vector<firn::Model> open;
    for (size_t i = 0; i < names.size(); ++i) {
      std::string bytes = makeArtifact(names[i], i ? std::vector<float>{} : scaleAddWeights());
      open.emplace_back(bytes.data(), bytes.size());
      if (i % 2)
        open.erase(open.begin());
      CHECK(titles[i] == open.back().describe().name);
    }
  }
}
