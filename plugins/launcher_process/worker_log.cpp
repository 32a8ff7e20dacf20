#include "worker_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace jobq::process {

namespace {

constexpr std::string_view kSuffix = ".log";
constexpr std::string_view kOlderSuffix = ".log.1";

std::filesystem::path withSuffix(std::filesystem::path path, std::string_view suffix) { return path += suffix; }

bool makeFolder(const std::filesystem::path& folder) {
  constexpr mode_t kOwnerOnly = 0700;
  return ::mkdir(folder.c_str(), kOwnerOnly) == 0 || errno == EEXIST;
}

/// Returns the worker of a log's file, or an empty id for a different file.
WorkerId workerOf(const std::string& file) {
  for (const std::string_view suffix : {kSuffix, kOlderSuffix}) {
    if (file.ends_with(suffix)) return file.substr(0, file.size() - suffix.size());
  }
  return {};
}

}  // namespace

WorkerLog::WorkerLog(std::filesystem::path folder, const WorkerId& worker, std::uint64_t most)
    : folder_(std::move(folder)), path_(folder_ / worker), most_(most) {}

bool WorkerLog::open() {
  constexpr mode_t kOwnerOnly = 0600;
  if (!makeFolder(folder_.parent_path()) || !makeFolder(folder_)) return false;
  file_ = FileDescriptor(
      ::open(withSuffix(path_, kSuffix).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  size_ = 0;
  return file_.isOpen();
}

int WorkerLog::append(std::string_view output) {
  while (!output.empty()) {
    if (size_ >= most_) {
      file_.close();
      if (::rename(withSuffix(path_, kSuffix).c_str(), withSuffix(path_, kOlderSuffix).c_str()) != 0) size_ = 0;
    }
    if (!file_.isOpen() && !open()) return errno;
    const std::size_t fits = std::min<std::uint64_t>(output.size(), most_ - size_);
    const ssize_t written = ::write(file_.number(), output.data(), fits);
    if (written < 0 && errno != EINTR) return errno;
    if (written <= 0) continue;
    size_ += static_cast<std::uint64_t>(written);
    output.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void removeOldLogs(const std::filesystem::path& folder, const std::set<WorkerId>& running, std::size_t most) {
  std::error_code ignored;
  std::map<WorkerId, std::filesystem::file_time_type> ends;
  for (std::filesystem::directory_iterator file(folder, ignored), last; file != last; file.increment(ignored)) {
    const WorkerId worker = workerOf(file->path().filename().string());
    if (worker.empty() || running.contains(worker)) continue;
    const auto changed = file->last_write_time(ignored);
    auto& end = ends.try_emplace(worker, changed).first->second;
    end = std::max(end, changed);
  }
  if (ends.size() <= most) return;
  std::vector<std::pair<std::filesystem::file_time_type, WorkerId>> oldestFirst;
  for (const auto& [worker, end] : ends) oldestFirst.emplace_back(end, worker);
  std::sort(oldestFirst.begin(), oldestFirst.end());
  oldestFirst.resize(ends.size() - most);
  for (const auto& [end, worker] : oldestFirst) {
    for (const std::string_view suffix : {kSuffix, kOlderSuffix}) {
      std::filesystem::remove(withSuffix(folder / worker, suffix), ignored);
    }
  }
}

}  // namespace jobq::process
