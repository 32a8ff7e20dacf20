// Reads the body of a request from its connection, by length or by chunks, and no byte beyond the body's end.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <streambuf>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/chunk_reader.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_head.h"

namespace jobq {

/// One thread. The stream, the buffer and the budget outlive the reader.
class BodyReader final : public std::streambuf {
 public:
  /// `head` gives the framing. `waiting` has the slots for slow bodies, and `time` outlives the reader
  /// (TransferDeadline).
  BodyReader(ByteStream& stream, ReadBuffer& buffer, const RequestHead& head, Budget& waiting,
             const TimeSource& time = TimeSource::ofMachine());

  /// Sets the largest size of a chunked body in bytes. A larger body is a fault with status 413, found before the
  /// bytes over the limit are read.
  void limit(std::uint64_t bytes) noexcept { limit_ = bytes; }

  /// Reads some bytes of the body into `to`, at most `size`. Returns their number; 0 if the body is complete, result()
  /// has failed, or the next bytes have not come (isPaused()). Waits in the first kLinger of the body only, and not
  /// with `threadsBusy` or after a pause: a client that drips holds no thread.
  std::size_t readOrPause(char* to, std::size_t size, bool threadsBusy);
  /// Returns true if the last readOrPause() ended because the next bytes have not come.
  bool isPaused() const noexcept { return paused_; }
  /// Returns the time after which readOrPause() has to be called again, though no further bytes have come: the body may
  /// need a slot then, or be late.
  std::chrono::milliseconds timeLeft() const noexcept { return deadline_.untilNextQuestion(); }

  /// Returns true if the whole body was read and was well-formed.
  bool complete() const noexcept;

  /// Returns the result of reading so far. Fails if reading ended early: broken framing, an early end, a slow client,
  /// no free slot.
  const Result<void, Fault>& result() const noexcept { return result_; }

  /// Drops the rest of the body if it has arrived already. Returns true if the body is complete now.
  bool dropArrived();

 private:
  int_type underflow() override;
  std::streamsize xsgetn(char* to, std::streamsize size) override;

  // Reads at least one byte of the body. Returns 0 if the body is complete or result() has failed.
  std::size_t readSome(char* to, std::size_t size);
  std::size_t readArrived(char* to, std::size_t size);
  std::uint64_t expected() const noexcept;
  bool receive(char* to, std::size_t size, std::size_t& direct);
  bool mayWait();
  ByteStream::Wait waitMode() const noexcept;

  ByteStream& stream_;
  ReadBuffer& buffer_;
  const bool chunked_;
  std::uint64_t left_;  // unread bytes of a body with a length
  ChunkReader chunks_;
  std::uint64_t taken_ = 0;
  std::uint64_t limit_ = UINT64_MAX;
  Result<void, Fault> result_;
  TransferDeadline deadline_;
  bool mayPause_ = false;  // readOrPause() is reading
  bool paused_ = false;
  bool lingers_ = true;
  std::array<char, 1024> ahead_{};  // for readers that take single bytes
};

}  // namespace jobq
