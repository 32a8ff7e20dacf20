#include "connection/row_batch.h"

namespace jobq::mysql {

void RowBatch::put(Column& column, Lent value) {
  column.texts.push_back(const_cast<char*>(value.text.data() == nullptr ? "" : value.text.data()));
  column.lengths.push_back(value.text.size());
}

void RowBatch::clear() noexcept {
  for (Column& column : columns_) {
    column.integers.clear();
    column.texts.clear();
    column.lengths.clear();
  }
  copies_.clear();
  rows_ = 0;
}

std::vector<MYSQL_BIND> RowBatch::bindsOf(std::size_t row, bool together) {
  std::vector<MYSQL_BIND> binds(columns_.size());
  for (std::size_t i = 0; i < binds.size(); ++i) {
    Column& column = columns_[i];
    MYSQL_BIND& bind = binds[i];
    bind = MYSQL_BIND{};
    if (column.texts.empty()) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = column.integers.data() + row;
      continue;
    }
    bind.buffer_type = MYSQL_TYPE_BLOB;
    bind.length = column.lengths.data() + row;
    // The client library expects the addresses of the texts if it sends several rows.
    bind.buffer = together ? static_cast<void*>(column.texts.data() + row) : column.texts[row];
    bind.buffer_length = column.lengths[row];
  }
  return binds;
}

void RowBatch::send(Statement& statement, bool together) {
  if (rows_ > 1 && together) {
    std::vector<MYSQL_BIND> binds = bindsOf(0, true);
    statement.run(binds, static_cast<unsigned>(rows_));
  } else {
    for (std::size_t row = 0; row < rows_; ++row) {
      std::vector<MYSQL_BIND> binds = bindsOf(row, false);
      statement.run(binds, 1);
    }
  }
  clear();
}

}  // namespace jobq::mysql
