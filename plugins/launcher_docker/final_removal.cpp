#include "final_removal.h"

#include <atomic>
#include <stop_token>
#include <thread>
#include <variant>
#include <vector>

namespace jobq::docker {
namespace {

constexpr std::size_t kThreads = 4;

void removeEach(Engine& engine, const std::vector<ListedContainer>& containers) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads && i < containers.size(); ++i) {
    threads.emplace_back([&engine, &containers, &next] {
      for (std::size_t at = next++; at < containers.size(); at = next++)
        (void)engine.removeContainer(containers[at].id);
    });
  }
}

}  // namespace

std::optional<std::string> removeAllContainers(const std::string& socket, const std::string& server,
                                               Engine::Clock::time_point end) {
  Engine engine(socket, std::stop_token(), end);
  const auto version = engine.connect();
  if (const auto* fault = std::get_if<EngineFault>(&version)) return fault->reason;
  for (;;) {
    const auto listed = engine.listContainers(server);
    if (const auto* fault = std::get_if<EngineFault>(&listed)) return fault->reason;
    const auto& containers = std::get<std::vector<ListedContainer>>(listed);
    if (containers.empty()) return std::nullopt;
    if (Engine::Clock::now() >= end) return std::to_string(containers.size()) + " containers are left";
    removeEach(engine, containers);
  }
}

}  // namespace jobq::docker
