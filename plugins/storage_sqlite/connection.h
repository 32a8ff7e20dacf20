// A connection to the database file: a Poco::Data session with the statements prepared on the session.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>

#include "jobq/receiver_names.h"
#include "statement.h"

namespace Poco::Data {
class Session;
}

namespace jobq::sqlite {

/// Owns the session and its statements. Not thread-safe. Failures throw StorageError.
class Connection {
 public:
  enum class Access { readWrite, readOnly };

  /// Opens an existing file; a writing connection gathers the writes of its log (`log_writes.h`). Neither kind of
  /// access starts a checkpoint automatically: only the writer starts checkpoints, explicitly.
  Connection(const std::filesystem::path& file, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Provides the SQL function host_of(url), which the writing of deliveries calls: the name of the URL's receiver.
  /// `names` outlives the connection.
  void setReceiverNames(const ReceiverNames& names);

  /// Returns an execution of `sql`. The text must be a literal, because the statement is prepared at its first use and
  /// kept under the address of the text.
  Query query(const char* sql);

  /// Runs a statement without keeping the prepared form.
  void execute(const std::string& sql);

  /// Returns the integer in the only row of the result, or 0 if there is no row. `sql` must be a literal.
  std::int64_t number(const char* sql);

  /// Returns SQLite's handle, valid as long as the connection lives.
  sqlite3* handle() const noexcept { return handle_; }
  /// Returns whether a transaction is open: false also after SQLite has rolled back without a request, as on some
  /// errors.
  bool inTransaction() const noexcept { return sqlite3_get_autocommit(handle_) == 0; }

 private:
  void prepare(Access access);

  std::unique_ptr<Poco::Data::Session> session_;
  sqlite3* handle_ = nullptr;
  std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
};

/// Makes the reads within the scope of the object a single snapshot. Only for read connections.
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
