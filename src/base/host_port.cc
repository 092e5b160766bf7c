// SPDX-License-Identifier: Apache-2.0

#include "src/base/host_port.h"

#include <cstddef>

#include "absl/strings/numbers.h"

namespace percolator {
namespace {

constexpr size_t kPortDigits = 5;
constexpr int kLastPort = 65535;

}  // namespace

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view digits = text.substr(colon + 1);
  if (digits.empty() || digits.size() > kPortDigits) return std::nullopt;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  int port = 0;
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &port) || port > kLastPort)
    return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.find_first_of("[]") != std::string_view::npos) return std::nullopt;
  return HostPort{std::string(host), port};
}

bool IsEndpoint(std::string_view text) {
  if (text.starts_with("unix:")) return true;
  const std::optional<HostPort> parsed = ParseHostPort(text);
  return parsed.has_value() && parsed->port > 0;
}

}  // namespace percolator
