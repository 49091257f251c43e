# Each dependency: version range and why it is here. All are Debian 12 packages (tools/dev/install-deps installs them).

# LLVM and MLIR 19.1: the compiler infrastructure that Firn is built on; the shared libraries, so that links take seconds.
find_package(MLIR 19.1 REQUIRED CONFIG)
# lld 19.1: links artifacts in-process, so that firnc needs no system linker.
find_package(LLD 19.1 REQUIRED CONFIG)
# Protocol Buffers 3.21: the wire format of ONNX models and of Firn's own graph files.
find_package(Protobuf 3.21 REQUIRED)
# onnx 1.12 (libonnx-dev): ONNX's generated protobuf classes, so that we keep no copy of its schema.
find_package(ONNX 1.12 REQUIRED CONFIG)
# CLI11 2.1: command lines, help texts and their errors.
find_package(CLI11 2.1 REQUIRED CONFIG)
# nlohmann-json 3.11: JSON reports (compiler and tools only, never the runtime).
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
# zlib 1.2: members of .npz archives (firn-run and firn-bench only).
find_package(ZLIB 1.2 REQUIRED)
# Threads: the runtime's workers and parallel kernel compilation.
find_package(Threads REQUIRED)
if(FIRN_TESTS)
  # Catch2 2.13: unit tests.
  find_package(Catch2 2.13 REQUIRED CONFIG)
endif()
# ccache: optional, makes rebuilds cheap.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
