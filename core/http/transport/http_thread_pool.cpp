#include "core/http/transport/http_thread_pool.h"

#include <Poco/Thread.h>

#include <exception>
#include <utility>

#include "core/base/service.h"
#include "core/http/transport/connection.h"
#include "core/process/process_signals.h"

namespace jobq {
namespace {

constexpr int kStack = 1024 * 1024;  // scripts of filters nest, SQLite commits; untouched pages take no memory
constexpr std::chrono::seconds kKeptLife{60};
constexpr std::chrono::seconds kSurplusLife{1};

}  // namespace

HttpThreadPool::HttpThreadPool(Size size, ConnectionHandler& handler, Crowd& crowd)
    : size_(size), handler_(handler), crowd_(crowd) {
  Lock lock(mutex_);
  resting_.reserve(size.most);  // a thread without work must not fail for lack of memory
}

HttpThreadPool::~HttpThreadPool() { stop(); }

std::unique_ptr<Connection> HttpThreadPool::submit(std::unique_ptr<Connection>&& connection) {
  Threads ended;
  Lock lock(mutex_);
  if (stopping_) return std::move(connection);
  queue_.emplace_back();  // may throw: the caller has the connection then
  queue_.back() = std::move(connection);
  if (!resting_.empty()) {
    IdleThread& latest = *resting_.back();
    resting_.pop_back();
    latest.called = true;
    latest.over.notifyOne();
    return nullptr;
  }
  if (threads_.size() < size_.most && !addThread() && threads_.empty()) {
    auto refused = std::move(queue_.back());
    queue_.pop_back();
    ended.swap(ended_);
    lock.unlock();
    for (const auto& thread : ended) thread->join();
    return refused;
  }
  noteLoad();
  ended.swap(ended_);
  lock.unlock();
  for (const auto& thread : ended) thread->join();
  return nullptr;
}

bool HttpThreadPool::addThread() noexcept {
  Threads added;
  try {
    added.push_back(std::make_unique<Poco::Thread>());
    const auto self = added.begin();
    (*self)->setStackSize(kStack);
    (*self)->startFunc([this, self] { work(self); });
  } catch (const std::exception&) {
    return false;
  }
  threads_.splice(threads_.end(), added);
  return true;
}

void HttpThreadPool::work(Threads::iterator self) {
  nameThread("http");
  unblockSignals();  // a filter may start a program
  while (auto connection = next(self)) handler_.serve(std::move(connection));
}

// Returns null if the thread has to end. The thread leaves the list of threads under the lock of that decision, so that
// submit() does not count on a thread that ends.
std::unique_ptr<Connection> HttpThreadPool::next(Threads::iterator self) {
  Lock lock(mutex_);
  // A thread that has just finished may have taken the connection before the notified thread.
  while (queue_.empty() && !stopping_ && waitIdle()) {
  }
  if (queue_.empty() || stopping_) {
    ended_.splice(ended_.end(), threads_, self);
    left_.notifyAll();
    return nullptr;
  }
  auto connection = std::move(queue_.front());
  queue_.pop_front();
  return connection;
}

// Returns false if no connection came in the time that the thread stays without work.
bool HttpThreadPool::waitIdle() {
  const auto began = std::chrono::steady_clock::now();
  IdleThread self;
  resting_.push_back(&self);
  noteLoad();
  while (!self.called && !stopping_) {
    const auto now = std::chrono::steady_clock::now();
    const auto until = began + (threads_.size() > size_.kept ? kSurplusLife : kKeptLife);
    if (now >= until) break;
    self.over.waitFor(mutex_, until - now);
  }
  if (!self.called) std::erase(resting_, &self);
  noteLoad();
  return self.called;
}

void HttpThreadPool::noteLoad() {
  const std::size_t number = threads_.size() - resting_.size();
  const bool busy = number * 2 > size_.most;
  if (threadsBusy_ != busy) threadsBusy_ = busy;
  crowd_.noteThreads(number);
}

std::deque<std::unique_ptr<Connection>> HttpThreadPool::close() {
  Lock lock(mutex_);
  stopping_ = true;
  for (IdleThread* each : resting_) each->over.notifyOne();
  return std::exchange(queue_, {});
}

void HttpThreadPool::stop() {
  close();
  Threads ended;
  {
    Lock lock(mutex_);
    while (!threads_.empty()) left_.wait(mutex_);
    ended.swap(ended_);
  }
  for (const auto& thread : ended) thread->join();
}

}  // namespace jobq
