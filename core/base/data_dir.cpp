#include "core/base/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include "jobq/byte_order_mark.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr char kRemedy[] = "; give this user write permission there, or set data.dir to another directory";

std::string reason() { return std::strerror(errno); }

/// Makes a new name in the folder safe from a power loss. Returns false with the reason in errno.
bool syncFolder(const std::filesystem::path& folder) {
  const FileDescriptor file(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return file.isOpen() && ::fsync(file.number()) == 0;
}

// Syncs upwards as far as this user may open folders: older folders are safe already.
void syncNewFolders(const std::filesystem::path& path) {
  for (auto at = std::filesystem::absolute(path); at.has_relative_path(); at = at.parent_path()) {
    if (!syncFolder(at.parent_path())) return;
  }
}

FileDescriptor openLocked(const std::filesystem::path& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) throw ConfigError("data.dir " + path.string() + " cannot be made: " + error.message() + kRemedy);
  if (made) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    syncNewFolders(path);
  }
  const std::string file = (path / "lock").string();
  FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.isOpen()) throw ConfigError("data.dir " + path.string() + " cannot be written: " + reason() + kRemedy);
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError("data.dir " + path.string() +
                      " is in use by another jobqd: stop that process, or set another data.dir");
  }
  return lock;
}

}  // namespace

DataDir::DataDir(std::filesystem::path path) : path_(std::move(path)), lock_(openLocked(path_)) {}

std::vector<std::string> DataDir::restrictToOwner() const {
  std::vector<std::string> sentences;
  const auto close = [&sentences](const std::filesystem::path& path) {
    if (auto sentence = jobq::restrictToOwner(path)) sentences.push_back(std::move(*sentence));
  };
  close(path_);
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(path_, error)) {
    if (file.is_regular_file(error) && !file.is_symlink(error)) close(file.path());
  }
  return sentences;
}

std::optional<std::string> restrictToOwner(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & 0077U) == 0) return std::nullopt;
  const std::string was = path.string() + " was open to other users of the machine";
  if (::chmod(path.c_str(), status.st_mode & 0700U) == 0) return was + ": the server removed their access";
  return was + ", and its mode cannot be changed (" + reason() + "): change its owner or mode";
}

void writePrivateFile(const std::filesystem::path& path, std::string_view text) {
  const std::string draft = path.string() + ".new";
  FileDescriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.isOpen()) throw Error(draft + " cannot be written: " + reason());
  const bool written = ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool synced = written && ::fsync(file.number()) == 0;
  const std::string why = reason();
  file.close();
  if (!synced || ::rename(draft.c_str(), path.c_str()) != 0 || !syncFolder(path.parent_path())) {
    const Error error(path.string() + " cannot be written: " + (synced ? reason() : why));
    ::unlink(draft.c_str());
    throw error;
  }
}

std::optional<std::string> readFile(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  if (std::filesystem::is_directory(path)) throw Error(path.string() + " is a folder: put the file in its place");
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) throw Error(path.string() + " cannot be read");
  return std::string(withoutByteOrderMark(text));
}

}  // namespace jobq
