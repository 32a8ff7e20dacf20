// A script as it was compiled, and the folder that scripts lie in: an edited file takes effect for the next job, and
// one that does not compile leaves the one before in force.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <lua.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "script_file.h"

namespace jobq::lua {

/// Immutable; shared by the sandboxes that run it.
struct Script {
  std::string name;      ///< the file's, without `.lua`
  std::string text;      ///< as it was read
  std::string bytecode;  ///< our own compiler's; bytecode of anybody else is never loaded
};
using ScriptPtr = std::shared_ptr<const Script>;

/// Throws ScriptError with file and line when the text does not compile, or does not return a function, within a second
/// and `memory` bytes. `more` adds the libraries that it finds besides those that every script has.
ScriptPtr compile(std::string name, std::string text, std::size_t memory,
                  const std::function<void(lua_State*)>& more = {});

/// Any thread.
class ScriptFolder {
 public:
  ScriptFolder(std::filesystem::path folder, Log& log, std::size_t memory, std::function<void(lua_State*)> more = {})
      : folder_(std::move(folder)), log_(log), memory_(memory), more_(std::move(more)) {}

  struct Newest {
    ScriptPtr script;
    OpenFilePtr file;  ///< where its newest text lies; null when that has gone
    FileStamp stamp;   ///< of that file, before it was read
  };

  /// What `<name>.lua` holds now, or the last text of it that compiled. Throws ScriptError when there never was one.
  Newest newest(const std::string& name);

  /// Why newest() would throw; empty when it would not.
  std::string fault(const std::string& name);

  /// All scripts of the folder, and those that were used and whose file has gone.
  std::vector<ScriptReport> reports();

 private:
  struct Entry {
    Mutex mutex;  // held while a new text is compiled and tried: whoever wants this script waits, and nobody else
    FileStamp stamp JOBQ_GUARDED_BY(mutex);
    OpenFilePtr file JOBQ_GUARDED_BY(mutex);
    ScriptPtr script JOBQ_GUARDED_BY(mutex);   // the newest that compiled
    std::string fault JOBQ_GUARDED_BY(mutex);  // of the newest text, if it did not
  };
  using EntryPtr = std::shared_ptr<Entry>;

  std::string fileOf(const std::string& name) const { return folder_ / (name + ".lua"); }
  EntryPtr entryOf(const std::string& name);
  bool refresh(const std::string& name, Entry& entry) JOBQ_REQUIRES(entry.mutex);
  void reportFault(const std::string& name, const std::string& fault);

  const std::filesystem::path folder_;
  Log& log_;
  const std::size_t memory_;  // of a script, as lua.memory
  const std::function<void(lua_State*)> more_;
  Mutex mutex_;
  std::map<std::string, EntryPtr> entries_ JOBQ_GUARDED_BY(mutex_);
};

/// One script as a worker follows it: asks the folder only when the file was written. One thread at a time.
class FollowedScript {
 public:
  /// Throws ScriptError, as ScriptFolder::newest().
  FollowedScript(ScriptFolder& folder, std::string name);

  /// What the next job runs.
  const ScriptPtr& newest();

 private:
  ScriptFolder& folder_;
  const std::string name_;
  ScriptFolder::Newest now_;
  std::chrono::nanoseconds askAgain_{};
};

}  // namespace jobq::lua
