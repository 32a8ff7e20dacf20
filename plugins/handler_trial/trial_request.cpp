#include "trial_request.h"

#include "jobq/error.h"
#include "jobq/json.h"

namespace jobq::trial {

namespace {

constexpr std::int64_t kLongestWait = 7LL * 24 * 3600 * 1000;
constexpr std::int64_t kMostMegabytes = 65'536;
constexpr std::int64_t kMostChunks = 1'000'000;
constexpr std::int64_t kLargestChunk = 64LL * 1024 * 1024;

[[noreturn]] void refuse(std::string_view key, std::string_view remedy) {
  throw JobFailed(std::string(key) + " of a trial must be " + std::string(remedy));
}

json::Document readObject(std::string_view input) {
  auto scanned = json::read(input);
  auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr || document->root.kind != json::Kind::object) refuse("input", "a JSON object");
  return std::move(*document);
}

class Fields {
 public:
  explicit Fields(std::string_view input) : document_(readObject(input)) {}

  std::optional<json::Value> find(std::string_view key) const { return document_.find(key); }

  std::int64_t integer(std::string_view key, std::int64_t max) const {
    const auto value = find(key);
    if (!value) return 0;
    const auto number = json::toInteger(*value);
    if (!number || *number < 0 || *number > max) {
      refuse(key, "a whole number from 0 to " + std::to_string(max));
    }
    return *number;
  }

  Millis wait(std::string_view key) const { return Millis(integer(key, kLongestWait)); }

  bool flag(std::string_view key) const {
    const auto value = find(key);
    if (!value) return false;
    const auto flag = json::toBoolean(*value);
    if (!flag) refuse(key, "true or false");
    return *flag;
  }

  std::optional<std::string> text(std::string_view key, std::string_view remedy = "a string") const {
    const auto value = find(key);
    if (!value) return std::nullopt;
    const auto text = json::toText(*value);
    if (!text) refuse(key, remedy);
    return text;
  }

  std::vector<json::Value> list(std::string_view key, std::string_view remedy) const {
    const auto value = find(key);
    if (!value) return {};
    if (value->kind != json::Kind::array) refuse(key, remedy);
    return std::get<json::Document>(json::read(value->raw)).elements;
  }

 private:
  json::Document document_;
};

Crash readCrash(const Fields& fields) {
  constexpr std::string_view kRemedy = "one of \"segv\", \"abort\", \"exit\", \"hang\"";
  const auto name = fields.text("crash", kRemedy);
  if (!name) return Crash::none;
  if (*name == "segv") return Crash::segv;
  if (*name == "abort") return Crash::abort;
  if (*name == "exit") return Crash::exit;
  if (*name == "hang") return Crash::hang;
  refuse("crash", kRemedy);
}

}  // namespace

TrialRequest readTrial(std::string_view input) {
  const Fields fields(input);
  TrialRequest request;
  for (const json::Value& value : fields.list("progress", "an array of JSON values")) {
    request.progress.push_back(value.raw);
  }
  request.sleep = fields.wait("sleepMs");
  request.burn = fields.wait("burnMs");
  request.allocMb = fields.integer("allocMb", kMostMegabytes);
  request.chunks = fields.integer("chunks", kMostChunks);
  request.chunkBytes = fields.integer("chunkBytes", kLargestChunk);
  request.chunkWait = fields.wait("chunkMs");
  request.ignoreStop = fields.flag("ignoreStop");
  for (const json::Value& value : fields.list("log", "an array of strings")) {
    const auto line = json::toText(value);
    if (!line) refuse("log", "an array of strings");
    request.log.push_back(*line);
  }
  request.failMessage = fields.text("fail");
  request.throwMessage = fields.text("throw");
  request.crash = readCrash(fields);
  const auto output = fields.find("output");
  request.output = output ? output->raw : input;
  return request;
}

}  // namespace jobq::trial
