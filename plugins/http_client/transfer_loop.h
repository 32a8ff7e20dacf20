// Transfers on one thread with libcurl's multi interface, for callers with many transfers to the same servers: a
// transfer waits without a thread, and its connection is kept for the next transfer to the same server.
//
// A kept connection leads to an address that the address guard has permitted, and is used only for the scheme, host and
// port for which it was opened: libcurl compares them, and all transfers of a loop have one policy. A connection is
// kept for kMostIdleSeconds without a transfer and for kMostSecondsOfConnection in all, so a server that has moved is
// found by its name. If a kept connection breaks before a line of the answer has come, libcurl sends the request again
// at once, within the same timeout: the server had closed the connection in the moment of the request.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "exchange.h"
#include "jobq/mutex.h"
#include "transfer.h"

namespace jobq::http_client {

/// The end of a transfer of a TransferLoop.
class TransferReceiver {
 public:
  /// Called once for each transfer, on any thread. Returns soon: other transfers wait meanwhile.
  virtual void ended(Outcome outcome) noexcept = 0;

 protected:
  ~TransferReceiver() = default;
};

/// The policy of all transfers of a loop, as in Request.
struct TransferPolicy {
  bool allowPrivate = false;
  std::string authorities;
};

/// Any thread may begin transfers, any number at once.
class TransferLoop {
 public:
  /// `threadName` has up to 15 characters. Throws Error if the system gives no descriptor or libcurl no handle, and
  /// std::system_error if the thread cannot be started.
  TransferLoop(TransferPolicy policy, const char* threadName);
  /// Stops the transfers that have not ended.
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  /// Begins a transfer without redirects and returns. The policy of the loop takes the place of the request's. The
  /// viewed texts and `receiver` stay valid until the end of the transfer, which may come before begin() returns. Ends
  /// within 100 ms after a request on `stop`. Throws std::bad_alloc; then the transfer has not begun.
  void begin(Request request, std::stop_token stop, TransferReceiver& receiver);

 private:
  class Transfer;
  struct FreeMulti {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
  };
  using Multi = std::unique_ptr<CURLM, FreeMulti>;
  using Moment = std::chrono::steady_clock::time_point;

  Multi newMulti();
  void wake() noexcept;
  void run();
  bool addWaiting();
  void add(std::unique_ptr<Transfer> transfer);
  bool noteStops();
  template <class Condition>
  void endWhere(Condition condition);
  int longestWait() const;
  void awaitEvents(int waitMs);
  void closeConnections();
  void endCompleted();
  void end(CURL* handle, CURLcode code);
  static void report(std::unique_ptr<Transfer> transfer, FaultKind kind) noexcept;
  static void report(std::unique_ptr<Transfer> transfer, std::optional<Fault> fault) noexcept;

  static int watch(CURL* easy, curl_socket_t socket, int what, void* self, void* isWatched) noexcept;
  static int setTimer(CURLM* multi, long waitMs, void* self) noexcept;

  const TransferPolicy policy_;
  const int poller_;                         // epoll
  const int wakeUp_;                         // eventfd
  std::atomic<bool> stopRequested_ = false;  // a transfer may have been stopped

  Mutex mutex_;
  std::vector<std::unique_ptr<Transfer>> waiting_ JOBQ_GUARDED_BY(mutex_);  // not known to libcurl yet
  bool ending_ JOBQ_GUARDED_BY(mutex_) = false;

  // Used by the loop's thread.
  std::optional<Moment> timerAt_;  // when libcurl wants to be called
  Moment nextAddressAt_{};         // when libcurl is called for all transfers
  bool keepsConnections_ = false;  // libcurl may have kept connections
  Multi multi_;
  std::map<CURL*, std::unique_ptr<Transfer>> running_;

  std::thread thread_;
};

}  // namespace jobq::http_client
