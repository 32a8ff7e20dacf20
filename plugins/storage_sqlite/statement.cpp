#include "statement.h"

namespace jobq::sqlite {

void fail(sqlite3* database, std::string_view doing) {
  const int code = sqlite3_extended_errcode(database);
  std::string message("the database cannot ");
  message.append(doing).append(": ").append(sqlite3_errmsg(database));
  message.append(" (SQLite ").append(std::to_string(code)).append(")");
  const int kind = code & 0xff;
  if (kind == SQLITE_FULL) message.append("; free space on the disk of data.dir");
  if (kind == SQLITE_BUSY) message.append("; another program holds the write lock");
  if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) {
    message.append("; the file is damaged: stop the server and restore a copy of data.dir, into an empty folder");
  }
  throw SqliteError(code, message);
}

BlobWriter::BlobWriter(sqlite3* database, const char* table, const char* column, std::int64_t row)
    : database_(database) {
  if (sqlite3_blob_open(database, "main", table, column, row, 1, &blob_) != SQLITE_OK) fail(database, "open a body");
}

void BlobWriter::write(std::uint64_t at, std::string_view bytes) {
  const int result = sqlite3_blob_write(blob_, bytes.data(), static_cast<int>(bytes.size()), static_cast<int>(at));
  if (result == SQLITE_OK) return;
  throw SqliteError(result, std::string("the database cannot write a body: ") + sqlite3_errstr(result));
}

void BlobWriter::close() {
  if (sqlite3_blob_close(std::exchange(blob_, nullptr)) != SQLITE_OK) fail(database_, "write a body");
}

Statement::Statement(sqlite3* database, const char* sql) {
  if (sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr) != SQLITE_OK) {
    fail(database, "prepare a statement");
  }
}

bool Query::next() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  fail(sqlite3_db_handle(statement_), "run a statement");
}

std::string CurrentRow::text(int column) const {
  // The pointer is read first, the length afterwards: the conversion of a value would change its length.
  const void* data = sqlite3_column_blob(statement_, column);
  const auto length = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), length);
}

// A view without data would be bound as NULL.
void ValueBinder::put(int position, std::string_view text) {
  const char* data = text.data() == nullptr ? "" : text.data();
  check(sqlite3_bind_text64(statement_, position, data, text.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void ValueBinder::put(int position, Bytes bytes) {
  const char* data = bytes.view.data() == nullptr ? "" : bytes.view.data();
  check(sqlite3_bind_blob64(statement_, position, data, bytes.view.size(), SQLITE_STATIC));
}

void ValueBinder::put(int position, Room room) { check(sqlite3_bind_zeroblob64(statement_, position, room.size)); }

void ValueBinder::putInteger(int position, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, position, value));
}

void ValueBinder::check(int result) const {
  if (result != SQLITE_OK) fail(sqlite3_db_handle(statement_), "bind a value");
}

}  // namespace jobq::sqlite
