// The body of a request, read off its connection: by length or by chunks, never a byte beyond its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <optional>
#include <streambuf>

#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/chunk_reader.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_head.h"

namespace jobq {

/// One thread. Link, inbox and budget outlive it.
class BodyReader final : public std::streambuf {
 public:
  BodyReader(ByteStream& stream, ReadBuffer& buffer, const RequestHead& head, Budget& waiting);

  /// A chunked body that is known to be longer is a fault of status 413, before its bytes have come.
  void limit(std::uint64_t bytes) noexcept { limit_ = bytes; }

  /// The whole body was read, and it was well-formed.
  bool complete() const noexcept;

  /// Why there is no more, when it is not complete: broken framing, an early end, too slow.
  const std::optional<Fault>& fault() const noexcept { return fault_; }

  /// Drops what is left if it has come already; true when the body is complete then.
  bool dropArrived();

 private:
  int_type underflow() override;
  std::streamsize xsgetn(char* to, std::streamsize size) override;

  // Some bytes of the body, at least one; 0: see complete() and fault().
  std::size_t readSome(char* to, std::size_t size);
  std::size_t takeArrived(char* to, std::size_t size);
  std::uint64_t expected() const noexcept;
  bool receive(char* to, std::size_t size, std::size_t& direct);
  bool mayWait();

  ByteStream& stream_;
  ReadBuffer& buffer_;
  const bool chunked_;
  std::uint64_t left_;  // of a body with a length
  ChunkReader chunks_;
  std::uint64_t taken_ = 0;
  std::uint64_t limit_ = UINT64_MAX;
  std::optional<Fault> fault_;
  TransferDeadline deadline_;
  std::array<char, 1024> ahead_{};  // for readers that take byte by byte
};

}  // namespace jobq
