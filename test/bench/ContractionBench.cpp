// Speed of generated contractions against the machine's multiply-add peak:
//   ContractionBench [--texts] [name...]
#include "test/compiler/codegen/ContractionHarness.h"

#include <cstdio>
#include <cstring>
#include <ctime>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace firn::test;

namespace {

/// Of this thread, so that whatever else the machine does counts little.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double peak512() {
  __m512 acc[16], a = _mm512_set1_ps(1.0001f), b = _mm512_set1_ps(0.0001f);
  for (auto &x : acc)
    x = b;
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    double start = seconds();
    for (int i = 0; i < 100000; ++i)
      for (auto &x : acc) {
        x = _mm512_fmadd_ps(x, a, b);
        asm volatile("" : "+v"(x));
      }
    best = std::max(best, 100000.0 * 16 * 32 / (seconds() - start));
  }
  float sum = 0;
  for (auto &x : acc)
    sum += _mm512_reduce_add_ps(x);
  volatile float sink = sum;
  (void)sink;
  return best;
}
__attribute__((target("avx2,fma"))) double peak256() {
  __m256 acc[12], a = _mm256_set1_ps(1.0001f), b = _mm256_set1_ps(0.0001f);
  for (auto &x : acc)
    x = b;
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    double start = seconds();
    for (int i = 0; i < 100000; ++i)
      for (auto &x : acc) {
        x = _mm256_fmadd_ps(x, a, b);
        asm volatile("" : "+x"(x));
      }
    best = std::max(best, 100000.0 * 12 * 16 / (seconds() - start));
  }
  volatile float sink = acc[0][0] + acc[11][3];
  (void)sink;
  return best;
}
double peak() {
  if (__builtin_cpu_supports("avx512f"))
    return peak512();
  return __builtin_cpu_supports("avx2") ? peak256() : 0;
}
#else
double peak() { return 0; }
#endif

struct Bench {
  std::string name;
  FusedCase fused;
};

FusedCase dense(int64_t m, int64_t n, int64_t k, const std::string &activation = "relu") {
  Shape a{m, k}, b{k, n}, bias{n}, r{m, n};
  std::string t = typeText(r);
  FusedCase c;
  c.inputs = {{a}, {b, "f32", true}, {bias}};
  c.body = "%p = firn.matmul %0, %1 : (" + typeText(a) + ", " + typeText(b) + ") -> " + t +
           "\n%s = firn.add %p, %2 : (" + t + ", " + typeText(bias) + ") -> " + t + "\n%t = firn." + activation +
           " %s : (" + t + ") -> " + t + "\nfirn.yield %t : " + t;
  c.result = r;
  return c;
}

FusedCase conv(int64_t size, int64_t channels, int64_t outputs, int64_t kernel, int64_t stride, int64_t group) {
  int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  Shape x{1, size, size, channels}, w{outputs, channels / group, kernel, kernel}, bias{outputs},
      r{1, out, out, outputs};
  std::string t = typeText(r), p = std::to_string(pad), s = std::to_string(stride);
  FusedCase c;
  c.inputs = {{x}, {w, "f32", true}, {bias}};
  c.body = "%p = firn.conv %0, %1, %2 {layout = \"nhwc\", group = " + std::to_string(group) +
           " : i64, pads = array<i64: " + p + ", " + p + ", " + p + ", " + p + ">, strides = array<i64: " + s + ", " +
           s + ">} : (" + typeText(x) + ", " + typeText(w) + ", " + typeText(bias) + ") -> " + t +
           "\n%t = firn.relu %p : (" + t + ") -> " + t + "\nfirn.yield %t : " + t;
  c.result = r;
  return c;
}

/// Q K^T of `heads` heads, split from rows of all heads by views; or P V, merged back.
FusedCase attention(int64_t s, int64_t heads, int64_t size, bool isScores) {
  Shape flat{1, s, heads * size}, split{1, s, heads, size}, turned{1, heads, size, s}, rows{1, heads, s, size},
      scores{1, heads, s, s};
  auto view = [&](const std::string &name, const std::string &of, const Shape &to, const std::string &perm) {
    return "%x" + name + " = firn.reshape " + of + " : (" + typeText(flat) + ") -> " + typeText(split) + "\n%" + name +
           " = firn.transpose %x" + name + " {perm = array<i64: " + perm + ">} : (" + typeText(split) + ") -> " +
           typeText(to) + "\n";
  };
  FusedCase c;
  if (isScores) {
    c.inputs = {{flat}, {flat}};
    c.body = view("a", "%0", rows, "0, 2, 1, 3") + view("b", "%1", turned, "0, 2, 3, 1") +
             "%p = firn.matmul %a, %b : (" + typeText(rows) + ", " + typeText(turned) + ") -> " + typeText(scores) +
             "\nfirn.yield %p : " + typeText(scores);
    c.result = scores;
  } else {
    c.inputs = {{scores}, {flat}};
    c.body = view("b", "%1", rows, "0, 2, 1, 3") + "%p = firn.matmul %0, %b : (" + typeText(scores) + ", " +
             typeText(rows) + ") -> " + typeText(rows) +
             "\n%t = firn.transpose %p {perm = array<i64: 0, 2, 1, 3>} : (" + typeText(rows) + ") -> " +
             typeText(split) + "\n%y = firn.reshape %t : (" + typeText(split) + ") -> " + typeText(flat) +
             "\nfirn.yield %y : " + typeText(flat);
    c.result = flat;
  }
  return c;
}

FusedCase lstm(int64_t steps, int64_t inputs, int64_t hidden) {
  Shape x{steps, 1, inputs}, w{1, 4 * hidden, inputs}, r{1, 4 * hidden, hidden}, b{1, 8 * hidden},
      y{steps, 1, 1, hidden}, state{1, 1, hidden};
  FusedCase c;
  c.kind = "sequence";
  c.inputs = {{x}, {w, "f32", true}, {r, "f32", true}, {b}};
  c.body = "%y:3 = firn.lstm %0, %1, %2, %3 {hidden_size = " + std::to_string(hidden) + " : i64} : (" + typeText(x) +
           ", " + typeText(w) + ", " + typeText(r) + ", " + typeText(b) + ") -> (" + typeText(y) + ", " +
           typeText(state) + ", " + typeText(state) + ")\nfirn.yield %y#0 : " + typeText(y);
  c.result = y;
  return c;
}

FusedCase bytes(int64_t m, int64_t n, int64_t k) {
  Shape a{m, k}, b{k, n}, r{m, n}, one{};
  std::string t = typeText(r, "i32"), f = typeText(r);
  FusedCase c;
  c.inputs = {{a, "ui8", false, 0, 255}, {b, "i8", true, -128, 127}, {one, "ui8", false, 0, 255}, {one, "f32"}};
  c.body = "%p = firn.matmul_integer %0, %1, %2 : (" + typeText(a, "ui8") + ", " + typeText(b, "i8") + ", " +
           typeText(one, "ui8") + ") -> " + t + "\n%f = firn.cast %p {to = 1 : i64} : (" + t + ") -> " + f +
           "\n%y = firn.mul %f, %3 : (" + f + ", " + typeText(one) + ") -> " + f + "\nfirn.yield %y : " + f;
  c.result = r;
  return c;
}

/// Microseconds of the fastest run.
double measure(CompiledCase &compiled, int workers) {
  double best = 1e30, begin = seconds();
  for (int run = 0; run < 5 || seconds() - begin < 0.5; ++run) {
    double start = seconds();
    compiled.run(workers, false);
    best = std::min(best, seconds() - start);
  }
  return best * 1e6;
}

} // namespace

int main(int count, char **arguments) {
  std::vector<Bench> benches = {{"gemm 128x768x768", dense(128, 768, 768)},
                                {"gemm 128x3072x768", dense(128, 3072, 768)},
                                {"gemm 128x768x3072", dense(128, 768, 3072)},
                                {"gemm gelu 128x3072x768", dense(128, 3072, 768, "gelu")},
                                {"gemm 3136x64x64", dense(3136, 64, 64)},
                                {"gemm 3136x256x64", dense(3136, 256, 64)},
                                {"gemm 3136x64x256", dense(3136, 64, 256)},
                                {"gemm 784x512x128", dense(784, 512, 128)},
                                {"gemm 784x128x512", dense(784, 128, 512)},
                                {"gemm 12544x96x16", dense(12544, 96, 16)},
                                {"gemm 3136x24x144", dense(3136, 24, 144)},
                                {"gemm 196x256x1024", dense(196, 256, 1024)},
                                {"gemm 49x512x2048", dense(49, 512, 2048)},
                                {"gemv 512x512", dense(1, 512, 512)},
                                {"gemv 768x3072", dense(1, 3072, 768)},
                                {"conv 3x3 56 64", conv(56, 64, 64, 3, 1, 1)},
                                {"conv 3x3 28 128", conv(28, 128, 128, 3, 1, 1)},
                                {"conv 3x3 7 512", conv(7, 512, 512, 3, 1, 1)},
                                {"conv 3x3 120 96 24", conv(120, 96, 24, 3, 1, 1)},
                                {"conv stem 7x7s2 224", conv(224, 3, 64, 7, 2, 1)},
                                {"conv 3x3s2 56 128", conv(56, 128, 128, 3, 2, 1)},
                                {"depthwise 56 144", conv(56, 144, 144, 3, 1, 144)},
                                {"depthwise s2 56 144", conv(56, 144, 144, 3, 2, 144)},
                                {"depthwise 14 384", conv(14, 384, 384, 3, 1, 384)},
                                {"scores 12x128x64", attention(128, 12, 64, true)},
                                {"context 12x128x64", attention(128, 12, 64, false)},
                                {"scores 12x32x32", attention(32, 12, 32, true)},
                                {"scores decode", attention(1, 12, 64, true)},
                                {"lstm 64 256", lstm(64, 256, 256)},
                                {"bytes 128x768x768", bytes(128, 768, 768)}};
  double top = peak();
  std::printf("peak %.1f GFLOP/s\n", top / 1e9);
  bool wantsTexts = count > 1 && !std::strcmp(arguments[1], "--texts");
  for (Bench &bench : benches) {
    bool isWanted = count == 1 + wantsTexts;
    for (int i = 1 + wantsTexts; i < count; ++i)
      isWanted |= bench.name.find(arguments[i]) != std::string::npos;
    if (!isWanted)
      continue;
    CompiledCase compiled(bench.fused);
    if (!compiled.failure().empty()) {
      std::printf("%-26s %s\n", bench.name.c_str(), compiled.failure().c_str());
      continue;
    }
    if (wantsTexts)
      std::printf("%s\n", compiled.texts().c_str());
    double one = measure(compiled, 1);
    std::printf("%-26s %9.1f us %7.1f GFLOP/s %5.1f %%\n", bench.name.c_str(), one, compiled.flops() / one / 1e3,
                compiled.flops() / one * 1e6 / top * 100);
  }
}
