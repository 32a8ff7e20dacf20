// Shortens a failing sequence: every operation without influence on the failure is left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace jobq::model {

/// Calls `fails` many times; the answer must be the same for the same sequence. Returns a failing sequence without any
/// removable operation.
template <class Operation>
std::vector<Operation> shrink(std::vector<Operation> operations,
                              const std::function<bool(const std::vector<Operation>&)>& fails) {
  for (std::size_t size = std::max<std::size_t>(operations.size() / 2, 1);;) {
    bool shorter = false;
    for (std::size_t at = 0; at < operations.size();) {
      std::vector<Operation> candidate(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(at));
      const std::size_t end = std::min(at + size, operations.size());
      candidate.insert(candidate.end(), operations.begin() + static_cast<std::ptrdiff_t>(end), operations.end());
      if (fails(candidate)) {
        operations = std::move(candidate);
        shorter = true;
      } else {
        at += size;
      }
    }
    if (size == 1 && !shorter) return operations;
    size = std::max<std::size_t>(size / 2, 1);
  }
}

}  // namespace jobq::model
