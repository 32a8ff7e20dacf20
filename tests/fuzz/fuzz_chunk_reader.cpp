// The reader of chunked bodies. The size of the pieces makes no difference, no byte behind the end is touched, and an
// independent decoder agrees.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "check.h"
#include "core/http/transport/chunk_reader.h"
#include "core/http/transport/request_head.h"

namespace {

using namespace jobq;
using Part = ChunkReader::Part;

struct Read {
  std::string body;
  std::size_t used = 0;
  Part part = Part::framing;
};

Read readInPieces(std::string_view bytes, std::size_t step) {
  Read read;
  ChunkReader reader;
  for (std::size_t seen = 0;;) {
    if (reader.part() == Part::framing) read.used += reader.skipFraming(bytes.substr(read.used, seen - read.used));
    if (reader.part() == Part::data) {
      const auto take = std::min<std::uint64_t>(seen - read.used, reader.dataLeft());
      read.body += bytes.substr(read.used, take);
      read.used += take;
      if (take > 0) reader.tookData(take);
    }
    read.part = reader.part();
    const bool over = read.part == Part::end || read.part == Part::broken;
    if (over || (read.used == seen && seen == bytes.size())) return read;
    if (read.used == seen) seen = std::min(bytes.size(), seen + step);
  }
}

std::optional<std::string_view> nextLine(std::string_view& rest) {
  const std::size_t end = rest.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return isFieldValue(line) ? std::optional(line) : std::nullopt;
}

// Decodes line by line, over the whole text at once. Returns nullopt if the text is no complete chunked body.
std::optional<Read> decode(std::string_view bytes) {
  Read read;
  std::string_view rest = bytes;
  for (;;) {
    const auto line = nextLine(rest);
    if (!line) return std::nullopt;
    const std::string_view size = line->substr(0, line->find(';'));
    if (size.empty() || size.size() > 15 || line->size() > size.size() + 1 + 4096) return std::nullopt;
    if (size.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
    const std::uint64_t count = std::stoull(std::string(size), nullptr, 16);
    if (count == 0) break;
    if (rest.size() < count || rest.size() - count < 2 || rest.substr(count, 2) != "\r\n") return std::nullopt;
    read.body += rest.substr(0, count);
    rest.remove_prefix(count + 2);
  }
  for (;;) {
    const auto line = nextLine(rest);
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos || !isToken(line->substr(0, colon))) return std::nullopt;
  }
  read.used = bytes.size() - rest.size();
  read.part = Part::end;
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Read whole = readInPieces(bytes, std::max<std::size_t>(size, 1));
  BELIEVE(whole.used <= size);
  for (const std::size_t step : {std::size_t{1}, 1 + size % 7}) {
    const Read pieces = readInPieces(bytes, step);
    BELIEVE(pieces.part == whole.part && pieces.body == whole.body && pieces.used == whole.used);
  }
  // ChunkReader limits all trailers together; the other decoder has no such limit.
  if (size > 16'000) return 0;
  const auto other = decode(bytes);
  BELIEVE(other.has_value() == (whole.part == Part::end));
  if (other) BELIEVE(other->body == whole.body && other->used == whole.used);
  return 0;
}
