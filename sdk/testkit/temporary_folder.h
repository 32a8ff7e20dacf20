// A folder of its own for one test, which leaves nothing behind on the disk.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace jobq::testkit {

/// An empty folder that exists as long as this object. Each object has another folder, also among threads and processes
/// that make theirs at the same moment. Declare it before the objects that keep files in it: members are destroyed in
/// reverse order, and an open storage must be closed before its folder goes. One thread, but for path().
class TemporaryFolder {
 public:
  /// Makes `<system's folder for temporary files>/jobq-<six characters>`, with mode 0700. Throws std::system_error if
  /// that is not possible.
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "jobq-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    path_ = name;
  }

  /// Removes the folder and all that it holds. Files that cannot be removed stay, without an error.
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The folder, absolute. Any thread.
  const std::filesystem::path& path() const noexcept { return path_; }

  operator const std::filesystem::path&() const noexcept { return path_; }

  /// The path of an entry of the folder, which need not exist. Any thread.
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

  /// Removes all that the folder holds, and keeps the folder. Throws std::filesystem::filesystem_error if an entry
  /// cannot be removed.
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace jobq::testkit
