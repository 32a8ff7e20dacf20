// Admission filters for tests. The input tells the filter `size` its decision:
//
// {"do": "accept" | "reject" | "input" | "policy" | "noObject" | "badPolicy" | "throw" | "throwInt" | "made" | "size"}
// - `noObject`: replaces the input by an array.
// - `badPolicy`: replaces the policy by a policy forbidden to callers.
// - `made`: rejects with the number of instances made so far.
// - `size`: rejects with the bytes of the input, the endpoint, the length of the key's id, and LIMIT of the env.
// {"status": n} refuses with status n, without a message.
// {"meet": n} waits until n jobs are under review at the same time.
//
// The filter `unmade` cannot be made.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "jobq/abi.h"
#include "jobq/admission_filter.h"
#include "jobq/json.h"

namespace {

using jobq::Accept;
using jobq::AdmissionRequest;
using jobq::Decision;
using jobq::Refuse;
using jobq::Reject;
using jobq::Replace;

// The jobs under review at this moment, in all instances.
class Meeting {
 public:
  void awaitOthers(std::int64_t wanted) {
    std::unique_lock lock(mutex_);
    ++present_;
    if (present_ >= wanted) isComplete_ = true;
    arrived_.notify_all();
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [this] { return isComplete_; })) {
      throw std::runtime_error("waited 60 s for " + std::to_string(wanted) + " jobs to be judged at the same time");
    }
    if (--present_ == 0) isComplete_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::int64_t present_ = 0;
  bool isComplete_ = false;
};

struct Shared {
  Meeting meeting;
  std::atomic<int> made = 0;
};

class Size final : public jobq::AdmissionFilter {
 public:
  explicit Size(Shared& shared) : shared_(shared) { ++shared_.made; }

 private:
  Decision review(const AdmissionRequest& job) override {
    if (busy_.exchange(true)) return Reject{"one instance was called twice at a time"};
    struct Leave {
      std::atomic<bool>& busy;
      ~Leave() { busy = false; }
    } const leave{busy_};
    const auto input = std::get<jobq::json::Document>(jobq::json::read(job.input));
    if (const auto meet = input.find("meet")) shared_.meeting.awaitOthers(jobq::json::toInteger(*meet).value());
    const auto action = input.find("do");
    const auto status = input.find("status");
    if (status) return Refuse{static_cast<int>(jobq::json::toInteger(*status).value()), "", jobq::Millis(1'500)};
    return action ? act(jobq::json::decode(action->raw), job) : Decision(Accept{});
  }

  Decision act(const std::string& action, const AdmissionRequest& job) const {
    if (action == "reject") return Reject{"input.do must not be \"reject\": send another"};
    if (action == "input") return Replace{R"({"made":"by a filter"})", {}};
    if (action == "noObject") return Replace{"[1]", {}};
    if (action == "throw") throw std::runtime_error("it is broken on purpose");
    if (action == "throwInt") throw 7;
    if (action == "made") return Reject{"made " + std::to_string(shared_.made)};
    if (action == "size") {
      const auto limit = job.env.find("LIMIT");
      return Reject{std::to_string(job.input.size()) + " " + std::string(job.endpoint) + " " +
                    std::to_string(job.apiKeyId.size()) + " " + (limit == job.env.end() ? "-" : limit->second)};
    }
    jobq::JobPolicy policy = job.policy;
    policy.priority = action == "badPolicy" ? 1'001 : 9;
    if (action == "policy" || action == "badPolicy") return Replace{{}, policy};
    return Accept{};
  }

  Shared& shared_;
  std::atomic<bool> busy_ = false;
};

class SizeFactory final : public jobq::AdmissionFilterFactory {
 public:
  explicit SizeFactory(const jobq::PluginEnv&) {}
  std::unique_ptr<jobq::AdmissionFilter> make(std::string_view) override { return std::make_unique<Size>(shared_); }

 private:
  Shared shared_;
};

class UnmadeFactory final : public jobq::AdmissionFilterFactory {
 public:
  explicit UnmadeFactory(const jobq::PluginEnv&) {}
  std::unique_ptr<jobq::AdmissionFilter> make(std::string_view) override {
    throw std::runtime_error("its model is not there");
  }
};

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::AdmissionFilterFactory, SizeFactory>("size", "1.0.0"),
    jobq::abi::entry<jobq::AdmissionFilterFactory, UnmadeFactory>("unmade", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
