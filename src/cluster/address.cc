// SPDX-License-Identifier: Apache-2.0

#include "src/cluster/address.h"

#include <algorithm>
#include <array>
#include <span>

#include "percolator/status_macros.h"
#include "src/base/host_port.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr std::string_view kRocksScheme = "rocksdb:";
constexpr std::string_view kMemoryScheme = "memory:";
constexpr std::string_view kServerScheme = "percolator://";
constexpr std::string_view kBigtableScheme = "bigtable:";

constexpr std::array<std::string_view, 3> kServerSettings = {"ca", "cert", "key"};
constexpr std::array<std::string_view, 7> kBigtableSettings = {"oracle", "coord", "app_profile", "endpoint",
                                                               "ca",     "cert",  "key"};

absl::Status InvalidAddress(std::string_view address, std::string_view why) {
  return absl::InvalidArgumentError(StrCat("invalid address \"", address, "\": ", why,
                                           "; expected rocksdb:DIR, memory:, percolator://HOST:PORT or "
                                           "bigtable:projects/P/instances/I?oracle=HOST:PORT&coord=HOST:PORT"));
}

absl::Status ReadSettings(std::string_view address, std::string_view text, std::span<const std::string_view> known,
                          Address* parsed) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view setting = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = setting.find('=');
    if (equals == std::string_view::npos) return InvalidAddress(address, StrCat("\"", setting, "\" is not NAME=VALUE"));
    const std::string_view name = setting.substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return InvalidAddress(address, StrCat("unknown setting \"", name, "\""));
    }
    if (!parsed->settings.emplace(name, setting.substr(equals + 1)).second) {
      return InvalidAddress(address, StrCat("duplicate setting \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Address> WithSettings(std::string_view address, Address::Kind kind, std::string_view rest,
                                     std::span<const std::string_view> known) {
  const size_t question = std::min(rest.find('?'), rest.size());
  Address parsed{kind, std::string(rest.substr(0, question)), {}};
  if (parsed.place.empty()) return InvalidAddress(address, "it does not name a server or an instance");
  rest.remove_prefix(std::min(question + 1, rest.size()));
  PERCOLATOR_RETURN_IF_ERROR(ReadSettings(address, rest, known, &parsed));
  return parsed;
}

// Checks the settings that list endpoints, separated by commas.
absl::Status CheckEndpoints(std::string_view address, const Address& parsed) {
  for (const char* name : {"oracle", "coord"}) {
    const auto setting = parsed.settings.find(name);
    std::string_view rest = setting == parsed.settings.end() ? std::string_view() : setting->second;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(','), rest.size());
      if (end > 0 && !IsEndpoint(rest.substr(0, end))) {
        return InvalidAddress(address,
                              StrCat("\"", rest.substr(0, end), "\" is not HOST:PORT with a port from 1 to 65535"));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view address) {
  std::string_view rest = address;
  if (address == kMemoryScheme) return Address{Address::Kind::kMemory, {}, {}};
  if (ConsumePrefix(&rest, kRocksScheme)) {
    if (rest.empty()) return InvalidAddress(address, "it does not name a directory");
    return Address{Address::Kind::kRocks, std::string(rest), {}};
  }
  if (ConsumePrefix(&rest, kServerScheme)) {
    absl::StatusOr<Address> parsed = WithSettings(address, Address::Kind::kServer, rest, kServerSettings);
    if (parsed.ok() && !IsEndpoint(parsed->place)) {
      return InvalidAddress(address, StrCat("\"", parsed->place, "\" is not HOST:PORT with a port from 1 to 65535"));
    }
    return parsed;
  }
  if (ConsumePrefix(&rest, kBigtableScheme)) {
    absl::StatusOr<Address> parsed = WithSettings(address, Address::Kind::kBigtable, rest, kBigtableSettings);
    if (parsed.ok()) {
      PERCOLATOR_RETURN_IF_ERROR(CheckEndpoints(address, *parsed));
    }
    return parsed;
  }
  return InvalidAddress(address, "unknown scheme");
}

}  // namespace percolator
