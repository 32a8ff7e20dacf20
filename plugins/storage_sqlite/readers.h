// The connections that read. They cannot write (mode=ro, query_only), never checkpoint, and hold a snapshot only while
// a question is being answered, so the writer's log can always be emptied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "connection.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {

/// Any thread; a question waits while every connection is busy.
class Readers {
 public:
  Readers(const std::filesystem::path& file, std::size_t connections);

  /// Calls `question(Connection&)` with a connection of its own and returns the answer.
  template <class Question>
  auto read(Question&& question) {
    const Loan loan(*this);
    return std::forward<Question>(question)(*loan.connection);
  }

 private:
  struct Loan {
    explicit Loan(Readers& owner) : readers(owner), connection(owner.take()) {}
    ~Loan() { readers.giveBack(std::move(connection)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    Readers& readers;
    std::unique_ptr<Connection> connection;
  };

  std::unique_ptr<Connection> take();
  void giveBack(std::unique_ptr<Connection> connection);

  Mutex mutex_;
  Condition returned_;
  std::vector<std::unique_ptr<Connection>> idle_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
