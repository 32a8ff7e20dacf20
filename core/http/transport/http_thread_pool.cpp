#include "core/http/transport/http_thread_pool.h"

#include <Poco/Exception.h>
#include <Poco/Thread.h>

#include <utility>

#include "core/base/service.h"
#include "core/http/transport/connection.h"

namespace jobq {
namespace {

constexpr int kStack = 1024 * 1024;  // scripts of filters nest; untouched pages of the stack take no memory
constexpr std::chrono::seconds kKeptLife{60};
constexpr std::chrono::seconds kSurplusLife{1};

}  // namespace

HttpThreadPool::HttpThreadPool(Size size, ConnectionHandler& handler) : size_(size), handler_(handler) {}

HttpThreadPool::~HttpThreadPool() { stop(); }

std::unique_ptr<Connection> HttpThreadPool::submit(std::unique_ptr<Connection> connection) {
  Threads ended;
  Lock lock(mutex_);
  if (stopping_) return connection;
  queue_.push_back(std::move(connection));
  if (!resting_.empty()) {
    IdleThread& latest = *resting_.back();
    resting_.pop_back();
    latest.called = true;
    latest.over.notifyOne();
    return nullptr;
  }
  if (threads_.size() < size_.most) addThread();
  noteLoad();
  ended.swap(ended_);
  lock.unlock();
  for (const auto& thread : ended) thread->join();
  return nullptr;
}

void HttpThreadPool::addThread() {
  auto thread = std::make_unique<Poco::Thread>();
  thread->setStackSize(kStack);
  const auto self = threads_.insert(threads_.end(), std::move(thread));
  try {
    (*self)->startFunc([this, self] { work(self); });
  } catch (const Poco::Exception&) {
    // The machine has no thread left: the connection stays queued for the existing threads.
    threads_.erase(self);
  }
}

void HttpThreadPool::work(Threads::iterator self) {
  nameThread("http");
  while (auto connection = next()) handler_.serve(std::move(connection));
  Lock lock(mutex_);
  ended_.splice(ended_.end(), threads_, self);
  left_.notifyAll();
}

std::unique_ptr<Connection> HttpThreadPool::next() {
  Lock lock(mutex_);
  // A thread that has just finished may have taken the connection before the notified thread.
  while (queue_.empty() && !stopping_ && waitIdle()) {
  }
  if (queue_.empty() || stopping_) return nullptr;
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
  const bool busy = (threads_.size() - resting_.size()) * 2 > size_.most;
  if (threadsBusy_ != busy) threadsBusy_ = busy;
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
