#include "core/http/api/management/backups.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

namespace jobq {
namespace {

[[noreturn]] void failFile(const std::filesystem::path& file) {
  throw StorageError("cannot read " + file.string() + ": " + std::strerror(errno));
}

}  // namespace

/// A backup file from the first byte written to the last byte sent. An object of this class occupies the only place for
/// a backup.
struct Backups::Copy {
  explicit Copy(std::atomic<bool>& taken) noexcept : busy(taken) {}
  ~Copy() {
    file.reset();
    busy = false;
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void open(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) failFile(path);
    struct stat info {};
    const bool known = ::fstat(descriptor, &info) == 0;
    file.emplace(descriptor, static_cast<std::uint64_t>(info.st_size));
    if (!known) failFile(path);
  }

  std::atomic<bool>& busy;
  std::optional<BodyFile> file;
};

void Backups::removeLeftover() noexcept {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  std::filesystem::remove(file_.string() + "-journal", ignored);
}

Backups::MakeResult Backups::make(const std::stop_token& gone) {
  if (!storage_.capabilities().has(Capability::backup)) return Unsupported{};
  if (busy_.exchange(true)) return Busy{};
  const auto copy = std::make_shared<Copy>(busy_);
  removeLeftover();
  std::stop_source end;
  const std::stop_callback whenGone(gone, [&end] { end.request_stop(); });
  const std::stop_callback whenStopping(stopping_.get_token(), [&end] { end.request_stop(); });
  switch (storage_.backupTo(file_, end.get_token())) {
    case BackupResult::stopped: return Stopped{};
    case BackupResult::written: break;
  }
  try {
    copy->open(file_);
  } catch (...) {
    removeLeftover();
    throw;
  }
  removeLeftover();
  return std::shared_ptr<const BodyFile>(copy, &*copy->file);
}

}  // namespace jobq
