// SPDX-License-Identifier: Apache-2.0

#include "sim/faults.h"

#include <array>
#include <bit>
#include <cstdio>

#include "sim/dice.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

using Rates = Faults::Rates;

constexpr RateField kRateFields[] = {
    {"request_lost", &Rates::request_lost},
    {"reply_lost", &Rates::reply_lost},
    {"slow_request", &Rates::slow_request},
    {"slow_reply", &Rates::slow_reply},
    {"duplicate", &Rates::duplicate},
    {"table_lost", &Rates::table_lost},
    {"crash", &Rates::crash},
    {"crash_after_send", &Rates::crash_after_send},
    {"pause", &Rates::pause},
    {"pause_after_send", &Rates::pause_after_send},
    {"session_lost", &Rates::session_lost},
    {"store_restart", &Rates::store_restart},
    {"oracle_restart", &Rates::oracle_restart},
    {"clock_step", &Rates::clock_step},
    {"false_dead", &Rates::false_dead},
    {"false_alive", &Rates::false_alive},
    {"hint_lost", &Rates::hint_lost},
    {"hint_twice", &Rates::hint_twice},
    {"spurious_wake", &Rates::spurious_wake},
};

void RollRates(Dice* dice, Rates* rates) {
  rates->request_lost = dice->Rate(0.001, 0.1);
  rates->reply_lost = dice->Rate(0.001, 0.1);
  rates->slow_request = dice->Rate(0.001, 0.1);
  rates->slow_reply = dice->Rate(0.001, 0.1);
  rates->duplicate = dice->Rate(0.01, 0.5);
  rates->table_lost = dice->Toss() ? dice->Rate(0.01, 0.1) : 0;
  rates->crash = dice->Rate(0.0002, 0.005);
  rates->crash_after_send = dice->Rate(0.0002, 0.005);
  rates->pause = dice->Rate(0.0005, 0.02);
  rates->pause_after_send = dice->Rate(0.0005, 0.02);
  rates->session_lost = dice->Rate(0.0001, 0.005);
  rates->store_restart = dice->Rate(0.0001, 0.005);
  rates->oracle_restart = dice->Rate(0.001, 0.05);
  rates->clock_step = dice->Rate(0.1, 1);
  rates->false_dead = dice->Rate(0.01, 0.5);
  rates->false_alive = dice->Rate(0.01, 0.5);
  rates->hint_lost = dice->Rate(0.05, 0.9);
  rates->hint_twice = dice->Rate(0.05, 0.5);
  rates->spurious_wake = dice->Rate(0.01, 0.3);
}

void RollTimes(Dice* dice, Faults* faults) {
  faults->latency_max = dice->OneOf({Duration(200), Duration(1'000), Duration(5'000)});
  faults->latency_min = faults->latency_max / dice->OneOf({2, 10, 50});
  faults->spread_max = faults->latency_max * dice->OneOf({0, 1, 3});
  faults->call_timeout = faults->latency_max * dice->OneOf({6, 20});
  faults->lease = dice->OneOf({Duration(20'000), Duration(200'000), Duration(2'000'000)});
  faults->slow_max = dice->OneOf({faults->call_timeout * 2, faults->lease * 3});
  faults->duplicate_max = dice->OneOf({faults->latency_max * 4, faults->lease, faults->lease * 10});
  faults->pause_max = dice->OneOf({faults->lease / 2, faults->lease * 2, faults->lease * 5});
  faults->down_max = dice->OneOf({faults->latency_max, faults->lease});
}

void RollShape(Dice* dice, Faults* faults) {
  const CallKind focus = dice->OneOf(
      {CallKind::kRead, CallKind::kMutate, CallKind::kMutate, CallKind::kMutateTogether, CallKind::kOracle});
  if (dice->Toss()) faults->focus = focus;
  faults->focus_factor = dice->OneOf({5.0, 20.0});
  faults->crash_ends_session = dice->Toss();
  faults->rows_travel_alone = dice->Toss();
  faults->scan_step = dice->OneOf<size_t>({0, 1, 3});
  if (dice->Toss()) faults->limits.max_scan_bytes = dice->OneOf<size_t>({1, 100, 1000});
  if (dice->Toss()) faults->limits.max_scan_work = dice->OneOf<size_t>({1, 5, 50});
  faults->one_step = dice->Toss();
  faults->one_step_max = dice->OneOf({faults->latency_max, faults->latency_max * 10});
  faults->batching_oracle = dice->Toss();
  faults->oracle_window = dice->OneOf({Duration(1'000), Duration(100'000), Duration(1'000'000)});
  faults->clock_step_max = faults->oracle_window * 3;
}

// The name of a duration, and what it limits.
struct TimeField {
  std::string_view name;
  Duration Faults::*time;
};
constexpr TimeField kTimeFields[] = {
    {"latency_min", &Faults::latency_min},
    {"latency_max", &Faults::latency_max},
    {"slow_max", &Faults::slow_max},
    {"spread_max", &Faults::spread_max},
    {"duplicate_max", &Faults::duplicate_max},
    {"call_timeout", &Faults::call_timeout},
    {"lease", &Faults::lease},
    {"pause_max", &Faults::pause_max},
    {"down_max", &Faults::down_max},
    {"one_step_max", &Faults::one_step_max},
    {"oracle_window", &Faults::oracle_window},
    {"clock_step_max", &Faults::clock_step_max},
};

std::string RateText(double rate) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", rate);
  return text;
}

}  // namespace

std::string_view CallName(CallKind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "Store::Read", "Store::Scan", "Store::Mutate", "Store::MutateTogether", "Store (tables)", "Oracle", "Coordinator",
  };
  return kNames[static_cast<size_t>(kind)];
}

Faults Faults::Swarm(uint64_t seed) {
  Dice dice(seed, "swarm");
  Faults faults;
  RollRates(&dice, &faults.rates);
  RollTimes(&dice, &faults);
  RollShape(&dice, &faults);
  faults.draws_with_locks = dice.Toss();
  return faults;
}

std::span<const RateField> RateFields() { return kRateFields; }

std::string ToText(const Faults& faults) {
  static const Faults none;
  std::string out;
  for (const auto& [name, rate] : kRateFields) {
    if (faults.rates.*rate > 0) out += StrCat(name, "=", RateText(faults.rates.*rate), " ");
  }
  for (const auto& [name, time] : kTimeFields) {
    if (faults.*time != none.*time) out += StrCat(name, "=", (faults.*time).count(), "us ");
  }
  if (faults.focus.has_value())
    out += StrCat("focus=", CallName(*faults.focus), "*", RateText(faults.focus_factor), " ");
  if (faults.focus_steps != 0) {
    const auto step = static_cast<Step>(std::countr_zero(faults.focus_steps));
    out += StrCat("focus=", StepName(step), "*", RateText(faults.focus_factor), " ");
  }
  if (faults.long_pauses) out += "long_pauses ";
  if (faults.hears_copies) out += "hears_copies ";
  if (faults.crash_ends_session) out += "crash_ends_session ";
  if (faults.rows_travel_alone) out += "rows_travel_alone ";
  if (faults.scan_step != none.scan_step) out += StrCat("scan_step=", faults.scan_step, " ");
  if (faults.limits.max_scan_bytes != none.limits.max_scan_bytes)
    out += StrCat("scan_bytes=", faults.limits.max_scan_bytes, " ");
  if (faults.limits.max_scan_work != none.limits.max_scan_work)
    out += StrCat("scan_work=", faults.limits.max_scan_work, " ");
  if (faults.one_step) out += "one_step ";
  if (faults.draws_with_locks) out += "draws_with_locks ";
  if (faults.batching_oracle) out += "batching_oracle ";
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace percolator::sim
