#include "runtime/src/Hash.h"

#include <string.h>

namespace firn::runtime {

namespace {

constexpr uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u,
                   prime4 = 0x85EBCA77C2B2AE63u, prime5 = 0x27D4EB2F165667C5u;

uint64_t rotateLeft(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }
uint32_t rotateRight(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

// Little-endian loads; every target of Firn is little-endian.
uint64_t load64(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
uint32_t load32(const unsigned char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

uint64_t mixLane(uint64_t lane, uint64_t input) { return rotateLeft(lane + input * prime2, 31) * prime1; }

} // namespace

void Xxh64::stripe(const unsigned char *data) {
  for (int i = 0; i < 4; ++i)
    lanes[i] = mixLane(lanes[i], load64(data + 8 * i));
}

void Xxh64::update(const void *data, size_t bytes) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  total += bytes;
  if (pendingBytes + bytes < 32) {
    memcpy(pending + pendingBytes, p, bytes);
    pendingBytes += bytes;
    return;
  }
  if (pendingBytes) {
    size_t fill = 32 - pendingBytes;
    memcpy(pending + pendingBytes, p, fill);
    stripe(pending);
    p += fill;
    bytes -= fill;
    pendingBytes = 0;
  }
  for (; bytes >= 32; p += 32, bytes -= 32)
    stripe(p);
  memcpy(pending, p, bytes);
  pendingBytes = bytes;
}

uint64_t Xxh64::finish() const {
  uint64_t hash = prime5;
  if (total >= 32) {
    hash = rotateLeft(lanes[0], 1) + rotateLeft(lanes[1], 7) + rotateLeft(lanes[2], 12) + rotateLeft(lanes[3], 18);
    for (uint64_t lane : lanes)
      hash = (hash ^ mixLane(0, lane)) * prime1 + prime4;
  }
  hash += total;
  const unsigned char *p = pending;
  size_t left = pendingBytes;
  for (; left >= 8; p += 8, left -= 8)
    hash = rotateLeft(hash ^ mixLane(0, load64(p)), 27) * prime1 + prime4;
  if (left >= 4) {
    hash = rotateLeft(hash ^ (load32(p) * prime1), 23) * prime2 + prime3;
    p += 4;
    left -= 4;
  }
  for (; left; ++p, --left)
    hash = rotateLeft(hash ^ (*p * prime5), 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

uint64_t xxh64(const void *data, size_t bytes) {
  Xxh64 hash;
  hash.update(data, bytes);
  return hash.finish();
}

void Sha256::block(const unsigned char *data) {
  static const uint32_t k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = __builtin_bswap32(load32(data + 4 * i));
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotateRight(w[i - 15], 7) ^ rotateRight(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = rotateRight(w[i - 2], 17) ^ rotateRight(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
           h = state[7];
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 =
        h + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
    uint32_t t2 = (rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  uint32_t next[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += next[i];
}

void Sha256::update(const void *data, size_t bytes) {
  const unsigned char *p = static_cast<const unsigned char *>(data);
  total += bytes;
  if (pendingBytes) {
    size_t fill = 64 - pendingBytes < bytes ? 64 - pendingBytes : bytes;
    memcpy(pending + pendingBytes, p, fill);
    pendingBytes += fill;
    p += fill;
    bytes -= fill;
    if (pendingBytes < 64)
      return;
    block(pending);
    pendingBytes = 0;
  }
  for (; bytes >= 64; p += 64, bytes -= 64)
    block(p);
  memcpy(pending, p, bytes);
  pendingBytes = bytes;
}

void Sha256::finish(uint8_t digest[32]) {
  uint64_t bits = __builtin_bswap64(total * 8);
  unsigned char tail[72] = {0x80};
  size_t padding = (pendingBytes < 56 ? 56 : 120) - pendingBytes;
  memcpy(tail + padding, &bits, 8);
  update(tail, padding + 8);
  for (int i = 0; i < 8; ++i) {
    uint32_t word = __builtin_bswap32(state[i]);
    memcpy(digest + 4 * i, &word, 4);
  }
}

} // namespace firn::runtime
