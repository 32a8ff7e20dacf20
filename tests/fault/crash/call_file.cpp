#include "call_file.h"

#include <fstream>

#include "jobq/json.h"

namespace jobq::fault {
namespace {

std::optional<json::Document> objectIn(std::string_view text) {
  auto read = json::read(text);
  auto* document = std::get_if<json::Document>(&read);
  if (document == nullptr || document->root.kind != json::Kind::object) return std::nullopt;
  return std::move(*document);
}

std::string textIn(const json::Document& document, std::string_view key) {
  const auto value = document.find(key);
  return value ? json::toText(*value).value_or("") : "";
}

}  // namespace

std::optional<ReceivedCall> callIn(const std::string& line) {
  const auto whole = objectIn(line);
  if (!whole) return std::nullopt;
  const auto headers = whole->find("headers");
  const auto body = whole->find("body");
  if (!headers || !body) return std::nullopt;
  const auto header = objectIn(headers->raw);
  const auto job = objectIn(body->raw);
  if (!header || !job) return std::nullopt;
  const auto output = job->find("output");
  return ReceivedCall{textIn(*header, "webhook-id"), textIn(*job, "id"), textIn(*job, "status"),
                      output ? std::string(output->raw) : "", textIn(*job, "error")};
}

std::vector<ReceivedCall> CallFile::read() {
  std::vector<ReceivedCall> calls;
  std::ifstream in(file_, std::ios::binary);
  if (!in) return calls;  // no webhook was called yet
  in.seekg(done_);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    done_ += static_cast<std::streamoff>(line.size() + 1);
    if (auto call = callIn(line)) {
      calls.push_back(std::move(*call));
    } else {
      ++torn_;
    }
  }
  return calls;
}

}  // namespace jobq::fault
