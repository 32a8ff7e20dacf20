// `jobqctl backup`: copies the running server's storage into a directory of the local machine.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "jobq/file_descriptor.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

namespace fs = std::filesystem;

constexpr Millis kBackupTimeout{3'600'000};
constexpr DurationRange kTimeouts{Millis{1'000}, Millis{86'400'000}};
/// Name of the storage's file in the data directory of a server.
constexpr const char* kFileName = "jobq.db";

std::string reason() { return std::strerror(errno); }

void prepareFolder(const fs::path& folder) {
  std::error_code fault;
  if (fs::create_directories(folder, fault)) fs::permissions(folder, fs::perms::owner_all, fault);
  if (fault || !fs::is_directory(folder, fault)) {
    throw CommandError(ExitCode::usage, "the directory " + folder.string() + " cannot be made: " + fault.message());
  }
  for (const char* name : {"jobq.db", "jobq.db-wal"}) {
    if (fs::exists(folder / name, fault)) {
      throw CommandError(ExitCode::usage, folder.string() + " has a " + name + " already: name another directory");
    }
  }
}

bool sync(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.isOpen() && ::fsync(file.number()) == 0;
}

/// A file of mode 0600 with a temporary name; the destructor removes the file unless keep() gave the final name.
class Draft {
 public:
  explicit Draft(const fs::path& final) : final_(final), path_(final.string() + ".XXXXXX") {
    const FileDescriptor file(::mkstemp(path_.data()));
    if (!file.isOpen()) throw CommandError(ExitCode::usage, path_ + " cannot be made: " + reason());
  }
  ~Draft() { ::unlink(path_.c_str()); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const std::string& path() const noexcept { return path_; }

  /// Gives the complete file its final name, durably. Throws CommandError(refused).
  void keep() const {
    if (!sync(path_) || ::rename(path_.c_str(), final_.c_str()) != 0 || !sync(final_.parent_path())) {
      throw CommandError(ExitCode::refused, final_.string() + " cannot be written: " + reason());
    }
  }

 private:
  const fs::path final_;
  std::string path_;
};

}  // namespace

ExitCode makeBackup(const Invocation& invocation) {
  const Millis timeout = durationOf(invocation.arguments, "timeout", kBackupTimeout, kTimeouts);
  const fs::path folder = fs::absolute(invocation.arguments.words[0]);
  prepareFolder(folder);
  const fs::path file = folder / kFileName;
  const Draft draft(file);
  std::ofstream out(draft.path(), std::ios::binary);
  const std::uint64_t size = invocation.api.download("/v1/backup", out, timeout);
  out.close();
  if (!out) throw CommandError(ExitCode::refused, file.string() + " cannot be written: is the disk full?");
  draft.keep();
  if (invocation.json) {
    invocation.out << json::object([&](json::ObjectWriter& out) {
      out.member("file", file.string());
      out.member("bytes", size);
    }) << '\n';
    return ExitCode::ok;
  }
  Table table;
  table.add({"file", file.string()});
  table.add({"bytes", std::to_string(size)});
  table.print(invocation.out);
  invocation.out
      << "\nThe copy does not hold the server's secret.key: copy that file once, and keep it apart from the backups.\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
