#include "authorities.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include "jobq/byte_order_mark.h"
#include "jobq/error.h"

namespace jobq::http_client {

namespace {

bool holdsCertificate(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                         BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> first(PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr),
                                                          X509_free);
  ERR_clear_error();
  return first != nullptr;
}

}  // namespace

std::string readAuthorities(const std::filesystem::path& file, std::string_view setting) {
  constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;
  std::ifstream in(file, std::ios::binary);
  std::string pem;
  std::error_code unreadable;
  if (std::filesystem::is_regular_file(file, unreadable) && std::filesystem::file_size(file, unreadable) <= kMaxBytes) {
    pem.assign(std::istreambuf_iterator<char>(in), {});
    pem.erase(0, pem.size() - withoutByteOrderMark(pem).size());
  }
  if (!in || pem.empty()) {
    throw ConfigError(std::string(setting) + ": " + file.string() + " cannot be read; name a PEM file of certificates");
  }
  if (!holdsCertificate(pem)) {
    throw ConfigError(std::string(setting) + ": " + file.string() +
                      " holds no certificate; add a block that begins with -----BEGIN CERTIFICATE-----");
  }
  return pem;
}

}  // namespace jobq::http_client
