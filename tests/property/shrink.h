// A failing sequence made short: what can be left out without the failure going away is left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace jobq::model {

/// `fails` is asked again and again; it has to answer the same for the same sequence. The result fails, and does no
/// longer when any one of its operations is taken away.
template <class Operation>
std::vector<Operation> shrink(std::vector<Operation> operations,
                              const std::function<bool(const std::vector<Operation>&)>& fails) {
  for (std::size_t size = std::max<std::size_t>(operations.size() / 2, 1);;) {
    bool shorter = false;
    for (std::size_t at = 0; at < operations.size();) {
      std::vector<Operation> rest(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(at));
      const std::size_t end = std::min(at + size, operations.size());
      rest.insert(rest.end(), operations.begin() + static_cast<std::ptrdiff_t>(end), operations.end());
      if (fails(rest)) {
        operations = std::move(rest);
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
