// A storage with copies, for tests of backups.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stop_token>

#include "jobq/error.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"
#include "testkit/wait_for.h"

namespace jobq::test {

/// A storage with a backup of one word; the copying lasts as long as the test wants.
class CopiedStorage final : public testkit::ForwardingStorage {
 public:
  explicit CopiedStorage(Storage& other) : ForwardingStorage(other) {}

  std::atomic<bool> endless = false;
  std::atomic<bool> broken = false;
  std::atomic<bool> unreadable = false;  ///< the copy is a link to nowhere
  std::atomic<int> begun = 0;

 private:
  Capabilities capabilities() const noexcept override { return {Capability::backup}; }
  BackupResult backupTo(const std::filesystem::path& file, std::stop_token stop) override {
    ++begun;
    if (broken) throw StorageError("the disk is full");
    EXPECT_FALSE(std::filesystem::exists(file));
    for (testkit::WaitDeadline wait("the copying to be stopped"); endless; wait.pause()) {
      if (stop.stop_requested()) return BackupResult::stopped;
    }
    if (unreadable) {
      std::filesystem::create_symlink("nowhere", file);
    } else {
      std::ofstream(file) << "content";
    }
    return BackupResult::written;
  }
};

}  // namespace jobq::test
