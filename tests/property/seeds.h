// Which seeds a test plays: a few in CI; more, or one again, by option.
//   JOBQ_SEEDS=100000 build/tests/…     so many, from a seed that is printed
//   JOBQ_SEED=17 build/tests/…          this one alone
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
