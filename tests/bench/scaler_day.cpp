// A day of bursty load through the scaler: the cost of each setting in workers and in waiting. `--seed N` plays another
// day; `--check` plays several days and fails when a day breaks an expectation of operators. About a tenth of a second
// a day.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "day_load.h"
#include "worker_pool_model.h"

namespace {

using namespace bench;
using jobq::ScalerType;
using jobq::Scaling;

constexpr std::uint32_t kMost = 20;
constexpr Millis kHour{3'600'000};
constexpr int kCheckedDays = 3;

struct Setting {
  std::string name;
  WorkerPoolRules rules;
};

struct Row {
  Setting setting;
  WorkerPoolRecord record;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const auto& [type, values] : {std::pair{ScalerType::queueDelay, std::vector{1U, 4U, 30U}},
                                     {ScalerType::requestCount, std::vector{1U, 4U, 20U}}}) {
    for (const std::uint32_t value : values) {
      all.push_back({std::string(nameOf(type)) + " " + std::to_string(value), {Scaling{type, value}, 0, kMost}});
    }
  }
  all.push_back({"always " + std::to_string(kMost), {Scaling{}, kMost, kMost}});
  all.push_back({"always 1", {Scaling{}, 1, 1}});
  return all;
}

std::vector<Row> playDay(std::uint64_t seed) {
  const std::vector<Arrival> jobs = burstyDay(seed);
  std::vector<Row> rows;
  for (const Setting& setting : settings()) rows.push_back({setting, playWorkerPool(setting.rules, jobs, kDay)});
  return rows;
}

double seconds(Millis time) { return static_cast<double>(time.count()) / 1e3; }
double minutes(Millis time) { return seconds(time) / 60; }

void printDay(const std::vector<Row>& rows) {
  std::puts(
      "| scaler | workers, mean | most | starts | delay p50 s | p95 | p99 | max | low-priority p95 s | "
      "worker-minutes |");
  std::puts("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
  for (const auto& [setting, record] : rows) {
    const auto delay = [&delays = record.delays](double share) { return seconds(quantile(delays, share)); };
    std::printf("| %s | %.2f | %u | %zu | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", setting.name.c_str(),
                minutes(record.workerTime) / minutes(kDay), record.most, record.starts.size(), delay(0.5), delay(0.95),
                delay(0.99), delay(1), seconds(quantile(record.lowDelays, 0.95)), minutes(record.workerTime));
  }
}

std::size_t startsAfter(const WorkerPoolRecord& record, Millis from) {
  std::size_t starts = 0;
  for (const Millis at : record.starts) starts += at >= from ? 1 : 0;
  return starts;
}

// Six hours with a need of two and a half workers, as even as possible and at random; the first ten minutes are left
// out.
constexpr Millis kSteady = 6 * kHour;
constexpr Millis kSettled{600'000};

std::size_t steadyStarts(const Setting& setting, const std::vector<Arrival>& jobs) {
  return startsAfter(playWorkerPool(setting.rules, jobs, kSteady), kSettled);
}

void printSteady(std::uint64_t seed) {
  const auto even = evenLoad(Millis(400), Millis(1'000), kSteady);
  const auto random = randomLoad(seed, Millis(400), Millis(1'000), kSteady);
  std::puts("\n| scaler | starts in 6 h of even load | of random load | with an idleTimeout of 60 s |");
  std::puts("|---|---:|---:|---:|");
  for (const Setting& setting : settings()) {
    Setting patient = setting;
    patient.rules.idleTimeout = Millis(60'000);
    std::printf("| %s | %zu | %zu | %zu |\n", setting.name.c_str(), steadyStarts(setting, even),
                steadyStarts(setting, random), steadyStarts(patient, random));
  }
}

class Check {
 public:
  explicit Check(std::uint64_t seed) : seed_(seed) {}
  void holds(bool fact, const std::string& sentence) {
    if (fact) return;
    std::printf("seed %llu: not true: %s\n", static_cast<unsigned long long>(seed_), sentence.c_str());
    ++broken_;
  }
  int broken() const { return broken_; }

 private:
  const std::uint64_t seed_;
  int broken_ = 0;
};

// QUEUE_DELAY starts no worker while another worker is starting.
bool startsOneByOne(const WorkerPoolRecord& record, Millis startTime) {
  const auto tooEarly = [startTime](Millis one, Millis next) { return next - one < startTime; };
  return std::adjacent_find(record.starts.begin(), record.starts.end(), tooEarly) == record.starts.end();
}

// Expectations of each scaled setting compared with the maximum of workers all day.
void checkScaled(Check& check, const Row& row, const WorkerPoolRecord& always) {
  const auto& [setting, record] = row;
  const WorkerPoolRules& rules = setting.rules;
  const bool byDelay = rules.scaling.type == ScalerType::queueDelay;
  const Millis value = std::chrono::seconds(byDelay ? rules.scaling.value : 0);
  check.holds(record.delays.size() == always.delays.size(), setting.name + ": every normal job runs");
  check.holds(record.most <= kMost, setting.name + ": never more than workersMax");
  check.holds(2 * record.workerTime < always.workerTime, setting.name + " costs less than half of workersMax all day");
  check.holds(record.shortestLife >= rules.startTime + rules.idleTimeout,
              setting.name + ": no worker leaves before its idleTimeout");
  if (byDelay) {
    check.holds(startsOneByOne(record, rules.startTime), setting.name + " starts one worker after the other");
    check.holds(quantile(record.delays, 0.5) <= value + rules.startTime,
                setting.name + ": half of the jobs wait no longer than the value and a start");
    // Workers start one after the other; once all are ready, the setting serves as fast as workersMax all day.
    const Millis ramp = value + kMost * rules.startTime;
    check.holds(record.delays.back() <= always.delays.back() + ramp,
                setting.name + ": nobody waits longer than with workersMax by more than the way up to it");
  }
  if (rules.scaling == Scaling{ScalerType::requestCount, 1}) {
    check.holds(quantile(record.delays, 0.95) <= quantile(always.delays, 0.95) + rules.startTime + Millis(1'000),
                setting.name + ": a worker for each job, so nearly all wait for no more than its start and a look");
  }
  check.holds(record.starts.size() * 4 < record.delays.size(), setting.name + ": a worker serves several jobs");
}

// A larger value: fewer worker-minutes and longer waits.
void checkOrder(Check& check, const std::vector<Row>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& [setting, record] = rows[i];
    const auto& [before, closer] = rows[i - 1];
    if (setting.rules.scaling.type != before.rules.scaling.type || setting.rules.workersMin > 0) continue;
    check.holds(record.workerTime < closer.workerTime, setting.name + " costs less than " + before.name);
    check.holds(quantile(record.delays, 0.95) > quantile(closer.delays, 0.95),
                setting.name + " lets jobs wait longer than " + before.name);
  }
}

int broken(std::uint64_t seed) {
  Check check(seed);
  const std::vector<Row> rows = playDay(seed);
  const WorkerPoolRecord& always = rows[rows.size() - 2].record;
  check.holds(always.starts.size() == kMost && always.releases.empty(), "workersMin is kept");
  const auto even = evenLoad(Millis(400), Millis(1'000), kSteady);
  const auto random = randomLoad(seed, Millis(400), Millis(1'000), kSteady);
  for (const Row& row : rows) {
    if (row.setting.rules.workersMin > 0) continue;
    checkScaled(check, row, always);
    check.holds(steadyStarts(row.setting, even) == 0, row.setting.name + ": an even load starts nobody any more");
    check.holds(steadyStarts(row.setting, random) * 10 < random.size(),
                row.setting.name + ": at a random load a worker serves ten jobs");
  }
  checkOrder(check, rows);
  return check.broken();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--check") {
      check = true;
    } else if (word == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: scaler_day [--seed N] [--check]\n");
      return 2;
    }
  }
  if (!check) {
    std::printf("seed %llu, %zu jobs\n\n", static_cast<unsigned long long>(seed), burstyDay(seed).size());
    printDay(playDay(seed));
    printSteady(seed);
    return 0;
  }
  int wrong = 0;
  for (std::uint64_t day = seed; day < seed + kCheckedDays; ++day) wrong += broken(day);
  std::printf("seeds %llu to %llu: %d facts broken\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seed + kCheckedDays - 1), wrong);
  return wrong == 0 ? 0 : 1;
}
