// SPDX-License-Identifier: Apache-2.0

#include "sim/chance.h"

#include <charconv>
#include <cstddef>
#include <cstring>

#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr std::string_view kSiteNames[] = {
#define PERCOLATOR_SIM_SITE(name) #name,
    PERCOLATOR_SIM_SITES(PERCOLATOR_SIM_SITE)
#undef PERCOLATOR_SIM_SITE
};

// If `*text` begins with a whole number, removes it from the text.
bool ConsumeNumber(std::string_view* text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool ConsumeSite(std::string_view* text, Site* site) {
  const std::string_view name = text->substr(0, text->find('/'));
  for (size_t i = 0; i < static_cast<size_t>(Site::kFaultEnd); ++i) {
    if (kSiteNames[i] != name) continue;
    *site = static_cast<Site>(i);
    text->remove_prefix(name.size());
    return true;
  }
  return false;
}

}  // namespace

std::string_view SiteName(Site site) { return kSiteNames[static_cast<size_t>(site)]; }

std::string ToText(const FaultId& fault) { return StrCat(fault.actor, "/", SiteName(fault.site), "/", fault.n); }

bool ParseFaultId(std::string_view text, FaultId* fault) {
  uint64_t actor = 0;
  if (!ConsumeNumber(&text, &actor) || actor > UINT32_MAX) return false;
  fault->actor = static_cast<ActorId>(actor);
  return ConsumePrefix(&text, "/") && ConsumeSite(&text, &fault->site) && ConsumePrefix(&text, "/") &&
         ConsumeNumber(&text, &fault->n) && text.empty();
}

// The finish of splitmix64, over both numbers.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = bytes.size();
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    hash = Mix(hash, word);
    bytes.remove_prefix(sizeof(word));
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return Mix(hash, rest);
}

uint64_t Chance::At(const FaultId& id) const {
  return Mix(Mix(seed_, (uint64_t{id.actor} << 8) | static_cast<uint64_t>(id.site)), id.n);
}

uint64_t Chance::Count(ActorId actor, Site site) {
  if (actor >= counts_.size()) counts_.resize(actor + 1);
  return counts_[actor][static_cast<size_t>(site)]++;
}

Duration Chance::Between(ActorId actor, Site site, Duration low, Duration high) {
  const uint64_t draw = Draw(actor, site);
  if (high <= low) return low;
  return low + Duration(draw % (static_cast<uint64_t>((high - low).count()) + 1));
}

bool Chance::Happens(ActorId actor, Site site, double rate) {
  const FaultId id{actor, site, Count(actor, site)};
  // Compares the upper 53 bits, the precision of a double.
  bool happens = rate > 0 && static_cast<double>(At(id) >> 11) < rate * 0x1p53;
  if (!orders_.empty()) {
    const auto order = orders_.find(id);
    if (order != orders_.end()) happens = order->second;
  }
  if (happens) happened_.push_back(id);
  return happens;
}

}  // namespace percolator::sim
