#include "core/http/transport/body_reader.h"

#include <algorithm>

#include "core/base/words.h"

namespace jobq {
namespace {

/// Reads of this size and more go straight to the target, without a copy through the ReadBuffer.
constexpr std::size_t kDirect = 4096;

/// An unread body of up to this size is dropped, so that the connection can serve further requests.
constexpr std::uint64_t kDropped = 64UL << 10;

}  // namespace

BodyReader::BodyReader(ByteStream& stream, ReadBuffer& buffer, const RequestHead& head, Budget& waiting,
                       const TimeSource& time)
    : stream_(stream),
      buffer_(buffer),
      chunked_(head.chunked),
      left_(head.contentLength.value_or(0)),
      deadline_(waiting, time) {}

bool BodyReader::complete() const noexcept {
  return result_ && (chunked_ ? chunks_.part() == ChunkReader::Part::end : left_ == 0);
}

// Returns the number of body bytes that follow without framing between them.
std::uint64_t BodyReader::expected() const noexcept {
  if (!chunked_) return left_;
  return chunks_.part() == ChunkReader::Part::data ? chunks_.dataLeft() : 0;
}

std::size_t BodyReader::readArrived(char* to, std::size_t size) {
  if (chunked_) {
    buffer_.consume(chunks_.skipFraming(buffer_.view()));
    if (chunks_.part() == ChunkReader::Part::broken) {
      result_ = Fault{400, "the body is not correctly chunked: " + std::string(*chunks_.fault())};
    }
    if (taken_ + expected() > limit_) {
      result_ = Fault{413, "the body is over the limit of " + std::to_string(limit_) + " bytes: send less"};
      return 0;
    }
  }
  const std::size_t step = std::min<std::uint64_t>({size, buffer_.view().size(), expected()});
  if (to != nullptr) std::copy_n(buffer_.view().data(), step, to);
  buffer_.consume(step);
  if (chunked_ && step > 0) chunks_.tookData(step);
  if (!chunked_) left_ -= step;
  return step;
}

bool BodyReader::mayWait() {
  switch (deadline_.mayWait()) {
    case TransferDeadline::Verdict::wait: return true;
    case TransferDeadline::Verdict::late:
      result_ = Fault{408, "the body did not come in time: " + std::to_string(taken_) +
                               " bytes came; send it faster, or in smaller parts"};
      return false;
    case TransferDeadline::Verdict::noSlot:
      result_ = Fault{
          503, limitReached("too many clients wait", deadline_.slots(), "server.waiting") + "; try again in a moment"};
  }
  return false;
}

ByteStream::Wait BodyReader::waitMode() const noexcept {
  const bool waits = !mayPause_ || (lingers_ && deadline_.used() < kLinger);
  return waits ? ByteStream::Wait::linger : ByteStream::Wait::no;
}

// Reads once, into the ReadBuffer or straight into `to`. Returns false if no further bytes will come.
bool BodyReader::receive(char* to, std::size_t size, std::size_t& direct) {
  const bool straight = size >= kDirect && expected() >= kDirect;
  const std::size_t most = std::min<std::uint64_t>(size, expected());
  const auto got = straight ? stream_.read(to, most, waitMode()) : buffer_.fill(stream_, waitMode());
  if (!got) {
    paused_ = mayWait() && mayPause_;
    return result_ && !paused_;
  }
  if (*got == 0) {
    result_ = Fault{400, "the body ended early: " + std::to_string(taken_) + " bytes came; send the whole body"};
    return false;
  }
  deadline_.moved(*got);
  if (straight) {
    direct = *got;
    if (chunked_) chunks_.tookData(direct);
    if (!chunked_) left_ -= direct;
  }
  return true;
}

std::size_t BodyReader::readSome(char* to, std::size_t size) {
  std::size_t got = 0;
  while (got == 0 && result_ && !complete()) {
    got = readArrived(to, size);
    if (got > 0 || !result_ || complete()) break;
    if (!receive(to, size, got)) break;
  }
  taken_ += got;
  return got;
}

std::size_t BodyReader::readOrPause(char* to, std::size_t size, bool threadsBusy) {
  lingers_ = !paused_ && lingers_ && !threadsBusy;
  paused_ = false;
  mayPause_ = true;
  const std::size_t got = readSome(to, size);
  mayPause_ = false;
  return got;
}

bool BodyReader::dropArrived() {
  std::uint64_t dropped = 0;
  while (result_ && !complete() && expected() + dropped <= kDropped) {
    const std::size_t step = readArrived(nullptr, SIZE_MAX);
    dropped += step;
    if (step == 0 && !complete() && buffer_.fill(stream_, ByteStream::Wait::no).value_or(0) == 0) break;
  }
  return complete();
}

BodyReader::int_type BodyReader::underflow() {
  const std::size_t got = readSome(ahead_.data(), ahead_.size());
  if (got == 0) return traits_type::eof();
  setg(ahead_.data(), ahead_.data(), ahead_.data() + got);
  return traits_type::to_int_type(*gptr());
}

std::streamsize BodyReader::xsgetn(char* to, std::streamsize size) {
  const auto wanted = static_cast<std::size_t>(size);
  std::size_t had = std::min(wanted, static_cast<std::size_t>(egptr() - gptr()));
  std::copy_n(gptr(), had, to);
  gbump(static_cast<int>(had));
  while (had < wanted) {
    const std::size_t got = readSome(to + had, wanted - had);
    if (got == 0) break;
    had += got;
  }
  return static_cast<std::streamsize>(had);
}

}  // namespace jobq
