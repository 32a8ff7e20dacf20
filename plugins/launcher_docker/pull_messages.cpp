#include "pull_messages.h"

#include <cstddef>
#include <variant>

#include "jobq/json.h"
#include "log_frames.h"

namespace jobq::docker {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

}  // namespace

bool PullMessages::addPiece(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    line_ += part.substr(0, kLongestLine - line_.size());
    if (end == piece.npos) return true;
    readLine(line_);
    line_.clear();
    piece.remove_prefix(end + 1);
  }
  return true;
}

void PullMessages::finish() {
  readLine(line_);
  line_.clear();
}

void PullMessages::readLine(std::string_view line) {
  if (error_) return;
  const auto scanned = json::read(line);
  const auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr) return;
  const auto error = document->find("error");
  if (!error) return;
  error_ = asClause(json::toText(*error).value_or("Docker gave no reason"));
}

}  // namespace jobq::docker
