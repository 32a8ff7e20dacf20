// The connections for reading. A read connection cannot write (mode=ro, query_only), never starts a checkpoint, and
// holds a snapshot only during a call, so the write-ahead log can always be emptied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "connection.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {

/// A pool of read connections. Any thread may call read(); the call blocks while every connection is busy.
class Readers {
 public:
  /// Opens `connections` connections to the file. Throws StorageError.
  Readers(const std::filesystem::path& file, std::size_t connections);

  /// Calls `question(Connection&)` with a connection reserved for the call and returns the result. Throws the
  /// exceptions of `question`.
  template <class Question>
  auto read(Question&& question) {
    const Loan loan(*this);
    return std::forward<Question>(question)(*loan.connection);
  }

 private:
  struct Loan {
    explicit Loan(Readers& owner) : readers(owner), connection(owner.borrow()) {}
    ~Loan() { readers.release(std::move(connection)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    Readers& readers;
    std::unique_ptr<Connection> connection;
  };

  std::unique_ptr<Connection> borrow();
  void release(std::unique_ptr<Connection> connection);

  Mutex mutex_;
  Condition returned_;
  std::vector<std::unique_ptr<Connection>> idle_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
