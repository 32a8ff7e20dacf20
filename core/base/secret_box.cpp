#include "core/base/secret_box.h"

#include <Poco/Crypto/Cipher.h>
#include <Poco/Crypto/CipherFactory.h>
#include <Poco/Crypto/CipherKey.h>
#include <Poco/Crypto/CryptoTransform.h>
#include <Poco/Crypto/OpenSSLInitializer.h>
#include <Poco/Exception.h>

#include <exception>
#include <ios>
#include <new>
#include <string>
#include <vector>

#include "core/base/data_dir.h"
#include "core/base/ids.h"
#include "jobq/error.h"

namespace jobq {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kSealingKeyBytes = 32;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

Bytes toBytes(std::string_view text) { return Bytes(text.begin(), text.end()); }

std::string fromHex(std::string_view hex) {
  std::string raw;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    raw.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return raw;
}

Poco::Crypto::Cipher::Ptr cipher(const std::string& key, std::string_view nonce) {
  return Poco::Crypto::CipherFactory::defaultFactory().createCipher(
      Poco::Crypto::CipherKey("aes-256-gcm", toBytes(key), toBytes(nonce)));
}

std::string applyCipher(Poco::Crypto::CryptoTransform& transform, std::string_view in) {
  std::string out(in.size() + transform.blockSize(), '\0');
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  const auto size = static_cast<std::streamsize>(out.size());
  std::streamsize length = transform.transform(reinterpret_cast<const unsigned char*>(in.data()),
                                               static_cast<std::streamsize>(in.size()), to, size);
  length += transform.finalize(to + length, size - length);
  out.resize(static_cast<std::size_t>(length));
  return out;
}

}  // namespace

SecretBox::SecretBox(const std::filesystem::path& keyFile) {
  // Poco counts its crypto objects. The end of the last object tears down state shared by OpenSSL between threads,
  // while a second thread may be making a new object (measured: a crash within seconds under load). One object
  // therefore lives for ever.
  static const Poco::Crypto::OpenSSLInitializer kAlways;
  auto text = readFile(keyFile);
  if (!text) {
    isNew_ = true;
    text = randomHex(kSealingKeyBytes);
    writePrivateFile(keyFile, *text + "\n");
  }
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->size() != 2 * kSealingKeyBytes || text->find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    throw ConfigError(keyFile.string() + " is not a secret key (64 hexadecimal digits): restore the right file");
  }
  key_ = fromHex(*text);
}

std::string SecretBox::seal(std::string_view text) const {
  if (text.empty()) return {};
  const std::string nonce = randomBytes(kNonceBytes);
  Poco::Crypto::CryptoTransform::Ptr transform = cipher(key_, nonce)->createEncryptor();
  const std::string sealed = applyCipher(*transform, text);
  const std::string tag = transform->getTag(kTagBytes);
  return nonce + sealed + tag;
}

std::string SecretBox::open(std::string_view sealed) const {
  if (sealed.empty()) return {};
  try {
    if (sealed.size() < kNonceBytes + kTagBytes) throw Error("the sealed text is too short");
    const std::string_view body = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
    Poco::Crypto::CryptoTransform::Ptr transform = cipher(key_, sealed.substr(0, kNonceBytes))->createDecryptor();
    transform->setTag(std::string(sealed.substr(sealed.size() - kTagBytes)));
    return applyCipher(*transform, body);
  } catch (const std::bad_alloc&) {  // is no fault of the key
    throw;
  } catch (const std::exception&) {
    throw Error("a sealed secret cannot be opened: secret.key is not the key that sealed the secret");
  }
}

}  // namespace jobq
