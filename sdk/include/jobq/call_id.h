// The name of one call of a storage operation.
#pragma once

#include <cstdint>

namespace jobq {

/// Name of one call of an operation. The storage recognises a repeated call by this number, never 0. The caller draws
/// the number at random, or counts from a random number, so that no two calls at one storage have the same name.
using CallId = std::uint64_t;

}  // namespace jobq
