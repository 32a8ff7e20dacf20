#include "core/http/serving_threads.h"

#include <Poco/Exception.h>
#include <Poco/Thread.h>

#include "core/base/service.h"
#include "core/http/connection.h"

namespace jobq {
namespace {

constexpr int kStack = 256 * 1024;  // thousands of them may be needed
constexpr std::chrono::seconds kIdleLife{60};

}  // namespace

ServingThreads::ServingThreads(std::size_t most, Serve serve) : most_(most), serve_(std::move(serve)) {}

ServingThreads::~ServingThreads() { stop(); }

void ServingThreads::submit(std::unique_ptr<Connection> connection) {
  Threads ended;
  Lock lock(mutex_);
  if (stopping_) return;
  line_.push_back(std::move(connection));
  if (line_.size() <= idle_) {
    arrived_.notifyOne();
    return;
  }
  if (threads_.size() < most_) addThread();
  noteLoad();
  ended.swap(ended_);
  lock.unlock();
  for (const auto& thread : ended) thread->join();
}

void ServingThreads::addThread() {
  auto thread = std::make_unique<Poco::Thread>();
  thread->setStackSize(kStack);
  const auto self = threads_.insert(threads_.end(), std::move(thread));
  try {
    (*self)->startFunc([this, self] { work(self); });
  } catch (const Poco::Exception&) {
    // The machine has no thread left to give: the connection stands in line for those that are there.
    threads_.erase(self);
  }
}

void ServingThreads::work(Threads::iterator self) {
  nameThread("http");
  while (auto connection = next()) serve_(std::move(connection));
  Lock lock(mutex_);
  ended_.splice(ended_.end(), threads_, self);
  arrived_.notifyAll();
}

std::unique_ptr<Connection> ServingThreads::next() {
  const auto until = std::chrono::steady_clock::now() + kIdleLife;
  Lock lock(mutex_);
  ++idle_;
  noteLoad();
  while (line_.empty() && !stopping_) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) break;
    arrived_.waitFor(mutex_, until - now);
  }
  --idle_;
  noteLoad();
  if (line_.empty() || stopping_) return nullptr;
  auto connection = std::move(line_.front());
  line_.pop_front();
  return connection;
}

void ServingThreads::noteLoad() {
  const bool crowded = (threads_.size() - idle_) * 2 > most_;
  if (crowded_ != crowded) crowded_ = crowded;
}

void ServingThreads::stop() {
  std::deque<std::unique_ptr<Connection>> dropped;
  Threads ended;
  {
    Lock lock(mutex_);
    stopping_ = true;
    dropped.swap(line_);
    arrived_.notifyAll();
    while (!threads_.empty()) arrived_.wait(mutex_);
    ended.swap(ended_);
  }
  for (const auto& thread : ended) thread->join();
}

}  // namespace jobq
