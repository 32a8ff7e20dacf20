// An empty folder for one test, removed with all files at the end of the test.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace jobq::testkit {

/// A folder that exists as long as this object. Each object has a folder of its own, also among threads and processes
/// that create folders at the same moment. An owner declares the object before the objects with files in the folder:
/// members are destroyed in reverse order, and an open storage must be closed before the removal. Only path() may be
/// called by any thread.
class TemporaryFolder {
 public:
  /// Creates `<system's folder for temporary files>/jobq-<six characters>` with mode 0700. Throws std::system_error if
  /// the folder cannot be created.
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "jobq-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    path_ = name;
  }

  /// Removes the folder with its content. Entries that cannot be removed stay, without an error.
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Returns the absolute path of the folder. Any thread.
  const std::filesystem::path& path() const noexcept { return path_; }

  operator const std::filesystem::path&() const noexcept { return path_; }

  /// Returns the path of an entry of the folder, which need not exist. Any thread.
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

  /// Removes the content of the folder and keeps the folder. Throws std::filesystem::filesystem_error if an entry
  /// cannot be removed.
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace jobq::testkit
