#include "core/process/process_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <system_error>
#include <utility>

// GCC and clang name sanitizers differently.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JOBQ_FINDS_LEAKS 1
#endif
#if __has_feature(thread_sanitizer)
#define JOBQ_FINDS_RACES 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define JOBQ_FINDS_LEAKS 1
#endif
#if defined(__SANITIZE_THREAD__)
#define JOBQ_FINDS_RACES 1
#endif
#if JOBQ_FINDS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

namespace jobq {
namespace {

constexpr int kEndingSignals[] = {SIGTERM, SIGINT, SIGHUP};
constexpr int kWriteSignals[] = {SIGPIPE, SIGXFSZ};

// Written before a signal has the function noteSignal().
std::atomic<int> noteEnd{-1};
std::atomic<pid_t> noteProcess{0};

extern "C" void doNothing(int) {}

// A forked process has the same pipe, and must not write there.
extern "C" void noteSignal(int signal) {
  const int error = errno;
  const auto byte = static_cast<unsigned char>(signal);
  if (::getpid() == noteProcess) (void)!::write(noteEnd, &byte, 1);
  errno = error;
}

void setFunction(int signal, void (*function)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = function;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

ProcessSignals::ProcessSignals(std::vector<int> awaited) : awaited_(std::move(awaited)) {
  if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "no pipe for signals");
  ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);  // a signal beyond thousands has no effect
  noteEnd = ends_[1];
  noteProcess = ::getpid();
  tameWriteSignals();
  for (const int signal : awaited_) setFunction(signal, noteSignal);
}

ProcessSignals::~ProcessSignals() {
  for (const int signal : awaited_) setFunction(signal, SIG_DFL);
  noteEnd = -1;
  for (const int end : ends_) ::close(end);
}

void ProcessSignals::tameWriteSignals() noexcept {
  for (const int signal : kWriteSignals) setFunction(signal, doNothing);
  unblockSignals();
}

// Waits in poll(): ThreadSanitizer delays the function of a signal to the end of a read().
int ProcessSignals::await() const {
  constexpr std::chrono::hours kLong{1};
  for (;;) {
    if (const auto signal = awaitFor(kLong)) return *signal;
  }
}

std::optional<int> ProcessSignals::awaitFor(std::chrono::milliseconds longest) const {
  const auto end = std::chrono::steady_clock::now() + longest;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd asked{ends_[0], POLLIN, 0};
    const int ready = ::poll(&asked, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
    unsigned char signal = 0;
    if (ready > 0 && ::read(ends_[0], &signal, 1) == 1) return signal;
    if (ready == 0 && std::chrono::steady_clock::now() >= end) return std::nullopt;
  }
}

void ProcessSignals::send(int signal) const noexcept {
  const auto byte = static_cast<unsigned char>(signal);
  (void)!::write(ends_[1], &byte, 1);
}

void surviveSignals() noexcept {
  for (const int signal : kEndingSignals) setFunction(signal, doNothing);
  ProcessSignals::tameWriteSignals();
}

void unblockSignals() noexcept {
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void leaveProcess(int code) noexcept {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
#if JOBQ_FINDS_LEAKS
  __lsan_do_leak_check();
#endif
#if JOBQ_FINDS_RACES
  std::exit(code);  // reports of races change the code
#else
  ::_exit(code);
#endif
}

}  // namespace jobq
