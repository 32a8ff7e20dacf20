#include "reads/readers.h"

namespace jobq::sqlite {

Readers::Readers(const std::filesystem::path& file, std::size_t connections) {
  Lock lock(mutex_);
  idle_.reserve(connections);
  for (std::size_t i = 0; i < connections; ++i) {
    idle_.push_back(std::make_unique<Connection>(file, Connection::Access::readOnly));
  }
}

// The connection that was returned last is used first: its pages are cached.
std::unique_ptr<Connection> Readers::borrow() {
  Lock lock(mutex_);
  while (idle_.empty()) returned_.wait(mutex_);
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void Readers::release(std::unique_ptr<Connection> connection) {
  {
    Lock lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  returned_.notifyOne();
}

}  // namespace jobq::sqlite
