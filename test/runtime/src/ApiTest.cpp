// What must never change in the C API, and the C++ wrapper.
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;

TEST_CASE("status values are pinned") {
  CHECK(FIRN_OK == 0);
  CHECK(FIRN_BAD_ARGUMENT == 1);
  CHECK(FIRN_UNREADABLE == 2);
  CHECK(FIRN_BAD_MODEL == 3);
  CHECK(FIRN_BAD_VERSION == 4);
  CHECK(FIRN_BAD_MACHINE == 5);
  CHECK(FIRN_NO_MEMORY == 6);
  CHECK(FIRN_BAD_INPUT == 7);
  CHECK(FIRN_BAD_SHAPE == 8);
  CHECK(FIRN_SMALL_OUTPUT == 9);
  CHECK(FIRN_FAILED == 10);
  CHECK(FIRN_BUSY == 11);
  CHECK(FIRN_DIFFERS == 12);
  CHECK(FIRN_NO_PROOF == 13);
  CHECK(FIRN_NO_THREADS == 14);
  CHECK(std::string(firn_status_name(FIRN_NO_THREADS)) == "FIRN_NO_THREADS");
  CHECK(std::string(firn_status_name(15)) == "unknown status");
  CHECK(std::string(firn_status_name(-1)) == "unknown status");
}

TEST_CASE("struct layouts are pinned") {
  CHECK(sizeof(firn_tensor) == 128);
  CHECK(sizeof(firn_error) == 1024);
  CHECK(sizeof(firn_session_options) == 56);
  CHECK(sizeof(firn_pool_options) == 16);
  CHECK(sizeof(firn_step_time) == 40);
}

TEST_CASE("element types have names and sizes") {
  CHECK(std::string(firn_dtype_name(FIRN_F32)) == "f32");
  CHECK(std::string(firn_dtype_name(FIRN_BF16)) == "bf16");
  CHECK(std::string(firn_dtype_name(FIRN_I2)) == "i2");
  CHECK(std::string(firn_dtype_name(-4)) == "none");
  firn_tensor tensor = firn::tensor(nullptr, FIRN_I4, {3, 5});
  CHECK(firn_tensor_bytes(&tensor) == 8);
  tensor.dims[0] = -1;
  CHECK(firn_tensor_bytes(&tensor) == -1);
}

TEST_CASE("NULL arguments are refused, not followed") {
  firn_model *model = nullptr;
  firn_session *session = nullptr;
  CHECK(firn_model_open(nullptr, &model, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_model_open("x", nullptr, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_session_create(nullptr, nullptr, &session, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_session_run(nullptr, nullptr, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_model_input_count(nullptr) == 0);
  CHECK(firn_model_tables(nullptr) == nullptr);
  firn_model_close(nullptr);
  firn_session_destroy(nullptr);
  firn_pool_destroy(nullptr);
}

TEST_CASE("options without struct_size are refused") {
  std::string bytes = makeArtifact("Workers");
  firn::Model model(bytes.data(), bytes.size());
  firn_session_options options{};
  firn_pool_options poolOptions{};
  firn_allocator allocator{};
  firn_session *session = nullptr;
  firn_pool *pool = nullptr;
  firn_port_info port{};
  CHECK(firn_session_create(model.get(), &options, &session, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_pool_create(&poolOptions, &pool, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(firn_model_output(model.get(), 0, &port) == FIRN_BAD_ARGUMENT);
  options.struct_size = sizeof options;
  options.allocator = &allocator;
  CHECK(firn_session_create(model.get(), &options, &session, nullptr) == FIRN_BAD_ARGUMENT);
  CHECK(session == nullptr);
}

TEST_CASE("an older caller's structs are written no further than they reach") {
  std::string bytes = makeArtifact("ScaleAdd", scaleAddWeights());
  firn::Model model(bytes.data(), bytes.size());
  firn_port_info info;
  std::memset(&info, 0x55, sizeof info);
  info.struct_size = offsetof(firn_port_info, name);
  REQUIRE(firn_model_input(model.get(), 0, &info) == FIRN_OK);
  CHECK(info.rank == 2);
  CHECK(info.struct_size == offsetof(firn_port_info, name));
  CHECK(reinterpret_cast<uintptr_t>(info.name) == 0x5555555555555555u);
  struct {
    firn_error error;
  } small{};
  small.error.struct_size = 16; // 8 bytes of message
  firn_model *none = nullptr;
  CHECK(firn_model_open("/nowhere/at/all", &none, &small.error) == FIRN_UNREADABLE);
  CHECK(std::string(small.error.message) == "/nowher");
  CHECK(small.error.status == FIRN_UNREADABLE);
}

TEST_CASE("the C++ wrapper runs a model and throws what fails") {
  std::string path = temporaryPath("wrapper");
  writeBytes(path, makeArtifact("ScaleAdd", scaleAddWeights()));
  firn::Model model(path);
  std::remove(path.c_str());
  firn::Pool pool(2);
  firn::Session session(model, pool);
  std::vector<float> x = {1, 1, 1, 1}, b = {0, 0, 0, 1};
  firn::Results results = session.run({firn::tensor(x.data(), {1, 4}), firn::tensor(b.data(), {1, 4}), firn::absent()});
  CHECK(results.dims(0) == std::vector<int64_t>{1, 4});
  CHECK(results.data<float>(0)[3] == 41);
  CHECK_THROWS_AS(results.data<double>(0), firn::Error);
  CHECK_THROWS_AS(session.run({}), firn::Error);
  try {
    session.run({firn::tensor(x.data(), {4}), firn::tensor(b.data(), {1, 4}), firn::absent()});
    FAIL("a wrong rank was taken");
  } catch (const firn::Error &error) {
    CHECK(error.status() == FIRN_BAD_SHAPE);
  }
  CHECK_THROWS_AS(firn::Model("/nowhere"), firn::Error);
  model.verify();
}
