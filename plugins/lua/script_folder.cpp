#include "script_folder.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "jobq/byte_order_mark.h"
#include "sandbox/sandbox.h"

namespace jobq::lua {
namespace {

constexpr std::size_t kLargestScript = 1U << 20;
constexpr std::chrono::milliseconds kTrialTime{1'000};

// Interval at which a worker asks for the file by its name. A worker that holds the file open does not notice that
// another folder has replaced the folder of scripts.
constexpr std::chrono::milliseconds kOtherFolder{50};

// Some milliseconds behind the exact clock, for a fifth of its price.
std::chrono::nanoseconds coarseNow() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

ScriptError absence(const std::string& name) {
  return ScriptError(name + ".lua cannot be read: put it into the folder of scripts");
}

std::string readFile(const OpenFilePtr& file, const std::string& name) {
  if (!file) throw absence(name);
  std::string text = file->read(kLargestScript + 1);
  if (text.size() > kLargestScript) throw ScriptError(name + ".lua is larger than 1 MB: split it");
  return std::string(withoutByteOrderMark(text));
}

// Ends a script at a fixed time.
class TimeLimit final : public EndCondition {
 public:
  // `reason` is a literal.
  TimeLimit(std::chrono::steady_clock::time_point end, const char* reason) : end_(end), reason_(reason) {}

  std::optional<std::string> reasonToEnd() override {
    if (std::chrono::steady_clock::now() < end_) return std::nullopt;
    return reason_;
  }

 private:
  const std::chrono::steady_clock::time_point end_;
  const char* const reason_;
};

}  // namespace

ScriptPtr compile(std::string name, std::string text, std::size_t memory, const LibraryOpener& libraries) {
  if (text.starts_with(LUA_SIGNATURE[0])) throw ScriptError(name + ".lua is bytecode: only text is loaded");
  const auto end = std::chrono::steady_clock::now() + kTrialTime;
  TimeLimit ofText(end, "the script takes longer than a second to compile");
  TimeLimit ofFirstLines(end, "the first lines of the script take longer than a second, before any job");
  Sandbox sandbox(memory, Sandbox::kPlainOfFilters, libraries);
  auto script = std::make_shared<Script>();
  script->bytecode = sandbox.compile(text, "@" + name + ".lua", ofText);
  script->name = std::move(name);
  script->text = std::move(text);
  sandbox.run(script, ofFirstLines, nullptr, [](lua_State*) {});
  return script;
}

FollowedScript::FollowedScript(ScriptFolder& folder, std::string name) : folder_(folder), name_(std::move(name)) {
  (void)newest();
}

const ScriptPtr& FollowedScript::newest() {
  const auto now = coarseNow();
  if (now < askAgain_ && now_.file && !now_.file->isLinked() && !now_.stamp.hasChanged(now_.file->status()))
    return now_.script;
  now_ = folder_.newest(name_);
  askAgain_ = now + kOtherFolder;
  return now_.script;
}

// Returns null if no file of this name has been seen yet. A name alone therefore takes no memory.
ScriptFolder::EntryPtr ScriptFolder::entryOf(const std::string& name) {
  Lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  if (!isThere(fileOf(name))) return nullptr;
  return entries_.emplace(name, std::make_shared<Entry>()).first->second;
}

ScriptFolder::Newest ScriptFolder::newest(const std::string& name) {
  const EntryPtr entry = entryOf(name);
  if (!entry) throw absence(name);
  Lock lock(entry->mutex);
  const bool changed = refresh(name, *entry);
  const Newest newest{entry->script, entry->file, entry->stamp};
  const std::optional<std::string> fault = entry->fault;
  lock.unlock();
  if (!newest.script) throw ScriptError(fault.value());  // refresh() leaves a script or a fault
  if (changed) reportChange(name, fault);
  return newest;
}

void ScriptFolder::reportChange(const std::string& name, const std::optional<std::string>& fault) {
  if (!fault) {
    log_.write(LogLevel::information, "script.reloaded", name + ".lua was edited: the next job runs the new text");
  } else {
    log_.write(LogLevel::warning, "script.faulty",
               name + ".lua was edited and does not run; the previous text stays in use: " + *fault);
  }
}

std::optional<std::string> ScriptFolder::fault(const std::string& name) {
  try {
    (void)newest(name);
    return std::nullopt;
  } catch (const ScriptError& error) {
    return error.what();
  }
}

// Returns true if the state of a script that ran before has changed.
bool ScriptFolder::refresh(const std::string& name, Entry& entry) {
  const std::string file = fileOf(name);
  const bool couldBeOpened = entry.file || entry.script;  // may be false for want of file descriptors
  if (!entry.stamp.hasChanged(statusOf(file)) && couldBeOpened) return false;
  entry.file = OpenFile::open(file);
  const ScriptPtr before = entry.script;
  const std::optional<std::string> faultBefore = std::exchange(entry.fault, std::nullopt);
  try {
    std::string text = readFile(entry.file, name);
    if (!before || text != before->text) entry.script = compile(name, std::move(text), memory_, libraries_);
  } catch (const std::exception& error) {
    entry.fault = error.what();
  }
  return before && (entry.script != before || entry.fault != faultBefore);
}

std::vector<ScriptReport> ScriptFolder::reports() {
  std::set<std::string> files;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    if (file.path().extension() == ".lua") files.insert(file.path().stem().string());
  }
  std::set<std::string> names = files;
  {
    Lock lock(mutex_);
    for (const auto& [name, entry] : entries_) names.insert(name);
  }
  std::vector<ScriptReport> reports;
  for (const std::string& name : names) {
    const EntryPtr entry = entryOf(name);
    if (!entry) continue;
    Lock lock(entry->mutex);
    const bool changed = refresh(name, *entry);
    // The script of a removed file still runs and is reported. A removed file that never gave a script is left out.
    if (!entry->script && !files.contains(name)) continue;
    reports.push_back({name, entry->fault});
    lock.unlock();
    if (changed) reportChange(name, reports.back().fault);
  }
  return reports;
}

}  // namespace jobq::lua
