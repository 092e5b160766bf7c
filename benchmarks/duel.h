// SPDX-License-Identifier: Apache-2.0

// Duel: compares ways of doing the same thing, in one process and one run.
//
// Machines are noisy, and noise lasts for seconds. So the contestants take turns in short rounds. Each round gives one
// ratio to the first contestant (the baseline), and the median over the rounds counts.

#ifndef PERCOLATOR_BENCHMARKS_DUEL_H_
#define PERCOLATOR_BENCHMARKS_DUEL_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace percolator {

class Duel {
 public:
  // Does one operation, as thread number `thread`.
  using Operation = std::function<void(int thread)>;

  Duel(std::string title, int threads, int rounds, std::chrono::milliseconds round)
      : title_(std::move(title)), threads_(threads), rounds_(rounds), round_(round) {}

  // `operations_per_call`: the number of counted operations in one call.
  Duel& Add(std::string name, Operation operation, int operations_per_call = 1) {
    contestants_.push_back({std::move(name), std::move(operation), threads_, operations_per_call, {}});
    return *this;
  }
  // A contestant with its own number of threads.
  Duel& AddWithThreads(std::string name, int threads, Operation operation) {
    contestants_.push_back({std::move(name), std::move(operation), threads, 1, {}});
    return *this;
  }

  // Prints a line per contestant; returns the median ratio of the last one to the first.
  double Run() {
    for (int round = 0; round <= rounds_; ++round) {
      for (Contestant& c : contestants_) {
        const double rate = Measure(c);
        if (round > 0) c.rates.push_back(rate);  // round 0 warms up
      }
    }
    std::printf("%s, %d thread%s\n", title_.c_str(), threads_, threads_ == 1 ? "" : "s");
    double ratio = 0;
    ratios_.clear();
    for (const Contestant& c : contestants_) {
      std::vector<double> ratios;
      for (int i = 0; i < rounds_; ++i) ratios.push_back(c.rates[i] / contestants_[0].rates[i]);
      ratio = Median(ratios);
      ratios_.push_back(ratio);
      std::printf("  %-44s %10.0f /s   %5.2f\n", c.name.c_str(), Median(c.rates), ratio);
    }
    std::fflush(stdout);
    return ratio;
  }

  // After Run: the median ratio of each contestant to the first, in the order of Add.
  const std::vector<double>& ratios() const { return ratios_; }
  // After Run: the median rate of a contestant, per second.
  double rate(size_t contestant) const { return Median(contestants_[contestant].rates); }

 private:
  struct Contestant {
    std::string name;
    Operation operation;
    int threads;
    int operations_per_call;
    std::vector<double> rates;
  };

  static double Median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  double Measure(const Contestant& c) const {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto end = start + round_;
    std::vector<int64_t> calls(c.threads);
    const auto work = [&](int thread) {
      int64_t n = 0;
      do {
        for (int i = 0; i < 16; ++i) c.operation(thread);
        n += 16;
      } while (Clock::now() < end);
      calls[thread] = n;
    };
    std::vector<std::thread> others;
    for (int t = 1; t < c.threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& t : others) t.join();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    int64_t total = 0;
    for (int64_t n : calls) total += n;
    return static_cast<double>(total) * c.operations_per_call / seconds.count();
  }

  const std::string title_;
  const int threads_;
  const int rounds_;
  const std::chrono::milliseconds round_;
  std::vector<Contestant> contestants_;
  std::vector<double> ratios_;
};

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_DUEL_H_
