#include "core/workers/launched/gpu_pool.h"

#include <algorithm>

namespace jobq {

GpuPool::GpuPool(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) gpus_.push_back({id, {}});
}

std::size_t GpuPool::countFree() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(gpus_, [](const Row& gpu) { return gpu.holder.empty(); }));
}

std::vector<std::string> GpuPool::reserve(const WorkerId& worker, std::size_t count) {
  std::vector<std::string> ids;
  for (Row& gpu : gpus_) {
    if (ids.size() == count) break;
    if (!gpu.holder.empty()) continue;
    ids.push_back(gpu.id);
    gpu.holder = worker;
  }
  return ids;
}

void GpuPool::release(const WorkerId& worker) {
  for (Row& gpu : gpus_) {
    if (gpu.holder == worker) gpu.holder.clear();
  }
}

}  // namespace jobq
