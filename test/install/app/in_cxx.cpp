#include <cstdio>
#include <cstring>
#include <firn/firn.hpp>

int main() {
  try {
    firn::Model model("no-such-file.firn");
  } catch (const firn::Error &error) {
    std::printf("C++: %s\n", error.what());
    return error.status() == FIRN_UNREADABLE && std::strstr(error.what(), "no-such-file.firn") ? 0 : 1;
  }
  return 1;
}
