// A hash that is the same on every machine, today and later: it decides where things are stored.

#ifndef PERCOLATOR_BASE_STABLE_HASH_H_
#define PERCOLATOR_BASE_STABLE_HASH_H_

#include <cstdint>
#include <string_view>

namespace percolator {

// FNV-1a, and a final mix, because its low bits are poor for short keys.
constexpr uint64_t StableHash(std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

}  // namespace percolator

#endif  // PERCOLATOR_BASE_STABLE_HASH_H_
