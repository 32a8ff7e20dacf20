#include "connection/connection.h"

#include <errmsg.h>
#include <mysqld_error.h>

#include <utility>

namespace jobq::mysql {
namespace {

constexpr unsigned kConnectTimeout = 3;  // seconds

// Ways to prove the password over an open network. With any other way the client library would send the plain password
// to any program at the address of the database.
constexpr char kAuthenticationWithoutTls[] = "mysql_native_password,caching_sha2_password,client_ed25519";

// A lock of a vanished node stays until the server closes the node's connection: after wait_timeout, or 5 s inside a
// transaction of MariaDB.
constexpr char kSession[] =
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', autocommit = 1, "
    "innodb_lock_wait_timeout = 5, wait_timeout = 60, time_zone = '+00:00'";

[[noreturn]] void throwReadOnly(const std::string& server) {
  throw MysqlError(ER_OPTION_PREVENTS_STATEMENT,
                   "the variable read_only of the database server " + server +
                       " is on: another server may take the writes now, and reads here may be old. Let "
                       "storage.mysql.host lead to the server that takes writes");
}

/// Returns whether the server executes a statement for many rows at once: MariaDB does, MySQL does not.
bool knowsBulk(MYSQL* handle) {
  constexpr unsigned long kBulk = MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32;
  unsigned long capabilities = 0;
  return mariadb_get_infov(handle, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &capabilities) == 0 &&
         (capabilities & kBulk) != 0;
}

}  // namespace

Connection::Connection(const Options& options, const std::string& password, Isolation isolation,
                       std::chrono::seconds answerTime, std::shared_ptr<OpenSockets> sockets, std::uint64_t generation)
    : handle_(mysql_init(nullptr)), generation_(generation) {
  if (!handle_) throw MysqlError(0, "no memory is left for a connection to the database");
  configure(options, answerTime);
  const bool local = !options.socket.empty();
  if (mysql_real_connect(handle_.get(), local ? "localhost" : options.host.c_str(), options.user.c_str(),
                         password.c_str(), options.database.c_str(), local ? 0 : options.port,
                         local ? options.socket.c_str() : nullptr, CLIENT_FOUND_ROWS) == nullptr) {
    fail(handle_.get(), "be reached at " + options.address());
  }
  socket_.emplace(std::move(sockets), static_cast<int>(mysql_get_socket(handle_.get())), generation);
  try {
    execute(kSession);
  } catch (const MysqlError& error) {
    if (error.code() != ER_UNKNOWN_SYSTEM_VARIABLE) throw;
    throw MysqlError(error.code(),
                     "the database server runs without the engine InnoDB, which alone has transactions and row locks; "
                     "start the server with InnoDB");
  }
  execute(isolation == Isolation::readCommitted ? "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
                                                : "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  // The locks of a node stopped inside a transaction would keep the other nodes from beating until wait_timeout, longer
  // than a life. MySQL has no such bound.
  if (!variable("idle_transaction_timeout").empty()) execute("SET SESSION idle_transaction_timeout = 5");
  readServer();
  sendsTogether_ = knowsBulk(handle_.get());
  if (isOnGalera()) awaitOthers();
}

// A connection opened after the loss of a server leads to a server that may still have commits of the lost server to
// apply. Without the wait, a question about an unanswered claim could miss the claim.
void Connection::awaitOthers() {
  execute("SET SESSION wsrep_sync_wait = 1");
  (void)variable("wsrep_on");  // waits, as each read does
  execute("SET SESSION wsrep_sync_wait = DEFAULT");
}

void Connection::readServer() {
  Query query = this->query("SELECT CONCAT_WS(' ', @@hostname, @@port, @@global.server_id), " JOBQ_MYSQL_SERVER_STATE
                            ", CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF')");
  if (!query.next()) throw MysqlError(CR_SERVER_LOST, "the database server does not tell its name");
  server_ = query.text(0);
  state_ = query.text(1);
  isReadOnly_ = query.flag(2);
}

void Connection::checkServer() {
  const std::string before = server_;
  readServer();
  if (isReadOnly_) throwReadOnly(server_);
  if (server_ == before) return;
  throw MysqlError(CR_SERVER_LOST, "a connection to the database server " + before + " is answered by the server " +
                                       server_ + "; the connections of this node are opened again");
}

// The statements are closed first, while the handle still exists.
Connection::~Connection() {
  broken_.clear();
  statements_.clear();
}

void Connection::configure(const Options& options, std::chrono::seconds answerTime) {
  MYSQL* const handle = handle_.get();
  const my_bool yes = 1;
  const auto seconds = static_cast<unsigned>(answerTime.count());
  mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &kConnectTimeout);
  mysql_options(handle, MYSQL_OPT_READ_TIMEOUT, &seconds);
  mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &seconds);
  mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(handle, MYSQL_REPORT_DATA_TRUNCATION, &yes);
  const unsigned protocol = options.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  mysql_options(handle, MYSQL_OPT_PROTOCOL, &protocol);
  const unsigned off = 0;  // the server may otherwise ask for any file of this host
  mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &off);
  if (options.tls == "off") {
    if (options.socket.empty()) mysql_options(handle, MARIADB_OPT_RESTRICTED_AUTH, kAuthenticationWithoutTls);
    return;
  }
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &yes);
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
  constexpr char kSystemAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";
  mysql_options(handle, MYSQL_OPT_SSL_CA, options.tls == "on" ? kSystemAuthorities : options.tls.c_str());
}

Statement& Connection::statement(const char* sql) {
  std::unique_ptr<Statement>& statement = statements_[sql];
  if (statement && statement->isBroken()) broken_.push_back(std::move(statement));
  if (!isInTransaction()) broken_.clear();
  if (!statement) statement = std::make_unique<Statement>(handle_.get(), sql);
  return *statement;
}

Query Connection::query(const char* sql) {
  send();
  return Query(statement(sql));
}

RowBatch& Connection::later(const char* sql) {
  RowBatch& batch = batches_[sql];
  if (batch.isEmpty()) waiting_.push_back(sql);
  return batch;
}

void Connection::send() {
  for (const char* sql : waiting_) batches_[sql].send(statement(sql), sendsTogether_);
  waiting_.clear();
}

void Connection::discard() noexcept {
  for (const char* sql : waiting_) batches_[sql].clear();
  waiting_.clear();
}

void Connection::execute(std::string_view sql) {
  if (!isInTransaction()) broken_.clear();
  if (mysql_real_query(handle_.get(), sql.data(), sql.size()) != 0) fail(handle_.get(), "run a statement");
}

void Connection::begin() {
  if (!isOnGalera()) return execute("BEGIN");
  if (commitsAlone_) execute("SET SESSION autocommit = 0");
  commitsAlone_ = false;
  execute("BEGIN");
  execute("SAVEPOINT begun");
}

void Connection::commit() {
  constexpr char kEnded[] = "the database has ended a transaction before its commit";
  if (!isInTransaction()) throw MysqlError(ER_LOCK_DEADLOCK, kEnded);
  if (isOnGalera()) {
    try {
      execute("RELEASE SAVEPOINT begun");
    } catch (const MysqlError& error) {
      if (error.code() != ER_SP_DOES_NOT_EXIST) throw;
      throw MysqlError(ER_LOCK_DEADLOCK, kEnded);
    }
  }
  execute("COMMIT");
}

bool Connection::isInTransaction() const noexcept { return (handle_->server_status & SERVER_STATUS_IN_TRANS) != 0; }

bool Connection::isOnGalera() {
  if (!isOnGalera_) isOnGalera_ = variable("wsrep_on") == "ON";
  return *isOnGalera_;
}

std::string Connection::variable(std::string_view name) {
  try {
    const std::string sql = "SELECT CAST(@@" + std::string(name) + " AS CHAR)";
    Statement statement(handle_.get(), sql);
    Query query(statement);
    return query.next() ? query.text(0) : std::string();
  } catch (const MysqlError& error) {
    if (error.code() != ER_UNKNOWN_SYSTEM_VARIABLE) throw;
    return {};
  }
}

Connector::Connector(Options options, std::chrono::seconds answerTime, std::shared_ptr<ServerInUse> server)
    : options_(std::move(options)),
      password_(options_.readPassword()),
      answerTime_(answerTime),
      server_(std::move(server)) {
  options_.checkAuthorities();
  server_->add(sockets_);
}

std::unique_ptr<Connection> Connector::reach(Isolation isolation) const {
  if (sockets_->isCut()) throwCut();
  const bool isFirst = !server_->isKnown();
  auto connection =
      std::make_unique<Connection>(options_, password_, isolation, answerTime_, sockets_, server_->generation());
  openedAt_ = std::chrono::steady_clock::now();
  if (connection->isReadOnly() && !isFirst) throwReadOnly(connection->server());
  return connection;
}

std::unique_ptr<Connection> Connector::open(Isolation isolation) const {
  auto connection = reach(isolation);
  if (server_->isInUse(connection->server())) return connection;
  const std::string server = connection->server();
  std::string other = reach(isolation)->server();
  if (other == server) {
    server_->moveTo(server);
    connection = reach(isolation);
    other = connection->server();
    if (server_->isInUse(other)) return connection;
  }
  throw MysqlError(CR_SERVER_LOST, "connections of this node reach different database servers, " + server + " and " +
                                       other + "; let the load balancer send all connections to one server");
}

void Connector::throwCut() const {
  throw MysqlError(CR_SERVER_LOST, "the database cannot be reached at " + options_.address() +
                                       ": it has not answered this node for several seconds");
}

}  // namespace jobq::mysql
