// A storage that stands still: a check or an insert waits until the test opens the pipe `pause` in the data directory.
// Without the pipe each call passes. The file `held` has a line with the name of each call that has waited.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "jobq/abi.h"
#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "memory_storage.h"
#include "testkit/forwarding_storage.h"

namespace {

using namespace jobq;

/// Any thread.
class HeldCalls {
 public:
  explicit HeldCalls(const std::filesystem::path& folder) : pipe_(folder / "pause"), held_(folder / "held") {}

  /// Returns when the test has opened the pipe, or has removed it.
  void pass(const std::string& call) const {
    if (!std::filesystem::exists(pipe_)) return;
    const int held = ::open(held_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (::write(held, (call + "\n").c_str(), call.size() + 1) < 0) throw StorageError("the call cannot be noted");
    ::close(held);
    ::close(::open(pipe_.c_str(), O_RDONLY | O_CLOEXEC));
  }

 private:
  const std::filesystem::path pipe_;
  const std::filesystem::path held_;
};

class PausedJobs final : public testkit::ForwardingJobs {
 public:
  PausedJobs(JobStore& inner, const HeldCalls& calls) : ForwardingJobs(inner), calls_(calls) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
    calls_.pass("insert");
    return ForwardingJobs::insert(std::move(job), policy, terms);
  }

 private:
  const HeldCalls& calls_;
};

/// The storage below, a base constructed before the other bases.
struct Memory {
  explicit Memory(const PluginEnv& env) : memory(env) {}
  memory::MemoryStorage memory;
};

class PausedStorage final : private Memory, public testkit::ForwardingStorage {
 public:
  explicit PausedStorage(const PluginEnv& env)
      : Memory(env), ForwardingStorage(memory), calls_(env.dataDir), jobs_(memory.jobs(), calls_) {}

  JobStore& jobs() override { return jobs_; }
  void check() override { calls_.pass("check"); }

 private:
  const HeldCalls calls_;
  PausedJobs jobs_;
};

constexpr abi::Entry kEntries[] = {abi::entry<Storage, PausedStorage>("paused", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
