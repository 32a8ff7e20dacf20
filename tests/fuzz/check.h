// The assertion of a fuzz target. A failed assertion ends the process, and libFuzzer keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>

#define BELIEVE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)
