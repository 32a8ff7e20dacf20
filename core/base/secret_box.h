// Seals secrets that are kept in the storage (s3Config): AES-256-GCM with the key of `<data>/secret.key`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace jobq {

/// Any thread; constant after construction.
class SecretBox {
 public:
  /// Reads the key file (32 random bytes as hexadecimal), or makes it with mode 0600. Throws ConfigError when the file
  /// is not a key: what was sealed with it cannot be opened by a new one.
  explicit SecretBox(const std::filesystem::path& keyFile);

  /// A fresh nonce, the sealed text and its tag. Empty stays empty.
  std::string seal(std::string_view text) const;

  /// The opposite. Throws Error when the bytes were not sealed with this key, or were changed.
  std::string open(std::string_view sealed) const;

 private:
  std::string key_;
};

}  // namespace jobq
