// SPDX-License-Identifier: Apache-2.0

// A hash that must never change and is the same on every machine, because stored keys depend on it.

#ifndef PERCOLATOR_BASE_STABLE_HASH_H_
#define PERCOLATOR_BASE_STABLE_HASH_H_

#include <cstdint>
#include <string_view>

namespace percolator {

// FNV-1a with a final mix, because the low bits of FNV-1a are poor for short keys.
constexpr uint64_t StableHash(std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

}  // namespace percolator

#endif  // PERCOLATOR_BASE_STABLE_HASH_H_
