// Seals secrets in the storage (s3Config, env, webhook secrets): AES-256-GCM with the key of `<data>/secret.key`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace jobq {

/// Constant after construction; any thread may call.
class SecretBox {
 public:
  /// Reads the key file (32 random bytes in hexadecimal), or makes the file with mode 0600. Throws ConfigError if the
  /// file holds no key, because a new key could not open the sealed secrets.
  explicit SecretBox(const std::filesystem::path& keyFile);

  /// Returns whether the constructor made the key and its file.
  bool isNew() const noexcept { return isNew_; }

  /// Returns a fresh nonce, the sealed text and its tag. An empty text stays empty.
  std::string seal(std::string_view text) const;

  /// Returns the text of sealed bytes. Throws Error if the bytes were sealed with another key, or were
  /// changed, and std::bad_alloc.
  std::string open(std::string_view sealed) const;

 private:
  std::string key_;
  bool isNew_ = false;
};

}  // namespace jobq
