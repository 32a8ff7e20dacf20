// Certificates made by a test: authorities, and servers with certificates of the authorities.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace jobq::test {

struct Identity {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  std::string pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free)> sink(BIO_new(BIO_s_mem()), BIO_free);
    PEM_write_bio_X509(sink.get(), certificate.get());
    char* bytes = nullptr;
    const long length = BIO_get_mem_data(sink.get(), &bytes);
    return {bytes, static_cast<std::size_t>(length)};
  }
};

struct Certified {
  std::string alternativeName = "IP:127.0.0.1";  ///< in OpenSSL's notation; empty for no name
  bool authority = false;
  long validFrom = -3600;  ///< seconds from now
  long validTo = 3600;
};

inline void addExtension(X509* certificate, int which, const std::string& text) {
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, which, text.c_str()), X509_EXTENSION_free);
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    throw std::runtime_error("no extension " + text);
  }
}

/// Makes a certificate signed by `issuer`, or self-signed without an issuer.
inline Identity certify(const Certified& wanted, const Identity* issuer = nullptr) {
  static long serial = 1;
  Identity made{{X509_new(), X509_free}, {EVP_EC_gen("P-256"), EVP_PKEY_free}};
  X509* certificate = made.certificate.get();
  const std::string name = "jobq test " + std::to_string(serial);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), wanted.validFrom);
  X509_gmtime_adj(X509_getm_notAfter(certificate), wanted.validTo);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate, issuer == nullptr ? subject : X509_get_subject_name(issuer->certificate.get()));
  addExtension(certificate, NID_basic_constraints, wanted.authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!wanted.alternativeName.empty()) addExtension(certificate, NID_subject_alt_name, wanted.alternativeName);
  if (X509_sign(certificate, issuer == nullptr ? made.key.get() : issuer->key.get(), EVP_sha256()) == 0) {
    throw std::runtime_error("the test's certificate could not be signed");
  }
  return made;
}

}  // namespace jobq::test
