#include "transfer_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <variant>

#include "incoming_answer.h"
#include "jobq/call_descriptors.h"
#include "jobq/error.h"
#include "reasons.h"
#include "web_url.h"

namespace jobq::http_client {
namespace {

/// libcurl 7.88 goes on to the next address of a host only in a call for all transfers, so the loop makes such a call
/// at this interval.
constexpr Millis kAddressInterval{100};

int descriptor(int opened, const char* what) {
  if (opened < 0) throw Error(std::string("no ") + what + " for transfers can be opened: " + reasonOfErrno(errno));
  return opened;
}

long mostConnections() {
  rlimit limit{};
  return static_cast<long>(
      connectionsForCalls(::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY));
}

}  // namespace

/// A transfer with all that libcurl needs until its end.
class TransferLoop::Transfer {
 public:
  Transfer(TransferLoop& loop, Request request, WebUrl url, std::stop_token stop, TransferReceiver& receiver)
      : request_(std::move(request)),
        url_(std::move(url)),
        answer_(request_.bodyBounds, false, 0),
        exchange_(request_, url_, answer_, Connections::kept),
        receiver_(receiver),
        stop_(std::move(stop)),
        onStop_(stop_, NoteStop{loop}) {
    exchange_.setUp(std::chrono::steady_clock::now() + request_.timeout);
  }

  CURL* handle() const { return exchange_.handle(); }
  bool isStopped() const { return stop_.stop_requested(); }
  std::optional<Fault> faultOf(CURLcode code) const { return exchange_.faultOf(code); }
  Outcome outcome(std::optional<Fault> fault) { return outcomeOf(url_, answer_, std::move(fault)); }
  TransferReceiver& receiver() const { return receiver_; }

  bool hasToEnd = false;  // stopped before the last events were read

 private:
  struct NoteStop {
    TransferLoop& loop;
    void operator()() const noexcept {
      loop.stopRequested_ = true;
      loop.wake();
    }
  };

  const Request request_;
  const WebUrl url_;
  IncomingAnswer answer_;
  Exchange exchange_;
  TransferReceiver& receiver_;
  const std::stop_token stop_;
  const std::stop_callback<NoteStop> onStop_;
};

TransferLoop::TransferLoop(TransferPolicy policy, const char* threadName)
    : policy_(std::move(policy)),
      poller_(descriptor(::epoll_create1(EPOLL_CLOEXEC), "epoll descriptor")),
      wakeUp_(descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "event descriptor")),
      multi_(newMulti()) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakeUp_;
  descriptor(::epoll_ctl(poller_, EPOLL_CTL_ADD, wakeUp_, &event), "event");
  thread_ = std::thread([this, threadName] {
    pthread_setname_np(pthread_self(), threadName);
    run();
  });
}

TransferLoop::~TransferLoop() {
  {
    Lock lock(mutex_);
    ending_ = true;
  }
  wake();
  thread_.join();
  multi_.reset();  // closes the kept connections
  ::close(wakeUp_);
  ::close(poller_);
}

TransferLoop::Multi TransferLoop::newMulti() {
  prepareTransfers();
  Multi multi(curl_multi_init());
  if (multi == nullptr) throw std::bad_alloc();
  // The connections in use count; beyond the bound, libcurl closes the connection that is idle for the longest time.
  curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, mostConnections());
  curl_multi_setopt(multi.get(), CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(multi.get(), CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi.get(), CURLMOPT_TIMERFUNCTION, setTimer);
  curl_multi_setopt(multi.get(), CURLMOPT_TIMERDATA, this);
  return multi;
}

void TransferLoop::wake() noexcept {
  constexpr std::uint64_t kOne = 1;
  // The counter of the descriptor is full only if the thread has to wake up already.
  [[maybe_unused]] const ssize_t written = ::write(wakeUp_, &kOne, sizeof kOne);
}

void TransferLoop::begin(Request request, std::stop_token stop, TransferReceiver& receiver) {
  request.allowPrivate = policy_.allowPrivate;
  request.authorities = policy_.authorities;
  auto checked = urlOf(request);
  if (auto* fault = std::get_if<Fault>(&checked)) return receiver.ended({{}, {}, std::move(*fault)});
  auto transfer = std::make_unique<Transfer>(*this, std::move(request), std::move(std::get<WebUrl>(checked)),
                                             std::move(stop), receiver);
  bool isFirst = false;
  {
    Lock lock(mutex_);
    isFirst = waiting_.empty();
    waiting_.push_back(std::move(transfer));
  }
  if (isFirst) wake();
}

// Ends transfers as stopped.
template <class Condition>
void TransferLoop::endWhere(Condition condition) {
  for (auto each = running_.begin(); each != running_.end();) {
    if (!condition(*each->second)) {
      ++each;
      continue;
    }
    curl_multi_remove_handle(multi_.get(), each->first);
    report(std::move(each->second), FaultKind::stopped);
    each = running_.erase(each);
  }
}

void TransferLoop::run() {
  while (addWaiting()) {
    const bool areStopped = noteStops();
    // Bytes that came before a stop are read first: an answer may be complete.
    awaitEvents(areStopped ? 0 : longestWait());
    endCompleted();
    if (areStopped) endWhere([](const Transfer& each) { return each.hasToEnd; });
  }
}

// Gives the waiting transfers to libcurl. Returns false if the loop ends; then all transfers have ended.
bool TransferLoop::addWaiting() {
  std::vector<std::unique_ptr<Transfer>> fresh;
  bool isEnding = false;
  {
    Lock lock(mutex_);
    fresh.swap(waiting_);
    isEnding = ending_;
  }
  for (auto& each : fresh) {
    if (isEnding || each->isStopped()) {
      report(std::move(each), FaultKind::stopped);
    } else {
      add(std::move(each));
    }
  }
  if (!isEnding) return true;
  endWhere([](const Transfer&) { return true; });
  return false;
}

void TransferLoop::add(std::unique_ptr<Transfer> transfer) {
  CURL* const handle = transfer->handle();
  try {
    running_.try_emplace(handle, nullptr);
  } catch (const std::bad_alloc&) {
    return report(std::move(transfer), FaultKind::outOfMemory);
  }
  running_[handle] = std::move(transfer);
  keepsConnections_ = true;
  if (curl_multi_add_handle(multi_.get(), handle) != CURLM_OK) end(handle, CURLE_OUT_OF_MEMORY);
}

// Marks the transfers that have been stopped. Returns false if there are none.
bool TransferLoop::noteStops() {
  if (!stopRequested_.exchange(false)) return false;
  bool any = false;
  for (const auto& [handle, transfer] : running_) {
    transfer->hasToEnd = transfer->isStopped();
    any = any || transfer->hasToEnd;
  }
  return any;
}

// Returns the longest time to wait for events in milliseconds; -1 if only wake() ends the wait.
int TransferLoop::longestWait() const {
  if (running_.empty()) return keepsConnections_ ? static_cast<int>(kMostIdleSeconds * 1'000) : -1;
  if (!timerAt_) return static_cast<int>(kAddressInterval.count());
  const auto left = std::chrono::ceil<Millis>(*timerAt_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, Millis(0), kAddressInterval).count());
}

void TransferLoop::awaitEvents(int waitMs) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(poller_, events.data(), static_cast<int>(events.size()), waitMs);
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wakeUp_) {
      std::uint64_t wakes = 0;
      [[maybe_unused]] const ssize_t got = ::read(wakeUp_, &wakes, sizeof wakes);
      continue;
    }
    // A read finds the reason of a broken connection.
    const int bits = ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                     ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(multi_.get(), event.data.fd, bits, &running);
  }
  const Moment now = std::chrono::steady_clock::now();
  if (timerAt_ && *timerAt_ <= now) {
    timerAt_.reset();
    curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  }
  if (!running_.empty() && nextAddressAt_ <= now) {
    nextAddressAt_ = now + kAddressInterval;
    CURL_IGNORE_DEPRECATION(curl_multi_socket_all(multi_.get(), &running);)
  }
  if (count == 0 && running_.empty()) closeConnections();
}

// Closes the kept connections, which libcurl does only at a later transfer.
void TransferLoop::closeConnections() {
  try {
    multi_ = newMulti();
    keepsConnections_ = false;
  } catch (const std::bad_alloc&) {
    // The next rest closes the connections.
  }
}

void TransferLoop::endCompleted() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg == CURLMSG_DONE) end(message->easy_handle, message->data.result);
  }
}

void TransferLoop::end(CURL* handle, CURLcode code) {
  auto ended = running_.extract(handle);
  std::optional<Fault> fault;
  try {
    fault = ended.mapped()->faultOf(code);
  } catch (const std::bad_alloc&) {
    fault = Fault{FaultKind::outOfMemory, {}};
  }
  curl_multi_remove_handle(multi_.get(), handle);
  report(std::move(ended.mapped()), std::move(fault));
}

// The thread of the loop has no caller that could get an exception.
void TransferLoop::report(std::unique_ptr<Transfer> transfer, FaultKind kind) noexcept {
  std::optional<Fault> fault = Fault{kind, {}};
  try {
    if (kind == FaultKind::stopped) fault = stoppedFault();
  } catch (const std::bad_alloc&) {
    // The kind says enough.
  }
  report(std::move(transfer), std::move(fault));
}

void TransferLoop::report(std::unique_ptr<Transfer> transfer, std::optional<Fault> fault) noexcept {
  TransferReceiver& receiver = transfer->receiver();
  Outcome outcome;
  try {
    outcome = transfer->outcome(std::move(fault));
  } catch (const std::bad_alloc&) {
    outcome.fault = Fault{FaultKind::outOfMemory, {}};
  }
  transfer.reset();  // the texts of the request are valid until ended() only
  receiver.ended(std::move(outcome));
}

// Watches a socket of libcurl. A socket that cannot be watched is left to the timeout of its transfer.
int TransferLoop::watch(CURL*, curl_socket_t socket, int what, void* self, void* isWatched) noexcept {
  auto& loop = *static_cast<TransferLoop*>(self);
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(loop.poller_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{};
  event.events = ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  event.data.fd = socket;
  const int usual = isWatched == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  const int other = isWatched == nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  // libcurl 7.88 does not report the socket of a host's next address if the socket gets the number of the previous
  // socket.
  if (::epoll_ctl(loop.poller_, usual, socket, &event) != 0) ::epoll_ctl(loop.poller_, other, socket, &event);
  if (isWatched == nullptr) curl_multi_assign(loop.multi_.get(), socket, self);
  return 0;
}

int TransferLoop::setTimer(CURLM*, long waitMs, void* self) noexcept {
  auto& timerAt = static_cast<TransferLoop*>(self)->timerAt_;
  timerAt.reset();
  if (waitMs >= 0) timerAt = std::chrono::steady_clock::now() + Millis(waitMs);
  return 0;
}

}  // namespace jobq::http_client
