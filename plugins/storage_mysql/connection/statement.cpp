#include "connection/statement.h"

#include <errmsg.h>
#include <mysqld_error.h>

#include <algorithm>

namespace jobq::mysql {
namespace {

constexpr unsigned kConnectionKilled = 1927;         // MariaDB alone has the error, so the name is not in all headers
constexpr unsigned kClusterNotReady = 1047;          // answer of a node of a Galera cluster without a majority
constexpr unsigned kReadOnlyMode = 1836;             // error of MySQL alone
constexpr unsigned kNoSecureTransport = 3159;        // MySQL's refusal of a connection without TLS
constexpr unsigned kForbiddenAuthentication = 5010;  // error of the client library; older headers have no name
constexpr unsigned kNoWait = 3572;                   // MySQL's answer to a held lock

/// Returns the end of a sentence, or an empty text for an error without a remedy.
const char* remedyOf(unsigned code) {
  switch (code) {
    case ER_NET_PACKET_TOO_LARGE:
    case CR_NET_PACKET_TOO_LARGE: return "; set max_allowed_packet of the server to 64M or more";
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
      return "; grant the user of storage.mysql.user all rights on the database of storage.mysql.database";
    case ER_ACCESS_DENIED_ERROR:
      return "; correct storage.mysql.user and storage.mysql.password or passwordFile, create the user, or set "
             "storage.mysql.tls if the server demands TLS";
    case ER_HOST_NOT_PRIVILEGED: return "; create the user of storage.mysql.user for the name of this host";
    case ER_BAD_DB_ERROR: return "; create the database, or correct storage.mysql.database";
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_UNKNOWN_HOST: return "; start the database server, or correct storage.mysql.host, port or socket";
    case kForbiddenAuthentication:
      return "; without TLS this node proves its password by mysql_native_password, caching_sha2_password or ed25519 "
             "only: set storage.mysql.tls, or let the user identify by one of them";
    case CR_SSL_CONNECTION_ERROR: return "; compare storage.mysql.tls with the certificate of the database server";
    case kNoSecureTransport: return "; set storage.mysql.tls to on, or to the file of an authority";
    case ER_OPTION_PREVENTS_STATEMENT:
      return "; let storage.mysql.host name the server of the database that takes writes";
    case ER_BINLOG_STMT_MODE_AND_ROW_ENGINE: return "; set binlog_format=ROW in the server's configuration";
    default: return "";
  }
}

// The library's own text about a forbidden authentication has random bytes in the place of the name.
std::string textOf(unsigned code, std::string_view doing, std::string_view reason) {
  if (code == kForbiddenAuthentication) reason = "the server asks for another proof of the password";
  std::string message("the database cannot ");
  message.append(doing).append(": ").append(reason).append(" (error ").append(std::to_string(code)).append(")");
  return message.append(remedyOf(code));
}

bool isWhole(enum_field_types type) {
  return type == MYSQL_TYPE_TINY || type == MYSQL_TYPE_SHORT || type == MYSQL_TYPE_LONG || type == MYSQL_TYPE_INT24 ||
         type == MYSQL_TYPE_LONGLONG || type == MYSQL_TYPE_NEWDECIMAL || type == MYSQL_TYPE_DECIMAL;
}

}  // namespace

bool MysqlError::isWithoutAnswer() const noexcept {
  return code_ >= CR_MIN_ERROR && code_ <= CR_MAX_ERROR && code_ != CR_COMMANDS_OUT_OF_SYNC;
}

bool MysqlError::isUnreachable() const noexcept {
  switch (code_) {
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_UNKNOWN_HOST:
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST:
    case ER_SERVER_SHUTDOWN:
    case ER_CON_COUNT_ERROR:
    case kClusterNotReady: return true;
    default: return false;
  }
}

bool MysqlError::isLost() const noexcept {
  return isWithoutAnswer() || code_ == kConnectionKilled || code_ == ER_SERVER_SHUTDOWN || isOfMessage() ||
         code_ == ER_NET_READ_ERROR || code_ == ER_NET_READ_INTERRUPTED || code_ == ER_NET_ERROR_ON_WRITE ||
         code_ == ER_NET_WRITE_INTERRUPTED || code_ == ER_NEW_ABORTING_CONNECTION || code_ == kClusterNotReady ||
         isOfReplica();
}

bool MysqlError::isOfReplica() const noexcept {
  return code_ == ER_OPTION_PREVENTS_STATEMENT || code_ == kReadOnlyMode;
}

bool MysqlError::isOfPeer() const noexcept {
  if (isWithoutAnswer()) return code_ == CR_SERVER_LOST || code_ == CR_SERVER_GONE_ERROR;
  return isLost() && !isOfMessage();
}

bool MysqlError::isOfMessage() const noexcept {
  return code_ == ER_NET_PACKET_TOO_LARGE || code_ == CR_NET_PACKET_TOO_LARGE;
}

bool MysqlError::isConflict() const noexcept {
  return code_ == ER_LOCK_DEADLOCK || code_ == ER_LOCK_WAIT_TIMEOUT || code_ == ER_CHECKREAD || code_ == kNoWait;
}

bool MysqlError::isDuplicate() const noexcept { return code_ == ER_DUP_ENTRY; }

void fail(MYSQL* database, std::string_view doing) {
  throw MysqlError(mysql_errno(database), textOf(mysql_errno(database), doing, mysql_error(database)));
}

void Statement::failHere(std::string_view doing) {
  isBroken_ = true;
  throw MysqlError(mysql_stmt_errno(handle_), textOf(mysql_stmt_errno(handle_), doing, mysql_stmt_error(handle_)));
}

Statement::Statement(MYSQL* database, std::string_view sql) : handle_(mysql_stmt_init(database)) {
  if (handle_ == nullptr) throw MysqlError(CR_OUT_OF_MEMORY, "no memory is left for a statement of the database");
  try {
    if (mysql_stmt_prepare(handle_, sql.data(), sql.size()) != 0) failHere("prepare a statement");
    parameters_.resize(mysql_stmt_param_count(handle_));
    integers_.resize(parameters_.size());
    if (MYSQL_RES* const result = mysql_stmt_result_metadata(handle_)) {
      columns_.resize(mysql_num_fields(result));
      results_.resize(columns_.size());
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        columns_[i].isInteger = isWhole(mysql_fetch_field_direct(result, static_cast<unsigned>(i))->type);
      }
      mysql_free_result(result);
    }
  } catch (const MysqlError&) {
    mysql_stmt_close(handle_);
    throw;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    MYSQL_BIND& bind = results_[i];
    bind.buffer_type = column.isInteger ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
    bind.buffer = column.isInteger ? &column.integer : nullptr;
    bind.buffer_length = column.isInteger ? sizeof column.integer : 0;
    bind.length = &column.length;
    bind.is_null = &column.null;
    bind.error = &column.error;
  }
}

void Statement::run(std::vector<MYSQL_BIND>& parameters, unsigned rows) {
  if (parameters.size() != parameters_.size()) throw Error("a row has another number of values than its statement");
  const unsigned together = rows > 1 ? rows : 0;
  if (mysql_stmt_attr_set(handle_, STMT_ATTR_ARRAY_SIZE, &together) != 0 ||
      mysql_stmt_bind_param(handle_, parameters.data()) != 0) {
    failHere("bind values");
  }
  if (mysql_stmt_execute(handle_) != 0) failHere("run a statement");
}

Statement::~Statement() { mysql_stmt_close(handle_); }

std::string CurrentRow::text(std::size_t column) const {
  const Statement::Column& place = statement_.columns_[column];
  if (place.null != 0 || place.length == 0) return {};
  std::string text(place.length, '\0');
  unsigned long length = 0;
  my_bool null = 0;
  my_bool error = 0;
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_BLOB;
  bind.buffer = text.data();
  bind.buffer_length = text.size();
  bind.length = &length;
  bind.is_null = &null;
  bind.error = &error;
  if (mysql_stmt_fetch_column(statement_.handle_, &bind, static_cast<unsigned>(column), 0) != 0) {
    statement_.failHere("read a column");
  }
  return text;
}

Query::~Query() {
  if (executed_ && !statement_.isBroken()) mysql_stmt_free_result(statement_.handle_);
}

MYSQL_BIND& Query::nextParameter() {
  if (bound_ == statement_.parameters_.size()) throw Error("a statement has fewer parameters than values");
  MYSQL_BIND& bind = statement_.parameters_[bound_++];
  bind = MYSQL_BIND{};
  return bind;
}

void Query::putInteger(std::int64_t value) {
  MYSQL_BIND& bind = nextParameter();
  std::int64_t& place = statement_.integers_[bound_ - 1];
  place = value;
  bind.buffer_type = MYSQL_TYPE_LONGLONG;
  bind.buffer = &place;
}

void Query::put(std::string_view text) {
  MYSQL_BIND& bind = nextParameter();
  bind.buffer_type = MYSQL_TYPE_BLOB;
  bind.buffer = const_cast<char*>(text.data() == nullptr ? "" : text.data());
  bind.buffer_length = text.size();
}

void Query::put(OrNull value) {
  if (!value.text.empty()) return put(value.text);
  nextParameter().buffer_type = MYSQL_TYPE_NULL;
}

void Query::execute() {
  MYSQL_STMT* const handle = statement_.handle_;
  if (bound_ != statement_.parameters_.size()) throw Error("a statement has more parameters than values");
  const unsigned single = 0;  // a batch of the same statement may have left another number of rows
  if (mysql_stmt_attr_set(handle, STMT_ATTR_ARRAY_SIZE, &single) != 0 ||
      (bound_ > 0 && mysql_stmt_bind_param(handle, statement_.parameters_.data()) != 0)) {
    statement_.failHere("bind values");
  }
  if (mysql_stmt_execute(handle) != 0) statement_.failHere("run a statement");
  executed_ = true;
  if (statement_.columns_.empty()) return;
  if (mysql_stmt_bind_result(handle, statement_.results_.data()) != 0) statement_.failHere("bind columns");
  if (mysql_stmt_store_result(handle) != 0) statement_.failHere("read rows");
}

bool Query::next() {
  if (!executed_) execute();
  const int result = mysql_stmt_fetch(statement_.handle_);
  if (result == MYSQL_NO_DATA) return false;
  if (result != 0 && result != MYSQL_DATA_TRUNCATED) statement_.failHere("read a row");
  for (Statement::Column& column : statement_.columns_) {
    if (column.isInteger && column.null != 0) column.integer = 0;
  }
  return true;
}

std::size_t Query::run() {
  execute();
  return static_cast<std::size_t>(mysql_stmt_affected_rows(statement_.handle_));
}

std::int64_t Query::runInsert() {
  execute();
  return static_cast<std::int64_t>(mysql_stmt_insert_id(statement_.handle_));
}

}  // namespace jobq::mysql
