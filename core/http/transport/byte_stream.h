// The bytes of a connection, plain or TLS. Code that reads and writes need not distinguish the two.
#pragma once

#include <Poco/AutoPtr.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/slow_readers.h"
#include "jobq/mutex.h"

namespace Poco::Net {
class Context;
}

namespace jobq {

/// Longest wait of a read with Wait::linger.
inline constexpr std::chrono::milliseconds kLinger{50};

/// Bytes a second that a transfer has to move in the end.
inline constexpr std::size_t kDemandedPace = 8192;

/// Limits the time of a body or an answer: 20 s, and 1 s more for each 8 KiB moved. A client that drips loses the
/// connection. A transfer that has waited for its client for 1 s in all draws a slot, a body from a budget and an
/// answer from SlowReaders, and keeps the slot until the transfer ends. One thread.
class TransferDeadline {
 public:
  /// `places` has the slots for slow bodies. Both arguments outlive the deadline.
  explicit TransferDeadline(Budget& places, const TimeSource& time = TimeSource::ofMachine()) noexcept
      : places_(&places), time_(&time), start_(time.steady()) {}
  /// The deadline of an answer to `reader`. The arguments outlive the deadline.
  TransferDeadline(SlowReaders& readers, const AnswerReader& reader,
                   const TimeSource& time = TimeSource::ofMachine()) noexcept
      : readers_(&readers), reader_(&reader), time_(&time), start_(time.steady()) {}
  /// Returns a deadline without any waiting: bytes that do not move at once count as late.
  static TransferDeadline hurried() noexcept { return TransferDeadline(); }

  /// Adds `bytes` to the moved bytes, which lengthens the deadline.
  void moved(std::size_t bytes) noexcept { bytes_ += bytes; }

  enum class Verdict {
    wait,   ///< for left() at most
    late,   ///< the time is used up
    noSlot  ///< no slot is free
  };
  /// Says whether the thread may wait for its client now. Draws a slot after the first second.
  Verdict mayWait() noexcept;
  /// Returns the time until the deadline, 0 if the deadline has passed.
  std::chrono::milliseconds left() const noexcept;
  /// Returns the time since the begin of the transfer.
  std::chrono::milliseconds used() const noexcept;
  /// Returns left(), but at most the time until a slot is needed.
  std::chrono::milliseconds untilNextQuestion() const noexcept;
  /// Returns the number of slots for slow transfers; 0 for a transfer that needs no slot.
  std::uint64_t slots() const noexcept { return places_ != nullptr ? places_->whole() : 0; }

 private:
  TransferDeadline() noexcept = default;
  bool isHurried() const noexcept { return places_ == nullptr && readers_ == nullptr; }
  bool hasPlace() const noexcept { return place_.amount() > 0 || readerPlace_.isTaken(); }
  bool drawPlace() noexcept;

  Budget* places_ = nullptr;
  Budget::Reservation place_;
  SlowReaders* readers_ = nullptr;
  const AnswerReader* reader_ = nullptr;
  SlowReaders::Place readerPlace_;
  const TimeSource* time_ = &TimeSource::ofMachine();
  std::chrono::steady_clock::time_point start_ = time_->steady();
  std::size_t bytes_ = 0;
};

/// Owns the socket. One thread at a time; only shutDown() and bytesTaken() may be called by a second thread meanwhile.
class ByteStream {
 public:
  virtual ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Returns the number of bytes read into `to`, nullopt if no byte came in time, or 0 if the peer has closed or the
  /// connection is broken. Waits for kLinger at most, or not at all. After nullopt no byte is held back inside the
  /// stream, so poll() reports further bytes.
  enum class Wait { no, linger };
  virtual std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) = 0;

  /// Sends both texts, `second` behind `first`. Returns false if the peer is gone or too slow for `deadline`.
  bool write(std::string_view first, std::string_view second, TransferDeadline deadline);

  /// Sends as much of both texts, `second` behind `first`, as leaves without waiting. Returns the number of bytes that
  /// left, or nullopt if the peer is gone. A later call repeats the bytes that did not leave.
  virtual std::optional<std::size_t> writeSome(std::string_view first, std::string_view second) = 0;

  /// Ends the sending direction; the peer sees the end of the stream.
  virtual void endSending() noexcept;

  /// Reads available bytes into `scrap` and drops them without decoding. Returns their number, nullopt if no byte is
  /// available now, or 0 at the end of the stream.
  std::optional<std::size_t> drop(char* scrap, std::size_t size) noexcept;

  /// Returns true if the peer has closed its side or the connection is broken, as far as known now. Never waits.
  bool peerHasClosed() const noexcept;
  /// Returns true if the peer has reset the connection, as far as read() has found out: a reset is no orderly close.
  bool wasReset() const noexcept;

  /// Returns the number of bytes that have reached the peer's machine; 0 if the socket is not of TCP. Any thread, as
  /// long as the stream lives.
  virtual std::uint64_t bytesTaken() const noexcept;

  /// Ends the connection in both directions; a thread inside read() or write() returns at once. Any thread.
  void shutDown() noexcept;

  /// Returns true while a TLS handshake is unfinished.
  virtual bool handshaking() const noexcept { return false; }

  /// Returns the socket, still owned by the stream.
  int descriptor() const noexcept { return descriptor_; }
  /// Returns true for TLS.
  virtual bool secure() const noexcept { return false; }

 protected:
  explicit ByteStream(int descriptor) noexcept : descriptor_(descriptor) {}
  /// Waits until one of the poll() `events` has come, or for `atMost`.
  void await(short events, std::chrono::milliseconds atMost) const noexcept;

 private:
  const int descriptor_;
};

/// Returns a stream without TLS. Takes ownership of `descriptor`, an accepted socket.
std::unique_ptr<ByteStream> plainStream(int descriptor);

/// Makes streams with TLS. The handshake takes place inside read() and waits no longer than read() may wait. Any
/// thread.
class TlsContext {
 public:
  /// Reads both files (PEM, by path). Throws ConfigError if the files are not a certificate and its key.
  TlsContext(std::string certificate, std::string key);
  ~TlsContext();

  /// Reads the files again, for later connections. Throws ConfigError if the files are not a certificate and its key;
  /// the former ones stay in use then.
  void reload();

  /// Returns a stream with TLS and takes ownership of `descriptor`. The stream may outlive the context. Throws Error if
  /// OpenSSL has no memory; `descriptor` is closed then.
  std::unique_ptr<ByteStream> stream(int descriptor) const;

  /// Returns the context for blocking sockets of Poco. No stream() may be made from this object then.
  ::Poco::AutoPtr<::Poco::Net::Context> blockingContext();

 private:
  struct Poco;
  static std::shared_ptr<Poco> load(const std::string& certificate, const std::string& key);

  const std::string certificate_;
  const std::string key_;
  mutable Mutex mutex_;
  std::shared_ptr<Poco> poco_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
