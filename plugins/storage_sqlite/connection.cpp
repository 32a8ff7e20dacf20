#include "connection.h"

#include <Poco/Data/SQLite/Connector.h>
#include <Poco/Data/SQLite/Utility.h>
#include <Poco/Data/Session.h>
#include <Poco/Exception.h>

#include <new>

#include "disk/log_writes.h"
#include "disk/page_cache.h"

namespace jobq::sqlite {
namespace {

constexpr int kBusyMillis = 5'000;

/// Seconds for which Poco retries to open a file; Poco's default is 60. A fault of the file is permanent, and waits for
/// a lock have a limit of their own (`kBusyMillis`).
constexpr std::size_t kOpenSeconds = 0;

/// SQLite reads the name as a URI, where these bytes have a meaning.
std::string uriOf(const std::filesystem::path& file, Connection::Access access) {
  std::string uri("file:");
  for (const char c : file.string()) {
    switch (c) {
      case '%': uri += "%25"; break;
      case '?': uri += "%3f"; break;
      case '#': uri += "%23"; break;
      default: uri += c;
    }
  }
  return uri + (access == Connection::Access::readOnly ? "?mode=ro" : std::string("?mode=rw&vfs=") + logWritesLayer());
}

/// A connection is used by one thread at a time, so SQLite needs no lock around each of its calls. No code asks how
/// much memory SQLite uses, and counting the memory would mean a lock around each allocation. SQLite refuses the
/// settings when other code of the process has used SQLite before; the storage is then slower, and equally correct.
void configureOnce() {
  static const bool kDone = [] {
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 400);
    (void)installPageCache();
    return true;
  }();
  (void)kDone;
}

/// Implements the SQL function host_of(url). The data of the function are the ReceiverNames.
void hostOfUrl(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto& names = *static_cast<const ReceiverNames*>(sqlite3_user_data(context));
  const auto* text = static_cast<const char*>(sqlite3_value_blob(arguments[0]));
  const auto length = static_cast<std::size_t>(sqlite3_value_bytes(arguments[0]));
  try {
    const std::string host = names.nameOf(std::string_view(text == nullptr ? "" : text, length));
    sqlite3_result_text64(context, host.data(), host.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

std::unique_ptr<Poco::Data::Session> openSession(const std::filesystem::path& file, Connection::Access access) {
  configureOnce();
  Poco::Data::SQLite::Connector::registerConnector();
  try {
    return std::make_unique<Poco::Data::Session>(Poco::Data::SQLite::Connector::KEY, uriOf(file, access), kOpenSeconds);
  } catch (const Poco::Exception& error) {
    throw StorageError("cannot open " + file.string() + ": " + error.displayText());
  }
}

}  // namespace

Connection::Connection(const std::filesystem::path& file, Access access)
    : session_(openSession(file, access)), handle_(Poco::Data::SQLite::Utility::dbHandle(*session_)) {
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kBusyMillis);
  sqlite3_wal_autocheckpoint(handle_, 0);
  try {
    prepare(access);
  } catch (const SqliteError& error) {
    throw SqliteError(error.code(), "cannot open " + file.string() + ": " + error.what());
  }
}

void Connection::prepare(Access access) {
  execute("PRAGMA temp_store=MEMORY");
  if (access == Access::readOnly) {
    execute("PRAGMA query_only=1");
    execute("PRAGMA cache_size=-4000");
  } else {
    execute("PRAGMA cache_size=-32000");
    execute("PRAGMA secure_delete=FAST");
  }
}

void Connection::setReceiverNames(const ReceiverNames& names) {
  constexpr int kPure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  void* const data = const_cast<ReceiverNames*>(&names);  // SQLite passes the pointer back unchanged
  if (sqlite3_create_function_v2(handle_, "host_of", 1, kPure, data, hostOfUrl, nullptr, nullptr, nullptr) !=
      SQLITE_OK) {
    fail(handle_, "register host_of");
  }
}

// Statements must be finalized before their session is closed: members are destroyed in reverse order.
Connection::~Connection() = default;

Query Connection::query(const char* sql) {
  auto& statement = statements_[sql];
  if (!statement) statement = std::make_unique<Statement>(handle_, sql);
  return Query(statement->handle());
}

void Connection::execute(const std::string& sql) {
  const Statement once(handle_, sql.c_str());
  Query(once.handle()).run();
}

std::int64_t Connection::number(const char* sql) {
  Query question = query(sql);
  return question.next() ? question.integer(0) : 0;
}

Snapshot::Snapshot(Connection& connection) : connection_(connection) { connection_.query("BEGIN").run(); }

Snapshot::~Snapshot() {
  try {
    connection_.query("COMMIT").run();
  } catch (const StorageError&) {
    // A failed read has ended the transaction already, and its own exception is being thrown.
  }
}

}  // namespace jobq::sqlite
