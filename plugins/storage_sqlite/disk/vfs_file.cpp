#include "disk/vfs_file.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "disk/durability.h"

namespace jobq::sqlite {
namespace {

/// The layer treats such files as SQLite's own journals of several databases: without locks, and with a sync of the
/// folder at the first sync of a new file.
constexpr int kKind = SQLITE_OPEN_SUPER_JOURNAL;

}  // namespace

VfsFile::~VfsFile() {
  if (memory_ != nullptr && file()->pMethods != nullptr) file()->pMethods->xClose(file());
  if (name_ != nullptr) sqlite3_free_filename(const_cast<char*>(name_));
}

int VfsFile::open(const std::filesystem::path& path, const char* modeOf, int flags) {
  std::array<const char*, 2> parameters{"modeof", modeOf};
  name_ = sqlite3_create_filename(path.c_str(), "", "", modeOf == nullptr ? 0 : 1, parameters.data());
  if (name_ == nullptr) return SQLITE_NOMEM;
  const std::size_t units = static_cast<std::size_t>(vfs_->szOsFile) / sizeof(std::max_align_t) + 1;
  memory_ = std::make_unique<std::max_align_t[]>(units);
  int granted = 0;
  errno = 0;
  return vfs_->xOpen(vfs_, name_, file(), kKind | flags, &granted);
}

int VfsFile::create(const std::filesystem::path& path, const std::filesystem::path& modeOf) {
  return open(path, modeOf.c_str(),
              SQLITE_OPEN_URI | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE | SQLITE_OPEN_READWRITE);
}

int VfsFile::openToRead(const std::filesystem::path& path) { return open(path, nullptr, SQLITE_OPEN_READONLY); }

int VfsFile::write(std::string_view bytes, std::uint64_t offset) {
  int result = SQLITE_OK;
  for (std::size_t at = 0; at < bytes.size() && result == SQLITE_OK; at += kFileStep) {
    const std::string_view step = bytes.substr(at, kFileStep);
    result = file()->pMethods->xWrite(file(), step.data(), static_cast<int>(step.size()),
                                      static_cast<sqlite3_int64>(offset + at));
  }
  return result;
}

int VfsFile::sync() { return syncBody(file()); }

int VfsFile::readSize(std::uint64_t& bytes) {
  sqlite3_int64 size = 0;
  const int result = file()->pMethods->xFileSize(file(), &size);
  bytes = static_cast<std::uint64_t>(size);
  return result;
}

int VfsFile::read(std::span<char> buffer, std::uint64_t offset) {
  int result = SQLITE_OK;
  errno = 0;
  for (std::size_t at = 0; at < buffer.size() && result == SQLITE_OK; at += kFileStep) {
    const auto step = buffer.subspan(at, std::min(kFileStep, buffer.size() - at));
    result = file()->pMethods->xRead(file(), step.data(), static_cast<int>(step.size()),
                                     static_cast<sqlite3_int64>(offset + at));
  }
  return result;
}

}  // namespace jobq::sqlite
