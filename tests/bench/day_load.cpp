#include "day_load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>

namespace bench {
namespace {

constexpr Millis kHour{3'600'000};
constexpr Millis kMinute{60'000};
constexpr Millis kMeanDuration{2'000};

/// Jobs an hour, for each hour of the day.
constexpr std::array<int, 24> kJobsAnHour{40,   40,   40,   40,   40,   40,   120,  1000, 3600, 4300, 4300, 4300,
                                          3000, 4300, 4300, 4300, 4300, 3600, 1500, 1500, 600,  300,  120,  40};
constexpr int kBurst = 100;  // jobs within 20 s, ten minutes after each hour
constexpr Millis kBurstTime{20'000};
constexpr int kCrowd = 1'200;  // jobs within a minute, at half past two
constexpr Millis kCrowdAt = 14 * kHour + 30 * kMinute;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  double share() { return static_cast<double>(random_() >> 11U) * 0x1.0p-53; }  // from 0 to below 1
  Millis upTo(Millis most) { return Millis(std::llround(share() * static_cast<double>(most.count()))); }
  Millis around(Millis mean) {
    return Millis(std::llround(-std::log(1 - share()) * static_cast<double>(mean.count())));
  }

 private:
  std::mt19937_64 random_;
};

void scatter(std::vector<Arrival>& jobs, Dice& dice, int count, Millis from, Millis within) {
  for (int i = 0; i < count; ++i) {
    const Millis at = from + dice.upTo(within);
    const Millis duration = std::clamp(dice.around(kMeanDuration), Millis(50), Millis(60'000));
    jobs.push_back({at, duration, dice.share() < 0.1});
  }
}

}  // namespace

std::vector<Arrival> burstyDay(std::uint64_t seed) {
  Dice dice(seed);
  std::vector<Arrival> jobs;
  for (int hour = 0; hour < 24; ++hour) {
    scatter(jobs, dice, kJobsAnHour[static_cast<std::size_t>(hour)], hour * kHour, kHour - Millis(1));
    scatter(jobs, dice, kBurst, hour * kHour + 10 * kMinute, kBurstTime);
  }
  scatter(jobs, dice, kCrowd, kCrowdAt, kMinute);
  std::stable_sort(jobs.begin(), jobs.end(), [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return jobs;
}

std::vector<Arrival> evenLoad(Millis gap, Millis duration, Millis end) {
  std::vector<Arrival> jobs;
  for (Millis at{0}; at < end; at += gap) jobs.push_back({at, duration});
  return jobs;
}

std::vector<Arrival> randomLoad(std::uint64_t seed, Millis gap, Millis duration, Millis end) {
  Dice dice(seed);
  std::vector<Arrival> jobs;
  for (Millis at = dice.around(gap); at < end; at += dice.around(gap)) jobs.push_back({at, dice.around(duration)});
  return jobs;
}

}  // namespace bench
