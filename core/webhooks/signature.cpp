#include "core/webhooks/signature.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstddef>
#include <memory>

#include "jobq/base64.h"
#include "jobq/error.h"

namespace jobq {
namespace {

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

bool add(EVP_MAC_CTX* context, std::string_view bytes) {
  return EVP_MAC_update(context, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
}

/// Returns the HMAC over the parts one after the other: a body may have 20 MB, and is not copied.
std::string hmacSha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  static EVP_MAC* const kHmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  const std::unique_ptr<EVP_MAC_CTX, FreeContext> context(EVP_MAC_CTX_new(kHmac));
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  bool done = context != nullptr && EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                                 key.size(), parameters) == 1;
  for (const std::string_view part : parts) done = done && add(context.get(), part);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  std::size_t size = 0;
  if (!done || EVP_MAC_final(context.get(), mac.data(), &size, mac.size()) != 1) {
    throw Error("OpenSSL cannot sign a webhook");
  }
  return {reinterpret_cast<const char*>(mac.data()), size};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> signatureHeaders(std::string_view key, const std::string& id,
                                                                  Instant now, std::string_view body) {
  const std::string timestamp = std::to_string(toEpochMillis(now) / 1'000);
  return {{"webhook-id", id},
          {"webhook-timestamp", timestamp},
          {"webhook-signature", "v1," + toBase64(hmacSha256(key, {id, ".", timestamp, ".", body}))}};
}

}  // namespace jobq
