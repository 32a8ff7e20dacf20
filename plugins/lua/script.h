// A script as it was compiled, and the folder that scripts lie in: an edited file takes effect for the next job, and
// one that does not compile leaves the one before in force.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <lua.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"

namespace jobq::lua {

/// Immutable; shared by the sandboxes that run it.
struct Script {
  std::string name;      ///< the file's, without `.lua`
  std::string text;      ///< as it was read
  std::string bytecode;  ///< our own compiler's; bytecode of anybody else is never loaded
};
using ScriptPtr = std::shared_ptr<const Script>;

/// Throws ScriptError with file and line when the text does not compile, or does not return a function at once. `more`
/// adds the libraries that it finds besides those that every script has.
ScriptPtr compile(std::string name, std::string text, const std::function<void(lua_State*)>& more = {});

/// Whether a file has been written since it was last looked at.
class FileStamp {
 public:
  /// True: it has, or may have been. Costs one system call.
  bool hasChanged(const std::string& file);

 private:
  ino_t inode_ = 0;
  off_t size_ = -1;
  timespec written_{};
  bool isYoung_ = true;  // it may be written again within the same stamp
};

/// Any thread.
class ScriptFolder {
 public:
  ScriptFolder(std::filesystem::path folder, Log& log, std::function<void(lua_State*)> more = {})
      : folder_(std::move(folder)), log_(log), more_(std::move(more)) {}

  /// What `<name>.lua` holds now, or the last text of it that compiled. Throws ScriptError when there never was one.
  ScriptPtr newest(const std::string& name);

  std::string fileOf(const std::string& name) const { return folder_ / (name + ".lua"); }

  /// Why newest() would throw; empty when it would not.
  std::string fault(const std::string& name);

  /// All scripts of the folder, and those that were used and whose file has gone.
  std::vector<ScriptReport> reports();

 private:
  struct Entry {
    FileStamp stamp;
    ScriptPtr script;   // the newest that compiled
    std::string fault;  // of the newest text, if it did not
  };

  bool refresh(const std::string& name, Entry& entry) JOBQ_REQUIRES(mutex_);
  void tell(const std::string& name, const std::string& fault);

  const std::filesystem::path folder_;
  Log& log_;
  const std::function<void(lua_State*)> more_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ JOBQ_GUARDED_BY(mutex_);
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
  const std::string file_;
  FileStamp stamp_;
  ScriptPtr script_;
  std::chrono::steady_clock::time_point since_{};
  int looks_ = 0;
};

}  // namespace jobq::lua
