// The folder of scripts. An edited file takes effect for the next job. A file that does not
// compile leaves the preceding text in force.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "sandbox/library_opener.h"
#include "sandbox/script.h"
#include "script_file.h"

namespace jobq::lua {

/// Compiles and tries `text`. Throws ScriptError with file and line if the text does not compile or does not return a
/// function within a second and `memory` bytes. `libraries` are the libraries within reach of the first lines.
ScriptPtr compile(std::string name, std::string text, std::size_t memory, const LibraryOpener& libraries);

/// The scripts of one folder. Any thread. `log` and `libraries` outlive the object.
class ScriptFolder {
 public:
  /// `libraries` are opened for the trial run of each new text.
  ScriptFolder(std::filesystem::path folder, Log& log, std::size_t memory, const LibraryOpener& libraries)
      : folder_(std::move(folder)), log_(log), memory_(memory), libraries_(libraries) {}

  /// The present state of a script.
  struct Newest {
    ScriptPtr script;
    OpenFilePtr file;  ///< file of the newest text; null if the file is gone
    FileStamp stamp;   ///< stamp of `file`, taken before the file was read
  };

  /// Returns the script of `<name>.lua` as the file stands now, or the last text that compiled. Blocks while a new text
  /// is compiled and tried, which takes up to a second. Throws ScriptError if no text ever compiled.
  Newest newest(const std::string& name);

  /// Returns the message of the ScriptError that newest() would throw, if newest() would throw.
  std::optional<std::string> fault(const std::string& name);

  /// Returns a report for each script of the folder and for each used script whose file is gone.
  std::vector<ScriptReport> reports();

 private:
  struct Entry {
    Mutex mutex;  // held while a new text is compiled and tried: only users of this script wait
    FileStamp stamp JOBQ_GUARDED_BY(mutex);
    OpenFilePtr file JOBQ_GUARDED_BY(mutex);
    ScriptPtr script JOBQ_GUARDED_BY(mutex);                  // the newest that compiled
    std::optional<std::string> fault JOBQ_GUARDED_BY(mutex);  // of the newest text
  };
  using EntryPtr = std::shared_ptr<Entry>;

  std::string fileOf(const std::string& name) const { return folder_ / (name + ".lua"); }
  EntryPtr entryOf(const std::string& name);
  bool refresh(const std::string& name, Entry& entry) JOBQ_REQUIRES(entry.mutex);
  void reportChange(const std::string& name, const std::optional<std::string>& fault);

  const std::filesystem::path folder_;
  Log& log_;
  const std::size_t memory_;  // bytes for one script, as in lua.memory
  const LibraryOpener& libraries_;
  Mutex mutex_;
  std::map<std::string, EntryPtr> entries_ JOBQ_GUARDED_BY(mutex_);
};

/// A script as a worker follows it. Asks the folder only if the open file was written, if the file is a symbolic link,
/// or after 50 ms. Used by one thread at a time. The folder outlives the object.
class FollowedScript {
 public:
  /// Throws ScriptError like ScriptFolder::newest().
  FollowedScript(ScriptFolder& folder, std::string name);

  /// Returns the script for the next job. The reference is valid until the next call. Throws ScriptError like
  /// ScriptFolder::newest().
  const ScriptPtr& newest();

 private:
  ScriptFolder& folder_;
  const std::string name_;
  ScriptFolder::Newest now_;
  std::chrono::nanoseconds askAgain_{};
};

}  // namespace jobq::lua
