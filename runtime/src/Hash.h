// XXH64 (damage of code and footer, checked at every open) and SHA-256 (the digest of the whole file, on request).
#ifndef FIRN_RUNTIME_HASH_H
#define FIRN_RUNTIME_HASH_H

#include <stddef.h>
#include <stdint.h>

namespace firn::runtime {

/// XXH64 with seed 0, fed in pieces.
class Xxh64 {
public:
  void update(const void *data, size_t bytes);
  uint64_t finish() const;

private:
  void stripe(const unsigned char *data);
  // The four lanes' start for seed 0: PRIME1 + PRIME2, PRIME2, 0, -PRIME1.
  uint64_t lanes[4] = {0x60EA27EEADC0B5D6u, 0xC2B2AE3D27D4EB4Fu, 0, 0x61C8864E7A143579u};
  uint64_t total = 0;
  unsigned char pending[32] = {};
  size_t pendingBytes = 0;
};

uint64_t xxh64(const void *data, size_t bytes);

/// SHA-256, fed in pieces.
class Sha256 {
public:
  void update(const void *data, size_t bytes);
  void finish(uint8_t digest[32]);

private:
  void block(const unsigned char *data);
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t total = 0;
  unsigned char pending[64] = {};
  size_t pendingBytes = 0;
};

} // namespace firn::runtime
#endif
