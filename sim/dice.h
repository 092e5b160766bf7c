// SPDX-License-Identifier: Apache-2.0

// Dice: draws the shape of a run, one number after the other. Chance draws the events of the run.

#ifndef PERCOLATOR_SIM_DICE_H_
#define PERCOLATOR_SIM_DICE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "sim/chance.h"

namespace percolator::sim {

class Dice {
 public:
  // Dice of different names are independent.
  Dice(uint64_t seed, std::string_view name) : seed_(Mix(seed, HashBytes(name))) {}

  bool Toss() { return Draw() % 2 == 0; }
  // A number in [low, high].
  size_t Between(size_t low, size_t high) { return low + Draw() % (high - low + 1); }
  template <typename T>
  T OneOf(std::initializer_list<T> choices) {
    return std::data(choices)[Draw() % choices.size()];
  }
  // Zero, or a rate in [low, high], small ones as likely as large ones.
  double Rate(double low, double high) {
    const bool on = Toss();
    const double at = static_cast<double>(Draw() >> 11) * 0x1p-53;
    return on ? low * std::pow(high / low, at) : 0;
  }

 private:
  uint64_t Draw() { return Mix(seed_, n_++); }

  const uint64_t seed_;
  uint64_t n_ = 0;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_DICE_H_
