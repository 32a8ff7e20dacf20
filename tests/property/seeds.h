// The seeds of a property test: a few in CI; more seeds, or a single seed, by option.
//   JOBQ_SEEDS=100000 build/tests/…     that many, from a printed seed
//   JOBQ_SEED=17 build/tests/…          only this seed
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace jobq::model {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1;

  explicit Seeds(std::uint64_t usual) : count(usual) {
    if (const char* many = std::getenv("JOBQ_SEEDS")) count = std::stoull(many);
    if (const char* one = std::getenv("JOBQ_SEED")) {
      first = std::stoull(one);
      if (std::getenv("JOBQ_SEEDS") == nullptr) count = 1;
    }
    std::cout << "seeds " << first << " to " << first + count - 1 << std::endl;
  }
};

}  // namespace jobq::model
