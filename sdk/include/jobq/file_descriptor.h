// Ownership of a descriptor of the system.
#pragma once

#include <unistd.h>

#include <utility>

namespace jobq {

/// Closes the descriptor in the destructor. One thread uses the object.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes ownership. `number` may be the -1 of a failed call.
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { close(); }

  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  /// Returns the number, or -1 if the descriptor is closed. poll() ignores -1.
  int number() const noexcept { return number_; }
  bool isOpen() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace jobq
