#include "schema/schema.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "bodies/body_files.h"
#include "disk/durability.h"

namespace jobq::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic("SQLite format 3\0", 16);
// Offsets in the header of a SQLite file; the numbers are big-endian.
constexpr std::size_t kVersionOffset = 60;      // user_version
constexpr std::size_t kApplicationOffset = 68;  // application_id
constexpr std::size_t kHeaderBytes = 100;
constexpr std::int64_t kApplicationId = 0x6a6f6271;  // "jobq"
constexpr fs::perms kOwnerOnly = fs::perms::owner_read | fs::perms::owner_write;

[[noreturn]] void failFile(const fs::path& file, const char* doing) {
  throw StorageError(std::string("cannot ") + doing + " " + file.string() + ": " + std::strerror(errno));
}

[[noreturn]] void refuseNewer(const fs::path& file, std::int64_t version, std::size_t newest) {
  throw StorageError(file.string() + " has schema version " + std::to_string(version) +
                     ", this server knows versions up to " + std::to_string(newest) +
                     "; start the newer server, or set data.dir to another directory. The file was not touched.");
}

[[noreturn]] void refuseForeign(const fs::path& file, const char* what) {
  throw StorageError(file.string() + " is " + what +
                     "; move the file away, or set data.dir to another directory. The file was not touched.");
}

/// Syncs one path. A rename is durable once the file and its directory are synced.
void syncPath(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) failFile(path, "open");
  const bool done = ::fsync(descriptor) == 0;
  ::close(descriptor);
  if (!done) failFile(path, "sync");
}

/// Gives the files of large bodies in `bodies` a second name in the folder `kept`: the server goes on to delete files.
/// A file never changes, so a link is enough.
void keepBodies(const fs::path& bodies, const fs::path& kept) {
  makePrivateFolder(kept);
  for (const fs::directory_entry& entry : fs::directory_iterator(bodies)) {
    if (!entry.is_regular_file()) continue;
    const fs::path name = kept / entry.path().filename();
    std::error_code noLinks;
    fs::create_hard_link(entry.path(), name, noLinks);
    if (!noLinks) continue;
    fs::copy_file(entry.path(), name);
    syncPath(name);
  }
  syncPath(kept);
}

/// Copies the file and keeps its bodies, under temporary names first: a copy with the final name is complete, and has
/// its bodies beside it.
void keepCopy(Connection& connection, const fs::path& file, std::int64_t version) {
  const fs::path copy = file.string() + ".v" + std::to_string(version) + ".backup";
  const fs::path unfinished = copy.string() + ".part";
  const fs::path bodies = file.parent_path() / kBodiesFolder;
  const fs::path kept = copy.string() + ".bodies";
  const fs::path unfinishedBodies = kept.string() + ".part";
  fs::remove(unfinished);
  fs::remove_all(unfinishedBodies);
  try {
    makePrivateFile(unfinished);
    const std::string target = unfinished.string();
    const Statement statement(connection.handle(), "VACUUM INTO ?1");
    Query(statement.handle()).bind(target).run();
    syncPath(unfinished);
    if (fs::exists(bodies)) keepBodies(bodies, unfinishedBodies);
  } catch (...) {
    std::error_code ignored;  // the copy may have filled the disk
    fs::remove(unfinished, ignored);
    fs::remove_all(unfinishedBodies, ignored);
    throw;
  }
  fs::remove_all(kept);
  if (fs::exists(unfinishedBodies)) fs::rename(unfinishedBodies, kept);
  fs::rename(unfinished, copy);
  syncPath(file.parent_path());
}

void executeScript(Connection& connection, const char* sql) {
  if (sqlite3_exec(connection.handle(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail(connection.handle(), "change the schema");
  }
}

void applyStep(Connection& connection, const SchemaStep& step, std::size_t version) {
  connection.execute("BEGIN IMMEDIATE");
  try {
    executeScript(connection, step.sql);
    connection.execute("PRAGMA application_id=" + std::to_string(kApplicationId));
    connection.execute("PRAGMA user_version=" + std::to_string(version));
    connection.execute("COMMIT");
  } catch (const StorageError&) {
    if (connection.inTransaction()) executeScript(connection, "ROLLBACK");
    throw;
  }
}

/// Asks the connection, because the connection also sees the write-ahead log of a crashed server; the header of the
/// file alone may be older.
std::int64_t checkOwner(Connection& connection, const fs::path& file, std::size_t newest) {
  const std::int64_t version = connection.number("PRAGMA user_version");
  const bool ours = connection.number("PRAGMA application_id") == kApplicationId;
  if (ours && version > static_cast<std::int64_t>(newest)) refuseNewer(file, version, newest);
  const bool empty = connection.number("SELECT count(*) FROM sqlite_schema") == 0;
  if (!ours && !(version == 0 && empty)) refuseForeign(file, "another program's SQLite database");
  return version;
}

/// Closing the last connection would move the log into the file, but a refused file must stay unchanged.
void moveLogOnClose(Connection& connection, bool move) {
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, move ? 0 : 1, nullptr);
}

/// Returns whether a loss of power hit SQLite while writing the very first page of the file: the journal beside the
/// file says that the file was empty.
bool isUnfinished(const fs::path& file, std::string_view magic) {
  return magic.find_first_not_of('\0') == std::string_view::npos && fs::exists(file.string() + "-journal");
}

/// Turns the write-ahead log on; `writer.h` depends on the log. SQLite reports a refusal without an error.
void useLog(Connection& connection, const fs::path& file) {
  const Statement statement(connection.handle(), "PRAGMA journal_mode=WAL");
  Query query(statement.handle());
  if (query.next() && query.text(0) == "wal") return;
  throw StorageError(file.string() + " cannot have a write-ahead log on this file system; set data.dir to a local one");
}

/// The setting can be chosen only for an empty file, before its first page is written.
void letItShrink(Connection& connection) {
  if (connection.number("PRAGMA page_count") == 0) connection.execute(kMakeItShrink);
}

constexpr std::size_t kLogHeaderBytes = 32;

std::uint32_t wordAt(std::string_view bytes, std::size_t at, bool bigEndian) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word = word << 8 | static_cast<unsigned char>(bytes[at + (bigEndian ? i : 3 - i)]);
  }
  return word;
}

/// Format: https://www.sqlite.org/fileformat2.html, "WAL File Format". A magic number names the byte order of the
/// checksum. The checksum covers the 24 bytes before.
bool isLogHeader(std::string_view header) {
  constexpr std::uint32_t kLogMagic = 0x377f0682;
  const std::uint32_t magic = wordAt(header, 0, true);
  if ((magic & ~1U) != kLogMagic) return false;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::size_t at = 0; at < 24; at += 8) {
    first += wordAt(header, at, (magic & 1U) != 0) + second;
    second += wordAt(header, at + 4, (magic & 1U) != 0) + first;
  }
  return wordAt(header, 24, true) == first && wordAt(header, 28, true) == second;
}

/// SQLite deletes the log of an empty file and ignores an unreadable log; both may hold acknowledged jobs. No crash
/// leaves such a log: the file has its first page before a log exists, and the header of the log is one sector, either
/// old, or new, or zeros when the header had not reached the disk.
void checkLog(const fs::path& file) {
  const fs::path log = file.string() + "-wal";
  std::error_code absent;
  const auto size = fs::file_size(log, absent);
  if (absent || size < kLogHeaderBytes) return;
  if (!fs::exists(file) || fs::file_size(file) == 0) {
    throw StorageError(file.string() + " is missing or empty, but its write-ahead log " + log.string() +
                       " is not; restore the file, or move the log away to start without its jobs. "
                       "Nothing was touched.");
  }
  std::array<char, kLogHeaderBytes> header{};
  std::ifstream in(log, std::ios::binary);
  in.read(header.data(), header.size());
  if (!in.good()) failFile(log, "read");
  const std::string_view found(header.data(), header.size());
  if (found == std::string(kLogHeaderBytes, '\0') || isLogHeader(found)) return;
  throw StorageError(log.string() + " is damaged; restore it together with " + file.string() +
                     ", or move the log away to start without its jobs. Nothing was touched.");
}

}  // namespace

namespace {

/// A file made by VACUUM INTO or by another tool is in rollback mode; a server's file is in WAL mode before it has a
/// log.
void refuseLogOfAnotherFile(const fs::path& file, std::string_view header) {
  constexpr std::size_t kWriteVersionOffset = 18;
  constexpr std::size_t kReadVersionOffset = 19;
  constexpr char kRollback = 1;
  if (header[kWriteVersionOffset] != kRollback || header[kReadVersionOffset] != kRollback) return;
  const fs::path log = file.string() + "-wal";
  std::error_code absent;
  const auto size = fs::file_size(log, absent);
  if (absent || size < kLogHeaderBytes) return;
  throw StorageError(log.string() + " belongs to another database than " + file.string() +
                     ", which was restored from a backup; move the log away. Nothing was touched.");
}

}  // namespace

void prepareFile(const fs::path& file, std::size_t newest) {
  checkLog(file);
  if (!fs::exists(file)) makePrivateFile(file);
  if (::access(file.c_str(), R_OK | W_OK) != 0) {
    throw StorageError("cannot read and write " + file.string() + ": " + std::strerror(errno) +
                       "; let this user do both, or set data.dir to another directory");
  }
  std::array<char, kHeaderBytes> header{};
  std::ifstream in(file, std::ios::binary);
  in.read(header.data(), header.size());
  if (in.bad() || !in.is_open()) failFile(file, "read");
  const auto length = static_cast<std::size_t>(in.gcount());
  if (length == 0) return;

  if (isUnfinished(file, std::string_view(header.data(), kMagic.size()))) return;
  if (length < kHeaderBytes || std::string_view(header.data(), kMagic.size()) != kMagic) {
    refuseForeign(file, "not a SQLite database");
  }
  const std::string_view found(header.data(), header.size());
  const std::uint32_t version = wordAt(found, kVersionOffset, true);
  if (version > newest && wordAt(found, kApplicationOffset, true) != kApplicationId) {
    refuseForeign(file, "damaged, or another program's SQLite database");
  }
  if (version > newest) refuseNewer(file, version, newest);
  refuseLogOfAnotherFile(file, found);
}

void makePrivateFile(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) failFile(file, "create");
  ::close(descriptor);
}

void makePrivateFolder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) failFile(folder, "create");
  fs::permissions(folder, fs::perms::owner_all);
  syncPath(folder.parent_path());  // also if an earlier start died before its sync
}

void migrate(Connection& connection, const fs::path& file, std::span<const SchemaStep> steps, Log& log) {
  moveLogOnClose(connection, false);
  const auto version = static_cast<std::size_t>(checkOwner(connection, file, steps.size()));
  fs::permissions(file, kOwnerOnly);
  letItShrink(connection);
  useLog(connection, file);
  setSync(connection, true);
  moveLogOnClose(connection, true);
  if (version == steps.size()) return;

  if (version > 0) {
    log.write(LogLevel::information, "storage.migrate",
              file.string() + " is migrated from schema version " + std::to_string(version) + " to " +
                  std::to_string(steps.size()) + "; a copy is made beside the file first.");
    keepCopy(connection, file, static_cast<std::int64_t>(version));
  }
  for (std::size_t at = version; at < steps.size(); ++at) applyStep(connection, steps[at], at + 1);
}

}  // namespace jobq::sqlite
