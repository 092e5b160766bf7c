// SPDX-License-Identifier: Apache-2.0

// Byte encodings that the formats in docs/format.md are built from.
//
//   fixed32, fixed64   big-endian, so that bytes sort like numbers
//   ordered string     any bytes, encoded so that memcmp sorts encodings like the strings, even if more bytes follow:
//                      each 0x00 becomes 0x00 0xFF, and 0x00 0x01 ends the string
//
// The Consume functions remove the decoded bytes from the front of `*in`. They return false if the input is malformed.

#ifndef PERCOLATOR_BASE_CODING_H_
#define PERCOLATOR_BASE_CODING_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace percolator {

void AppendFixed32(std::string* out, uint32_t value);
void AppendFixed64(std::string* out, uint64_t value);
void AppendOrderedString(std::string* out, std::string_view value);

// REQUIRES: at least 8 bytes at `in`.
uint64_t DecodeFixed64(const char* in);

bool ConsumeFixed32(std::string_view* in, uint32_t* value);
bool ConsumeFixed64(std::string_view* in, uint64_t* value);
bool ConsumeOrderedString(std::string_view* in, std::string* value);

}  // namespace percolator

#endif  // PERCOLATOR_BASE_CODING_H_
