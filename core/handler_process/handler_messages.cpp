#include "core/handler_process/handler_messages.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include <variant>

#include "core/base/words.h"
#include "core/model/output_quota.h"
#include "jobq/json.h"

namespace jobq::worker {
namespace {

constexpr std::size_t kSizeBytes = 4;
constexpr std::size_t kMostErrorBytes = 1UL << 20;
constexpr std::size_t kKeptBytes = 1UL << 20;             // room of an idle handler
constexpr std::int64_t kLongestTime = 1'000'000'000'000;  // milliseconds
constexpr std::size_t kSetupFields = 6;                   // in front of the settings
constexpr auto kFirstKind = static_cast<std::uint8_t>(MessageKind::setup);
constexpr auto kLastKind = static_cast<std::uint8_t>(MessageKind::failed);

void appendSize(std::string& out, std::size_t size) {
  for (std::size_t i = 0; i < kSizeBytes; ++i) out += static_cast<char>(size >> (8 * i) & 0xff);
}

std::size_t sizeAt(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return size;
}

Message readMessage(std::string_view body) {
  const auto kind = static_cast<std::uint8_t>(body.front());
  if (kind < kFirstKind || kind > kLastKind) throw MalformedMessage("a message of an unknown kind");
  Message message{static_cast<MessageKind>(kind)};
  body.remove_prefix(1);
  while (!body.empty()) {
    const std::size_t size = body.size() < kSizeBytes ? kMostMessageBytes : sizeAt(body);
    if (size > body.size() - std::min(body.size(), kSizeBytes)) throw MalformedMessage("a message with a torn field");
    if (message.fields.size() == kMostFields) throw MalformedMessage("a message with too many fields");
    message.fields.emplace_back(body.substr(kSizeBytes, size));
    body.remove_prefix(kSizeBytes + size);
  }
  return message;
}

void checkFields(const Message& message, std::size_t count) {
  if (message.fields.size() != count) throw MalformedMessage("a message with a wrong number of fields");
}

template <class Number>
Number numberOf(const std::string& text, Number min, Number max) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= min && number <= max) return number;
  throw MalformedMessage("a message with a wrong number in a field");
}

void checkOutput(const std::string& output) {
  if (output.size() > kMaxOutput) throw MalformedMessage("an output over the limit");
  if (!json::valid(output)) throw MalformedMessage("an output that is not JSON");
}

}  // namespace

std::string encodeMessage(MessageKind kind, const std::vector<std::string_view>& fields) {
  std::size_t size = 1;
  for (const std::string_view field : fields) size += kSizeBytes + field.size();
  if (size > kMostMessageBytes || fields.size() > kMostFields) throw MalformedMessage("a message over the bounds");
  std::string bytes;
  bytes.reserve(kSizeBytes + size);
  appendSize(bytes, size);
  bytes += static_cast<char>(kind);
  for (const std::string_view field : fields) {
    appendSize(bytes, field.size());
    bytes += field;
  }
  return bytes;
}

std::optional<Message> MessageReader::next() {
  const std::string_view unread = std::string_view(buffer_).substr(begin_);
  if (unread.size() >= kSizeBytes) {
    const std::size_t size = sizeAt(unread);
    if (size == 0 || size > kMostMessageBytes) throw MalformedMessage("a message of a wrong size");
    if (unread.size() - kSizeBytes >= size) {
      Message message = readMessage(unread.substr(kSizeBytes, size));
      begin_ += kSizeBytes + size;
      return message;
    }
    buffer_.reserve(begin_ + kSizeBytes + size);
  }
  buffer_.erase(0, std::exchange(begin_, 0));
  if (buffer_.empty() && buffer_.capacity() > kKeptBytes) buffer_.shrink_to_fit();
  return std::nullopt;
}

std::string writeSetup(const HandlerSetup& setup) {
  const std::string settings = std::to_string(setup.settings.size());
  std::vector<std::string_view> fields{setup.plugin,     setup.env.endpoint, setup.env.worker,
                                       setup.env.script, setup.scripts,      setup.plugins};
  fields.push_back(settings);
  fields.insert(fields.end(), setup.settings.begin(), setup.settings.end());
  for (const auto& [name, value] : setup.env.variables) {
    fields.push_back(name);
    fields.push_back(value);
  }
  return encodeMessage(MessageKind::setup, fields);
}

HandlerSetup readSetup(Message message) {
  std::vector<std::string>& fields = message.fields;
  if (message.kind != MessageKind::setup || fields.size() <= kSetupFields) throw MalformedMessage("not a setup");
  const std::size_t rest = fields.size() - kSetupFields - 1;
  const auto settings = numberOf<std::size_t>(fields[kSetupFields], 0, rest);
  if ((rest - settings) % 2 != 0) throw MalformedMessage("a variable without a value");
  HandlerSetup setup;
  setup.plugin = std::move(fields[0]);
  setup.env.endpoint = std::move(fields[1]);
  setup.env.worker = std::move(fields[2]);
  setup.env.script = std::move(fields[3]);
  setup.scripts = std::move(fields[4]);
  setup.plugins = std::move(fields[5]);
  const auto first = fields.begin() + kSetupFields + 1;
  const auto last = first + static_cast<std::ptrdiff_t>(settings);
  setup.settings.assign(first, last);
  for (auto at = last; at != fields.end(); at += 2) setup.env.variables[*at] = std::move(*(at + 1));
  return setup;
}

std::string writeJob(std::string_view input, const JobContext& context, Instant now) {
  // A duration, because the clocks of two processes may differ.
  const bool hasDeadline = context.deadline() != Instant::max();
  const std::string time = hasDeadline ? std::to_string((context.deadline() - now).count()) : "";
  return encodeMessage(MessageKind::job,
                       {context.id(), std::to_string(context.attempt()), time, context.s3Config(), input});
}

HandedJob readJob(Message message) {
  if (message.kind != MessageKind::job) throw MalformedMessage("not a job");
  checkFields(message, 5);
  std::vector<std::string>& fields = message.fields;
  HandedJob job{std::move(fields[0]), numberOf<std::uint32_t>(fields[1], 0, UINT32_MAX)};
  if (!fields[2].empty()) job.time = Millis(numberOf<std::int64_t>(fields[2], -kLongestTime, kLongestTime));
  job.s3Config = std::move(fields[3]);
  job.input = std::move(fields[4]);
  return job;
}

std::string writeOutcome(const Outcome& outcome) {
  if (const auto* completed = std::get_if<Completed>(&outcome)) {
    return encodeMessage(MessageKind::completed, {completed->output});
  }
  const auto& failed = std::get<Failed>(outcome);
  return encodeMessage(MessageKind::failed, {clipped(failed.error, kMostErrorBytes), failed.output});
}

Outcome readOutcome(Message message) {
  if (message.kind == MessageKind::completed) {
    checkFields(message, 1);
    checkOutput(message.fields[0]);
    return Completed{std::move(message.fields[0])};
  }
  if (message.kind != MessageKind::failed) throw MalformedMessage("not the end of a run");
  checkFields(message, 2);
  if (!message.fields[1].empty()) checkOutput(message.fields[1]);
  return Failed{std::move(message.fields[0]), std::move(message.fields[1])};
}

std::string writeLine(LogLevel level, std::string_view line) {
  return encodeMessage(MessageKind::line, {std::to_string(static_cast<int>(level)), line});
}

LogLine readLine(Message message) {
  if (message.kind != MessageKind::line) throw MalformedMessage("not a line");
  checkFields(message, 2);
  const int level = numberOf<int>(message.fields[0], 0, static_cast<int>(LogLevel::error));
  return {static_cast<LogLevel>(level), std::move(message.fields[1])};
}

}  // namespace jobq::worker
