#include "script.h"

#include <algorithm>
#include <chrono>
#include <lua.hpp>
#include <set>
#include <utility>

#include "sandbox.h"

namespace jobq::lua {
namespace {

constexpr std::size_t kLargestScript = 1U << 20;
constexpr std::size_t kTrialMemory = 16U << 20;
constexpr std::chrono::milliseconds kTrialTime{1'000};

// A worker that holds the file open does not see that another folder has come into the place of its own; it asks for
// the file by its name as often as this.
constexpr std::chrono::milliseconds kOtherFolder{50};

int append(lua_State*, const void* bytes, std::size_t size, void* to) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return 0;
}

std::string toBytecode(const std::string& name, const std::string& text) {
  const std::unique_ptr<lua_State, decltype(&lua_close)> lua(luaL_newstate(), lua_close);
  if (!lua) throw std::bad_alloc();
  if (text.starts_with(LUA_SIGNATURE[0])) throw ScriptError(name + ".lua is bytecode: only text is loaded");
  const std::string chunk = "@" + name + ".lua";
  if (luaL_loadbufferx(lua.get(), text.data(), text.size(), chunk.c_str(), "t") != LUA_OK) {
    throw ScriptError(lua_tostring(lua.get(), -1));
  }
  std::string bytecode;
  lua_dump(lua.get(), append, &bytecode, 0);
  return bytecode;
}

std::string readFile(const OpenFilePtr& file, const std::string& name) {
  if (!file) throw ScriptError(name + ".lua cannot be read: put it into the folder of scripts");
  std::string text = file->read(kLargestScript + 1);
  if (text.size() > kLargestScript) throw ScriptError(name + ".lua is larger than 1 MB: split it");
  return text;
}

}  // namespace

ScriptPtr compile(std::string name, std::string text, const std::function<void(lua_State*)>& more) {
  auto script = std::make_shared<Script>();
  script->bytecode = toBytecode(name, text);
  script->name = std::move(name);
  script->text = std::move(text);
  const auto end = std::chrono::steady_clock::now() + kTrialTime;
  const auto judge = [end] {
    return std::chrono::steady_clock::now() < end ? "" : "its first lines take longer than a second, before any job";
  };
  Sandbox(kTrialMemory, more).run(script, judge, {}, [](lua_State*) {});
  return script;
}

FollowedScript::FollowedScript(ScriptFolder& folder, std::string name) : folder_(folder), name_(std::move(name)) {
  (void)newest();
}

const ScriptPtr& FollowedScript::newest() {
  const auto now = std::chrono::steady_clock::now();
  if (now < askAgain_ && now_.file && !now_.file->isLinked() && !now_.stamp.hasChanged(now_.file->look()))
    return now_.script;
  now_ = folder_.newest(name_);
  askAgain_ = now + kOtherFolder;
  return now_.script;
}

ScriptFolder::Newest ScriptFolder::newest(const std::string& name) {
  Lock lock(mutex_);
  Entry& entry = entries_[name];
  const bool changed = refresh(name, entry);
  const Newest newest{entry.script, entry.file, entry.stamp};
  const std::string fault = entry.fault;
  // Of a file that is there the fault is kept, so that asking again compiles nothing.
  if (!entry.script && !entry.file) entries_.erase(name);
  lock.unlock();
  if (!newest.script) throw ScriptError(fault);
  if (changed) tell(name, fault);
  return newest;
}

void ScriptFolder::tell(const std::string& name, const std::string& fault) {
  if (fault.empty()) {
    log_.write(LogLevel::information, "script.reloaded", name + ".lua was edited: the next job runs it");
  } else {
    log_.write(LogLevel::warning, "script.faulty",
               name + ".lua was edited and does not run, the text before stays in force: " + fault);
  }
}

std::string ScriptFolder::fault(const std::string& name) {
  try {
    (void)newest(name);
    return {};
  } catch (const ScriptError& error) {
    return error.what();
  }
}

// Compiles under the lock: whoever asks for a script that has just been edited waits for it, once. True: there is news
// of a script that ran before.
bool ScriptFolder::refresh(const std::string& name, Entry& entry) {
  const std::string file = fileOf(name);
  if (!entry.stamp.hasChanged(lookAt(file))) return false;
  entry.file = OpenFile::open(file);
  const ScriptPtr before = entry.script;
  const std::string faultBefore = std::exchange(entry.fault, "");
  try {
    std::string text = readFile(entry.file, name);
    if (!before || text != before->text) entry.script = compile(name, std::move(text), more_);
  } catch (const std::exception& error) {
    entry.fault = error.what();
  }
  return before && (entry.script != before || entry.fault != faultBefore);
}

std::vector<ScriptReport> ScriptFolder::reports() {
  Lock lock(mutex_);
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    if (file.path().extension() == ".lua") names.insert(file.path().stem().string());
  }
  // Of a file that has gone, what it held still runs; where it never ran nothing is left to tell.
  std::erase_if(entries_, [&](const auto& entry) { return !entry.second.script && !names.contains(entry.first); });
  for (const auto& [name, entry] : entries_) names.insert(name);
  std::vector<ScriptReport> reports;
  std::vector<ScriptReport> news;
  for (const std::string& name : names) {
    Entry& entry = entries_[name];
    const bool changed = refresh(name, entry);
    reports.push_back({name, entry.fault});
    if (changed) news.push_back(reports.back());
  }
  lock.unlock();
  for (const ScriptReport& report : news) tell(report.name, report.fault);
  return reports;
}

}  // namespace jobq::lua
