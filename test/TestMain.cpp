// Catch2's main, in a file of its own because it takes seconds to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
