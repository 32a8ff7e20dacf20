#include "bodies/body_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <span>
#include <system_error>
#include <thread>

#include "disk/early_writeback.h"
#include "jobq/machine_fault.h"
#include "schema/schema.h"

namespace jobq::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr char kRemedy[] = "; stop the server and restore a copy of data.dir, into an empty folder";

/// Bytes of a body behind which the disk begins with them (`early_writeback.h`). Smaller steps took as long as none.
constexpr std::size_t kWritebackStep = 1UL << 20;

/// Returns the name of a body file for sentences, which callers of the API read: without the folders of the machine.
std::string nameOf(const fs::path& path) {
  return std::string("data.dir/") + kBodiesFolder + "/" + path.filename().string();
}

std::string sentence(const char* doing, const fs::path& path, int result) {
  std::string text(std::string("cannot ") + doing + " " + nameOf(path) + ": " + sqlite3_errstr(result) + " (SQLite " +
                   std::to_string(result) + ")");
  if ((result & 0xff) == SQLITE_FULL) text.append("; free space on the disk of data.dir");
  return text;
}

void checkWrite(int result, const char* doing, const fs::path& path) {
  if (result != SQLITE_OK) throw SqliteError(result, sentence(doing, path, result));
}

/// Throws the error of a failed read or opening: `error` is the number that the system has left, or 0.
[[noreturn]] void throwUnreadable(const char* doing, const fs::path& path, int result, int error) {
  if ((result & 0xff) == SQLITE_NOMEM || isMachineFault(error)) {
    throw StorageError(sentence(doing, path, result) +
                       (error == 0 ? "" : ": " + std::generic_category().message(error)));
  }
  throw UnreadableBody(sentence(doing, path, result) + "; check the disk of data.dir");
}

/// Returns the layer of files beneath the connection.
sqlite3_vfs* layerOf(Connection& connection) {
  sqlite3_vfs* vfs = nullptr;
  if (sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK) {
    fail(connection.handle(), "find its file layer");
  }
  return vfs;
}

/// Returns the number that a name of the folder stands for, or 0 for a foreign name.
std::int64_t numberOf(const std::string& name) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool isWhole = error == std::errc() && end == name.data() + name.size();
  return isWhole && number > 0 && std::to_string(number) == name ? number : 0;
}

bool hasRow(Connection& connection, std::int64_t number) {
  return connection.query("SELECT 1 FROM body_file WHERE id = ?1").bind(number).next();
}

}  // namespace

BodyFile bodyFileAt(const CurrentRow& row, int column) {
  return {row.integer(column), static_cast<std::uint64_t>(row.integer(column + 1))};
}

BodyFiles::BodyFiles(Connection& connection, const fs::path& database)
    : database_(fs::absolute(database)), folder_(database_.parent_path() / kBodiesFolder), vfs_(layerOf(connection)) {
  try {
    makePrivateFolder(folder_);
    const std::int64_t highest = connection.number("SELECT max(id) FROM body_file");
    const std::int64_t deleted = connection.number("SELECT value FROM number WHERE name = 'body'");
    next_ = std::max({removeFilesWithoutRow(connection), highest, deleted}) + 1;
  } catch (const fs::filesystem_error& error) {
    throw StorageError(std::string("cannot prepare the folder of large bodies: ") + error.what());
  }
}

// A deleted file may come back with a loss of power, so its number is not used again.
std::int64_t BodyFiles::removeFilesWithoutRow(Connection& connection) const {
  std::int64_t highest = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::int64_t number = numberOf(entry.path().filename().string());
    highest = std::max(highest, number);
    if (number != 0 && !hasRow(connection, number)) remove(number);
  }
  return highest;
}

BodyFile BodyFiles::write(std::string_view bytes) {
  const std::int64_t number = next_++;
  const fs::path path = pathOf(number);
  try {
    VfsFile file(vfs_);
    checkWrite(file.create(path, database_), "create", path);
    const EarlyWriteback disk(path);
    for (std::size_t at = 0; at < bytes.size(); at += kWritebackStep) {
      const std::string_view part = bytes.substr(at, kWritebackStep);
      checkWrite(file.write(part, at), "write", path);
      disk.begin(at, part.size());
    }
    checkWrite(file.sync(), "sync", path);
  } catch (...) {
    remove(number);
    throw;
  }
  return {number, bytes.size()};
}

bool BodyFiles::open(const BodyFile& file, VfsFile& opened) const {
  const fs::path path = pathOf(file.number);
  const int result = opened.openToRead(path);
  if (result != SQLITE_OK) {
    const int error = errno;
    std::error_code unknown;
    if (!fs::exists(path, unknown) && !unknown) return false;
    throwUnreadable("open", path, result, error);
  }
  std::uint64_t size = 0;
  checkRead(opened.readSize(size), file);
  if (size == file.size) return true;
  throw DamagedBody("the file " + nameOf(path) + " has " + std::to_string(size) + " bytes instead of " +
                    std::to_string(file.size) + kRemedy);
}

void BodyFiles::checkRead(int result, const BodyFile& file) const {
  const int error = errno;
  if (result == SQLITE_OK) return;
  const fs::path path = pathOf(file.number);
  if (result == SQLITE_IOERR_SHORT_READ) throw DamagedBody(sentence("read", path, result) + kRemedy);
  throwUnreadable("read", path, result, error);
}

// Parts that are appended cost less than a read into a string of zeros: each page of the string is written once.
std::optional<std::string> BodyFiles::read(const BodyFile& file) const {
  BodyReader reader(*this);
  if (!reader.open(file)) return std::nullopt;
  std::string bytes;
  bytes.reserve(file.size);
  while (bytes.size() < file.size) bytes += reader.readPart();
  return bytes;
}

bool BodyFiles::isEqual(const BodyFile& file, std::string_view bytes) const {
  if (file.size != bytes.size()) return false;
  BodyReader reader(*this);
  if (!reader.open(file)) throw missingError(file);
  while (!bytes.empty()) {
    const std::string_view part = reader.readPart();
    if (!bytes.starts_with(part)) return false;
    bytes.remove_prefix(part.size());
  }
  return true;
}

void BodyFiles::remove(std::int64_t number) const noexcept {
  try {
    (void)vfs_->xDelete(vfs_, pathOf(number).c_str(), 0);
  } catch (const std::exception&) {
    // Too little memory for the path: the next opening deletes the file.
  }
}

void BodyFiles::dropFromCache(const BodyFile& file) const noexcept {
  try {
    const int descriptor = ::open(pathOf(file.number).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  } catch (const std::exception&) {
    // Too little memory for the path.
  }
}

DamagedBody BodyFiles::missingError(const BodyFile& file) const {
  return DamagedBody("the file " + nameOf(pathOf(file.number)) + " is missing" + kRemedy);
}

BodyReader::BodyReader(const BodyFiles& files) : files_(files), opened_(files.vfs_), buffer_(kFileStep) {}

bool BodyReader::open(const BodyFile& file) {
  file_ = file;
  return files_.open(file, opened_);
}

// The threads of other calls may be waiting for a processor, and a body of 20 MB holds it for 10 ms.
std::string_view BodyReader::readPart() {
  if (offset_ > 0) std::this_thread::yield();
  const auto part = std::span(buffer_).first(std::min<std::uint64_t>(kFileStep, file_.size - offset_));
  files_.checkRead(opened_.read(part, offset_), file_);
  offset_ += part.size();
  return {part.data(), part.size()};
}

}  // namespace jobq::sqlite
