#include "core/base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "jobq/error.h"
#include "jobq/hex.h"

namespace jobq {

// Every request needs a digest. The code calls OpenSSL directly, because Poco's DigestEngine searches for the algorithm
// each time, and making and destroying engines is not safe on several threads (see core/base/secret_box.cpp).
std::string sha256Bytes(std::string_view text) {
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, kAlgorithm, nullptr) != 1) {
    throw Error("OpenSSL cannot make a SHA-256 digest");
  }
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string sha256(std::string_view text) { return toHex(sha256Bytes(text)); }

}  // namespace jobq
