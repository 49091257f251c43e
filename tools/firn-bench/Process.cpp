#include "tools/firn-bench/Process.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/tensor_io/Tensor.h"

extern char **environ;

namespace firn::tools {

ProcessFigures runSelf(const std::vector<std::string> &arguments) {
  std::vector<char *> words = {const_cast<char *>("firn-bench")};
  for (const std::string &argument : arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0)
    throw Failure(Internal, "the system refused a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  auto start = std::chrono::steady_clock::now();
  pid_t child;
  int refused = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string said;
  char text[64];
  for (ssize_t got; !refused && (got = read(ends[0], text, sizeof text)) > 0;)
    said.append(text, size_t(got));
  close(ends[0]);
  int status = 0;
  if (refused || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Failure(Internal, "a new process of firn-bench failed");
  double millis = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return {millis, std::atoll(said.c_str())};
}

int64_t peakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, 6, "VmHWM:") == 0)
      return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

} // namespace firn::tools
