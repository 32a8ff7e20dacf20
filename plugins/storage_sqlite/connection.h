// One connection to the database file: a Poco::Data session, and the statements that were prepared on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "statement.h"

namespace Poco::Data {
class Session;
}

namespace jobq::sqlite {

/// One thread at a time. Owns the session and its statements. Failures throw StorageError.
class Connection {
 public:
  enum class Access { readWrite, readOnly };

  /// Opens an existing file. Neither kind checkpoints by itself: only the writer does, when it says so.
  Connection(const std::filesystem::path& file, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// An execution of `sql`, which has to be a literal: it is prepared at its first use and kept under its address.
  Query query(const char* sql);

  /// Runs one statement that is not worth keeping.
  void execute(const std::string& sql);

  /// Returns the number that a question with one row answers, 0 without a row. `sql` has to be a literal.
  std::int64_t number(const char* sql);

  sqlite3* handle() const noexcept { return handle_; }
  /// False also when SQLite has rolled the transaction back by itself, as it does on some errors.
  bool inTransaction() const noexcept { return sqlite3_get_autocommit(handle_) == 0; }

 private:
  void prepare(Access access);

  std::unique_ptr<Poco::Data::Session> session_;
  sqlite3* handle_ = nullptr;
  std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
};

/// Makes the reads within its scope one snapshot. Only for connections that do not write.
class Snapshot {
 public:
  explicit Snapshot(Connection& connection);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Connection& connection_;
};

}  // namespace jobq::sqlite
