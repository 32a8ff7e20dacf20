// Starts threads at the same moment, for tests of races.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "jobq/mutex.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// Runs `body(i)` for i from 0 to count - 1, each on a thread of its own. No thread begins before all threads exist.
/// Returns when all threads have ended; ends the process if a thread has not ended within the deadline.
inline void runTogether(int count, const std::function<void(int)>& body, std::chrono::seconds within = kWorkDeadline) {
  const HangGuard guard("the end of " + std::to_string(count) + " threads that run together", within);
  std::vector<std::thread> threads;
  Mutex mutex;
  Condition go;
  bool isOpen = false;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      {
        Lock lock(mutex);
        while (!isOpen) go.wait(mutex);  // bounded by the guard
      }
      body(i);
    });
  }
  {
    Lock lock(mutex);
    isOpen = true;
    go.notifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace jobq::testkit
