// A transport with receivers controlled by a test: a receiver answers, fails, throws or hangs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <new>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/webhooks/curl_receiver_names.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"
#include "testkit/wait_for.h"

namespace jobq {

/// The transport of all fake receivers. Any thread may call the methods. A host without instructions answers 200 "ok".
class FakeTransport final : public WebhookTransport {
 public:
  struct Seen {
    std::string host;
    WebhookCall call;
    Instant at{};

    std::string header(const std::string& name) const {
      for (const auto& [key, value] : call.headers) {
        if (key == name) return value;
      }
      return "";
    }
  };
  using Answer = std::function<DeliveryResult()>;

  /// `needsThreads`: a call needs a thread of its caller, as with a transport without begin().
  explicit FakeTransport(const Clock& clock, std::string schemes = "http https", bool needsThreads = true)
      : clock_(clock), schemes_(std::move(schemes)), needsThreads_(needsThreads) {}
  ~FakeTransport() override { testkit::joinAll("the calls of the fake transport to end", calls_); }

  /// Sets the answers to the next calls to `host`, one answer for each call.
  void script(const std::string& host, std::vector<Answer> answers) {
    Lock lock(mutex_);
    for (Answer& answer : answers) scripts_[host].push_back(std::move(answer));
  }
  static Answer failing(int status) {
    return [status] { return DeliveryFailed{"the receiver answered " + std::to_string(status), status, "no"}; };
  }

  /// Makes calls to `host` last until their stop, or until letGo() or letOneGo().
  void hang(const std::string& host) {
    Lock lock(mutex_);
    hanging_.insert(host);
  }
  void letGo(const std::string& host) {
    Lock lock(mutex_);
    hanging_.erase(host);
    changed_.notifyAll();
  }
  /// Ends one of the host's hanging calls, with the host's next scripted answer, or with success without one.
  void letOneGo(const std::string& host) {
    Lock lock(mutex_);
    ++passes_[host];
    changed_.notifyAll();
  }

  std::vector<Seen> seen(const std::string& host = "") const {
    Lock lock(mutex_);
    std::vector<Seen> some;
    std::copy_if(seen_.begin(), seen_.end(), std::back_inserter(some),
                 [&host](const Seen& each) { return host.empty() || each.host == host; });
    return some;
  }
  std::size_t running() const {
    Lock lock(mutex_);
    return running_;
  }
  /// Returns the highest number of simultaneous calls to one host.
  std::size_t mostAtOneHost() const {
    Lock lock(mutex_);
    return mostAtOneHost_;
  }

  std::string_view schemes() const override { return schemes_; }

  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) override {
    const std::string host = CurlReceiverNames().nameOf(call.url);
    const std::stop_callback wake(stop, [this] {
      Lock lock(mutex_);
      changed_.notifyAll();
    });
    Answer answer = [] { return Delivered{200, "ok"}; };
    {
      Lock lock(mutex_);
      seen_.push_back({host, call, clock_.now()});
      ++running_;
      mostAtOneHost_ = std::max(mostAtOneHost_, ++byHost_[host]);
      testkit::WaitDeadline wait("the end of a hanging call", testkit::kWorkDeadline);
      while (hanging_.contains(host) && passes_[host] == 0 && !stop.stop_requested()) wait.on(changed_, mutex_);
      if (hanging_.contains(host) && passes_[host] > 0) --passes_[host];
      --running_;
      --byHost_[host];
      if (stop.stop_requested()) return DeliveryFailed{"stopped", 0, ""};
      std::deque<Answer>& script = scripts_[host];
      if (!script.empty()) {
        answer = script.front();
        script.pop_front();
      }
    }
    return answer();
  }

 private:
  bool begin(const WebhookCall& call, std::stop_token stop, DeliveryReceiver& receiver) override {
    if (needsThreads_) return false;
    Lock lock(mutex_);
    calls_.emplace_back([this, &call, stop = std::move(stop), &receiver] { makeCall(call, stop, receiver); });
    return true;
  }
  void makeCall(const WebhookCall& call, const std::stop_token& stop, DeliveryReceiver& receiver) {
    DeliveryResult result = DeliveryFailed{};
    std::exception_ptr fault;
    try {
      result = deliver(call, stop);
    } catch (const std::bad_alloc&) {
      fault = std::current_exception();
    } catch (const std::system_error&) {
      fault = std::current_exception();
    } catch (const std::exception& error) {
      result = DeliveryFailed{error.what(), 0, ""};
    } catch (...) {
      result = DeliveryFailed{"the transport threw an exception that is not a std::exception", 0, ""};
    }
    if (fault) return receiver.failed(std::move(fault));
    receiver.ended(std::move(result));
  }

  const Clock& clock_;
  const std::string schemes_;
  const bool needsThreads_;
  mutable Mutex mutex_;
  Condition changed_;
  std::list<std::thread> calls_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, std::deque<Answer>> scripts_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::string> hanging_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, int> passes_ JOBQ_GUARDED_BY(mutex_);
  std::vector<Seen> seen_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> byHost_ JOBQ_GUARDED_BY(mutex_);
  std::size_t running_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::size_t mostAtOneHost_ JOBQ_GUARDED_BY(mutex_) = 0;
};

}  // namespace jobq
