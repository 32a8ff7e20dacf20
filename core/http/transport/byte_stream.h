// The bytes of one connection, plain or TLS: the only place that knows which.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/http/transport/budget.h"
#include "jobq/mutex.h"

namespace Poco::Net {
class Context;
}

namespace jobq {

/// How long a reading or lingering thread waits for bytes before it looks around.
inline constexpr std::chrono::milliseconds kLinger{50};

/// How long a body may take, either way: 20 s, and 1 s more for each 8 KiB that moved. Who drips loses the connection.
/// A thread that has waited for its client for a second in all takes one of the places for that, until the body is
/// through.
class TransferDeadline {
 public:
  explicit TransferDeadline(Budget& places) noexcept : places_(&places) {}
  /// What does not move at once does not move at all.
  static TransferDeadline hurried() noexcept { return TransferDeadline(); }

  void moved(std::size_t bytes) noexcept { bytes_ += bytes; }

  enum class Verdict {
    wait,    ///< for left() at most
    late,    ///< it has taken too long
    crowded  ///< there is no place to wait in
  };
  Verdict mayWait() noexcept;
  std::chrono::milliseconds left() const noexcept;
  /// left(), but not beyond the moment from which a place is needed.
  std::chrono::milliseconds untilNextQuestion() const noexcept;

 private:
  TransferDeadline() noexcept = default;
  std::chrono::milliseconds used() const noexcept;

  Budget* places_ = nullptr;
  Budget::Reservation place_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t bytes_ = 0;
};

/// Owns the socket. One thread at a time; only shutDown() may be called by another one meanwhile.
class ByteStream {
 public:
  virtual ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// How many bytes came: none at all (nullopt) when the wait has passed, 0 when the peer has closed or the connection
  /// is broken. Waits kLinger at most, or not at all. When none came, none is held back in here either: poll() tells
  /// when there are more.
  enum class Wait { no, linger };
  virtual std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) = 0;

  /// Sends both texts, the second behind the first. False: the peer is gone, or too slow.
  virtual bool write(std::string_view first, std::string_view second, TransferDeadline deadline) = 0;

  /// Nothing more will be sent; the peer sees the end.
  virtual void endSending() noexcept;

  /// Reads what is there and drops it, without decoding it. Nothing: there is no more for the moment; 0: the end.
  std::optional<std::size_t> drop(char* scrap, std::size_t size) noexcept;

  /// Ends the connection for both sides; a thread that reads or writes it returns at once. Any thread.
  void shutDown() noexcept;

  /// The peers have not agreed on their keys yet.
  virtual bool handshaking() const noexcept { return false; }

  int descriptor() const noexcept { return descriptor_; }
  virtual bool secure() const noexcept { return false; }

 protected:
  explicit ByteStream(int descriptor) noexcept : descriptor_(descriptor) {}
  /// Until one of the events has come, or the time has passed.
  void await(short events, std::chrono::milliseconds atMost) const noexcept;

 private:
  const int descriptor_;
};

/// Takes the descriptor of an accepted socket over.
std::unique_ptr<ByteStream> plainStream(int descriptor);

/// The same with TLS in front. The handshake takes place inside read(), and never waits longer than it. Any thread.
class TlsContext {
 public:
  /// Throws ConfigError when the files are no certificate and its key.
  TlsContext(std::string certificate, std::string key);
  ~TlsContext();

  /// Reads the files again, for connections that come from now on. Throws ConfigError when they are no certificate and
  /// its key; then the old ones stay in use.
  void reload();

  std::unique_ptr<ByteStream> stream(int descriptor) const;

 private:
  struct Poco;
  static std::shared_ptr<Poco> load(const std::string& certificate, const std::string& key);

  const std::string certificate_;
  const std::string key_;
  mutable Mutex mutex_;
  std::shared_ptr<Poco> poco_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
