// A library for the tests of the plugin host, built in several ways: correct, with a different fingerprint or major,
// and against copies of the sdk with other comments, a different layout and the next minor.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Fixture final : public jobq::QueuePolicy {
 public:
  struct Options {
    explicit Options(const jobq::PluginConfig& config)
        : step(config.integer("step", 1, 1, 10, "how far apart ranks are")),
          pause(config.duration("pause", jobq::Millis(500), jobq::Millis(0), jobq::Millis(60'000), "a pause")),
          room(config.size("room", 1 << 20, 1, 1 << 30, "a size")),
          loud(config.flag("loud", false, "a flag")),
          name(config.text("name", "n", "a text")) {}
    std::int64_t step;
    jobq::Millis pause;
    std::uint64_t room;
    bool loud;
    std::string name;
  };
  explicit Fixture(const jobq::PluginEnv& env) : options_(env.config) {}
  std::string group(const jobq::JobSpec&) const override { return options_.name; }
  std::int64_t rank(const jobq::JobSpec&, jobq::Instant, const jobq::GroupState&) const override {
    return options_.step;
  }

 private:
  const Options options_;
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Fixture>("fixture", "2.3.4")};

}  // namespace

#if defined(FIXTURE_OTHER_MAJOR)
extern "C" JOBQ_VISIBLE const jobq::abi::Descriptor* jobq_plugin_v2();
const jobq::abi::Descriptor* jobq_plugin_v2() {
  static constexpr jobq::abi::Descriptor kDescriptor{sizeof(jobq::abi::Descriptor), 0, "", kEntries, 1};
  return &kDescriptor;
}
#else
JOBQ_PLUGIN(kEntries)
#endif

#if defined(FIXTURE_CONSTRUCTOR)
#include <cstdlib>
namespace {
// Runs at dlopen: a host that loads the file before the checks dies.
[[maybe_unused]] const bool kRan = (std::abort(), true);
}  // namespace
#endif
