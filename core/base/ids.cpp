#include "core/base/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "core/base/words.h"
#include "jobq/error.h"
#include "jobq/hex.h"

namespace jobq {
namespace {

void fillRandom(void* out, std::size_t size) {
  auto* at = static_cast<unsigned char*>(out);
  while (size > 0) {
    const ssize_t got = getrandom(at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(std::string("the system's random generator failed: ") + std::strerror(errno));
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

/// Fills `out` with random bytes for an id. Each thread draws the bytes from the system in pieces: a system call for
/// each id was 1.4 % of the work of `/run`. For ids alone: bytes of a secret do not stay in memory.
void fillForId(void* out, std::size_t size) {
  thread_local std::array<unsigned char, 512> drawn;
  thread_local std::size_t left = 0;  // at the end of `drawn`
  if (left < size) {
    fillRandom(drawn.data(), drawn.size());
    left = drawn.size();
  }
  std::memcpy(out, drawn.data() + drawn.size() - left, size);
  left -= size;
}

std::int64_t wallMillis() {
  const auto sinceEpoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(sinceEpoch).count();
}

CallId randomCallId() {
  CallId id = 0;
  fillForId(&id, sizeof id);
  return id;
}

}  // namespace

JobId newJobId(bool sync) {
  unsigned char bytes[16];
  fillForId(bytes, sizeof bytes);
  const auto moment = static_cast<std::uint32_t>(wallMillis());
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<unsigned char>(moment >> (24 - 8 * i));
  bytes[6] = static_cast<unsigned char>(0x40 | (bytes[6] & 0x0f));  // version 4
  bytes[8] = static_cast<unsigned char>(0x80 | (bytes[8] & 0x3f));  // RFC 4122 variant
  std::string uuid = toHex({reinterpret_cast<const char*>(bytes), sizeof bytes});
  for (const std::size_t at : {8, 13, 18, 23}) uuid.insert(at, 1, '-');
  return (sync ? "sync-" : "") + uuid + "-u1";
}

std::string newName(std::size_t letters) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string text = randomBytes(letters);
  for (char& byte : text) byte = kLetters[static_cast<unsigned char>(byte) % kLetters.size()];
  return text;
}

std::string randomHex(std::size_t bytes) { return toHex(randomBytes(bytes)); }

std::string randomBytes(std::size_t bytes) {
  std::string raw(bytes, '\0');
  fillRandom(raw.data(), raw.size());
  return raw;
}

bool isIdentifier(std::string_view text) { return !text.empty() && text.size() <= 128 && isPlain(text, "_-"); }

CallIds::CallIds() : last_(randomCallId()) {}

CallId CallIds::next() {
  const CallId id = ++last_;
  return id != 0 ? id : ++last_;
}

}  // namespace jobq
