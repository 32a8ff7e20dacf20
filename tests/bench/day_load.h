// The jobs of an endpoint in a day, and steady loads. The same seed gives the same jobs on every machine, unlike the
// distributions of the standard library.
#pragma once

#include <cstdint>
#include <vector>

#include "jobq/time.h"
#include "worker_pool_model.h"

namespace bench {

inline constexpr Millis kDay{24 * 3'600'000};

/// A quiet night, office hours, a burst in every hour, and a flash crowd. Jobs take 2 s on average, each at random; one
/// of ten has low priority.
std::vector<Arrival> burstyDay(std::uint64_t seed);

/// A normal job of `duration` every `gap` until `end`.
std::vector<Arrival> evenLoad(Millis gap, Millis duration, Millis end);

/// The same averages at random (Poisson arrivals, exponential durations).
std::vector<Arrival> randomLoad(std::uint64_t seed, Millis gap, Millis duration, Millis end);

}  // namespace bench
