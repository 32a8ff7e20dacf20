// The id of one call of a storage operation.
#pragma once

#include <cstdint>

namespace jobq {

/// Id of one call of an operation, never 0. The storage recognises a repeated call by its id. The caller draws the
/// number at random, or counts from a random number, so that no two calls at one storage have the same id.
using CallId = std::uint64_t;

}  // namespace jobq
