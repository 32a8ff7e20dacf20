// A connection to the database, with prepared statements.
//
// The connection uses the client library alone. Poco::Data cannot open the connection: its MySQL connector (1.11) takes
// neither the path of a Unix socket, nor TLS, nor a read timeout, and connects inside the constructor of the session,
// so the options cannot be set on the handle before. Poco::Data also prepares a statement at each execution, cannot
// read a LONGBLOB, and hides the error number.
#pragma once

#include <mysql.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "connection/open_sockets.h"
#include "connection/options.h"
#include "connection/row_batch.h"
#include "connection/server_in_use.h"
#include "connection/statement.h"

namespace jobq::mysql {

/// Time for one answer of the database, unless a connection has another. A dead network shows after this time at the
/// latest; a commit of 20 MB on a slow disk needs less.
inline constexpr std::chrono::seconds kAnswerTime{10};

/// SQL text for the state of a server, which changes when another server answers, or when the server takes no writes
/// any more (Connection::state()).
#define JOBQ_MYSQL_SERVER_STATE "CONCAT_WS(' ', @@hostname, @@port, @@global.server_id, @@read_only)"

/// Isolation of the transactions of a connection.
enum class Isolation {
  readCommitted,  ///< for changes: locks no gaps, and each statement sees all earlier commits
  repeatableRead  ///< for reads: a transaction is a snapshot
};

/// Owns the handle and the statements. The connection is open from construction on, until a statement throws a
/// MysqlError with isLost(). Not thread-safe.
///
/// A server of a Galera cluster may abort a transaction between two statements, and does not always say so: MariaDB
/// 10.11 loses the news when a prepared statement is closed or executed for several rows. The next statements would be
/// committed one by one. Therefore begin() turns off the commit of each statement on such a server and sets a
/// savepoint, and commit() demands the savepoint: a later transaction does not have the savepoint. No statement is
/// closed inside a transaction.
class Connection {
 public:
  /// Throws MysqlError if the server refuses the connection or does not answer in time. Until the end of the connection
  /// the socket belongs to `sockets`, in the generation `generation`.
  Connection(const Options& options, const std::string& password, Isolation isolation, std::chrono::seconds answerTime,
             std::shared_ptr<OpenSockets> sockets, std::uint64_t generation);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends the waiting rows, and returns an execution of `sql`. The text must be a literal, because the statement is
  /// prepared at the first use and kept under the address of the text. Throws MysqlError.
  Query query(const char* sql);

  /// Returns the waiting rows of `sql`, a literal without a result, for the caller to add a row. The rows are sent
  /// before the next query() and by send(), so that each query sees them. Rows of different statements are sent in the
  /// order in which the statements were first named.
  RowBatch& later(const char* sql);

  /// Sends the waiting rows. Throws MysqlError.
  void send();

  /// Forgets the waiting rows.
  void discard() noexcept;

  /// Runs a statement without parameters and without a result. Throws MysqlError.
  void execute(std::string_view sql);

  /// Begins a transaction. Throws MysqlError.
  void begin();

  /// Commits the transaction of begin(). Throws MysqlError: a conflict if the server has aborted the transaction.
  void commit();

  std::uint64_t generation() const noexcept { return generation_; }

  /// Returns the name of the server; each server of a cluster has another name.
  const std::string& server() const noexcept { return server_; }
  /// Returns the value of JOBQ_MYSQL_SERVER_STATE at the opening of the connection.
  const std::string& state() const noexcept { return state_; }
  /// Returns whether the server took no writes when the connection was opened.
  bool isReadOnly() const noexcept { return isReadOnly_; }
  /// Throws MysqlError, as for a lost connection, if another server answers now, or if the server takes no writes any
  /// more.
  void checkServer();

  /// Returns whether the server is one of a Galera cluster. Throws MysqlError.
  bool isOnGalera();

  /// Returns the value of a variable of the server, or an empty string if the server does not know the variable. Throws
  /// MysqlError.
  std::string variable(std::string_view name);

 private:
  struct Closer {
    void operator()(MYSQL* handle) const noexcept { mysql_close(handle); }
  };

  void configure(const Options& options, std::chrono::seconds answerTime);
  void readServer();
  /// Waits until the server of a Galera cluster has the commits of all servers.
  void awaitOthers();
  Statement& statement(const char* sql);
  /// Returns whether the last answer of the server came from inside a transaction.
  bool isInTransaction() const noexcept;

  std::unique_ptr<MYSQL, Closer> handle_;
  const std::uint64_t generation_;
  std::optional<OpenSocket> socket_;
  std::string server_;
  std::string state_;
  bool isReadOnly_ = false;
  std::optional<bool> isOnGalera_;
  bool commitsAlone_ = true;    // the server commits each statement outside of a transaction
  bool sendsTogether_ = false;  // the server accepts all rows of a statement as one message
  std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
  std::vector<std::unique_ptr<Statement>> broken_;  // to be closed behind the transaction
  std::unordered_map<const char*, RowBatch> batches_;
  std::vector<const char*> waiting_;  // the statements with waiting rows
};

/// Opens connections to the database of the settings, all to one server (server_in_use.h). Any thread.
class Connector {
 public:
  /// Reads the password. `answerTime` is the time for one answer of the server, longer than any wait for a lock needs
  /// to be. `server` is shared by the connectors of a node. Throws ConfigError.
  explicit Connector(Options options, std::chrono::seconds answerTime = kAnswerTime,
                     std::shared_ptr<ServerInUse> server = std::make_shared<ServerInUse>());

  /// Opens a connection of the current generation. If the connection reaches a new server, a second connection has to
  /// reach the same server; all older connections are closed then. Throws MysqlError like the constructor of
  /// Connection, at once after cutConnections(), if two connections reach two servers, and if the server takes no
  /// writes, unless the connection is the first.
  std::unique_ptr<Connection> open(Isolation isolation) const;

  /// Returns whether calls may begin on the connection: its generation has not ended.
  bool isCurrent(const Connection& connection) const noexcept {
    return connection.generation() == server_->generation();
  }
  /// Ends the generation of a lost connection: other connections of the generation may be lost, too.
  void leave(const Connection& connection) const { server_->end(connection.generation()); }

  /// Returns when a connection was opened last; the beginning of the clock before the first connection.
  std::chrono::steady_clock::time_point openedAt() const noexcept { return openedAt_; }

  /// Shuts the open connections down. Calls under way fail, and so does each call until allowConnections().
  void cutConnections() const noexcept { sockets_->cutAll(); }
  void allowConnections() const noexcept { sockets_->allowOpening(); }

  std::chrono::seconds answerTime() const noexcept { return answerTime_; }
  const Options& options() const noexcept { return options_; }

 private:
  [[noreturn]] void throwCut() const;
  std::unique_ptr<Connection> reach(Isolation isolation) const;

  const Options options_;
  const std::string password_;
  const std::chrono::seconds answerTime_;
  const std::shared_ptr<ServerInUse> server_;
  const std::shared_ptr<OpenSockets> sockets_ = std::make_shared<OpenSockets>();
  mutable std::atomic<std::chrono::steady_clock::time_point> openedAt_{};
};

}  // namespace jobq::mysql
