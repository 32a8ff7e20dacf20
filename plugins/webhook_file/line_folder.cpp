#include "line_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <system_error>

#include "jobq/error.h"
#include "jobq/file_descriptor.h"
#include "jobq/machine_fault.h"

namespace jobq::webhook_file {

namespace {

// Throws for a lack of this machine (jobq/machine_fault.h), which counts no try.
std::string reasonOf(int error) {
  if (isMachineFault(error)) throw std::system_error(error, std::generic_category(), "the file cannot be written");
  switch (error) {
    case ENOSPC: return "the disk is full";
    case EDQUOT: return "the disk's quota is used up";
    case ELOOP: return "the file is a symbolic link, which is not followed";
    case EISDIR: return "the file is a folder";
    default: return "the file cannot be written: " + std::generic_category().message(error);
  }
}

bool sync(const std::filesystem::path& folder) {
  const FileDescriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return handle.isOpen() && ::fsync(handle.number()) == 0;
}

bool make(const std::filesystem::path& folder) {
  constexpr mode_t kOwnerOnly = 0700;
  if (::mkdir(folder.c_str(), kOwnerOnly) == 0) return sync(folder / "..");
  if (errno != EEXIST) return false;
  std::error_code unknown;
  if (std::filesystem::is_directory(folder, unknown)) return true;
  errno = ENOTDIR;
  return false;
}

bool endsInsideLine(int file, off_t length) {
  char last = '\n';
  return length > 0 && ::pread(file, &last, 1, length - 1) == 1 && last != '\n';
}

int write(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Writes the line, usually with a single write; further writes follow only when the system took a part.
std::optional<std::string> grow(int file, off_t length, std::string_view line) {
  // A process killed while writing left the beginning of a line behind, which must not spoil the new line.
  const int error = endsInsideLine(file, length) ? write(file, "\n" + std::string(line)) : write(file, line);
  if (error == 0) return std::nullopt;
  if (::ftruncate(file, length) != 0) return reasonOf(error) + ", and the part that was written could not be cut off";
  return reasonOf(error);
}

}  // namespace

LineFolder::LineFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (make(folder_)) return;
  throw ConfigError("webhook.file.dir: the folder " + folder_.string() + " cannot be created (" +
                    std::generic_category().message(errno) + "); name a folder whose parent exists and is writable");
}

int LineFolder::open(const std::string& name) const {
  constexpr mode_t kOwnerOnly = 0600;
  // A pipe in the file's place must not block the delivery thread: opened for reading and writing, the pipe has a
  // reader.
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
  const int file = ::open((folder_ / name).c_str(), kFlags, kOwnerOnly);
  // A reader of the files may also have removed the files together with the folder.
  if (file >= 0 || errno != ENOENT || !make(folder_)) return file;
  return ::open((folder_ / name).c_str(), kFlags, kOwnerOnly);
}

std::optional<std::string> LineFolder::append(const std::string& name, std::string_view line) {
  const FileDescriptor file(open(name));
  if (!file.isOpen()) return reasonOf(errno);
  {
    Lock lock(growing_);
    struct stat now {};
    if (::fstat(file.number(), &now) != 0) return reasonOf(errno);
    if (!S_ISREG(now.st_mode)) return "the file is not a regular file";
    // A new file is durable once its folder is synced. No other writer passes this point before, because of the mutex.
    if (now.st_size == 0 && !sync(folder_)) return reasonOf(errno);
    auto reason = grow(file.number(), now.st_size, line);
    if (reason) return reason;
  }
  if (::fsync(file.number()) != 0) return reasonOf(errno);
  return std::nullopt;
}

}  // namespace jobq::webhook_file
