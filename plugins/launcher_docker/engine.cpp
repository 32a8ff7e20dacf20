#include "engine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "jobq/error.h"
#include "jobq/json_writer.h"
#include "labels.h"
#include "log_frames.h"
#include "pull_messages.h"

namespace jobq::docker {
namespace {

constexpr const char* kApi = "1.41";
constexpr Millis kLongestPull = std::chrono::hours(6);
constexpr Millis kLongestSilence = std::chrono::minutes(10);
// Longer than the usual 10 s: the daemon copies a file system, or sets up devices.
constexpr Millis kLongestStart = std::chrono::seconds(60);
constexpr Millis kLongestLife = std::chrono::hours(24 * 365);
constexpr std::size_t kMostListBytes = 16 * 1024 * 1024;

EngineFault faultOf(const SocketAnswer& answer) {
  const std::string message = readMessage(answer.body);
  return {answer.status, "Docker answered " + std::to_string(answer.status) + (message.empty() ? "" : ": " + message),
          true};
}

/// Returns the value made by `read` of an answer. An answer in an unknown form is a failure of the call.
template <class Read>
auto readWith(Read read, std::variant<std::string, EngineFault> answer)
    -> std::variant<decltype(read(std::string_view())), EngineFault> {
  if (auto* fault = std::get_if<EngineFault>(&answer)) return std::move(*fault);
  try {
    return read(std::get<std::string>(answer));
  } catch (const Error& error) {
    return EngineFault{0, error.what(), false};
  }
}

std::optional<EngineFault> faultIn(std::variant<std::string, EngineFault> answer, std::initializer_list<int> harmless) {
  auto* fault = std::get_if<EngineFault>(&answer);
  if (fault == nullptr || std::find(harmless.begin(), harmless.end(), fault->status) != harmless.end()) {
    return std::nullopt;
  }
  return std::move(*fault);
}

std::string pathOf(std::string_view id, std::string_view rest) {
  return "/containers/" + encodeForUrl(id) + std::string(rest);
}

}  // namespace

Engine::Engine(std::string socket, std::stop_token stop, Clock::time_point end)
    : socket_(std::move(socket)), stop_(std::move(stop)), end_(end), api_(kApi) {}

std::string Engine::prefix() const {
  Lock lock(mutex_);
  return "/v" + api_;
}

std::variant<std::string, EngineFault> Engine::answerTo(SocketCall call) { return answerTo(std::move(call), stop_); }

std::variant<std::string, EngineFault> Engine::answerTo(SocketCall call, const std::stop_token& stop) {
  constexpr int kRedirect = 300;
  if (end_ != Clock::time_point::max()) {
    call.limit = std::min(call.limit, std::chrono::ceil<Millis>(end_ - Clock::now()));
  }
  auto result = callSocket(socket_, call, stop);
  if (auto* none = std::get_if<NoAnswer>(&result)) {
    return EngineFault{0, "Docker does not answer at " + socket_ + ": " + none->reason, !none->wasReached};
  }
  auto& answer = std::get<SocketAnswer>(result);
  if (answer.status >= kRedirect) return faultOf(answer);
  return std::move(answer.body);
}

std::variant<EngineVersion, EngineFault> Engine::connect() {
  auto version = readWith(readVersion, answerTo({"GET", "/version", ""}));
  if (const auto* found = std::get_if<EngineVersion>(&version)) {
    if (isOlderApi(found->api, kApi)) {
      return EngineFault{0,
                         "Docker " + found->product + " speaks version " + found->api +
                             " of its API, and 1.41 is needed: use Docker 20.10 or newer",
                         true};
    }
    Lock lock(mutex_);
    api_ = isOlderApi(kApi, found->leastApi) ? found->leastApi : kApi;
    isPodman_ = found->isPodman;
  }
  return version;
}

void Engine::readGpuRequest() {
  const auto hasRuntime = readWith(readHasGpuRuntime, answerTo({"GET", prefix() + "/info", ""}));
  const auto* const has = std::get_if<bool>(&hasRuntime);
  const GpuRequest ofDocker = has != nullptr && *has ? GpuRequest::byCount : GpuRequest::byId;
  Lock lock(mutex_);
  gpuRequest_ = isPodman_ ? GpuRequest::byCdiName : ofDocker;
}

GpuRequest Engine::gpuRequest() const {
  Lock lock(mutex_);
  return gpuRequest_;
}

std::variant<std::string, EngineFault> Engine::createContainer(std::string_view name, std::string body) {
  SocketCall create{"POST", prefix() + "/containers/create?name=" + encodeForUrl(name), std::move(body)};
  create.limit = kLongestStart;
  return readWith(readCreatedId, answerTo(std::move(create)));
}

std::optional<EngineFault> Engine::pullImage(const ImageReference& image, const std::string& registryAuth,
                                             const std::stop_token& stop) {
  PullMessages messages;
  SocketCall pull{
      "POST",
      prefix() + "/images/create?fromImage=" + encodeForUrl(image.name) + "&tag=" + encodeForUrl(versionOf(image)), ""};
  if (!registryAuth.empty()) pull.headers.push_back("X-Registry-Auth: " + registryAuth);
  pull.limit = kLongestPull;
  pull.silence = kLongestSilence;
  pull.sink = &messages;
  auto fault = faultIn(answerTo(std::move(pull), stop), {});
  messages.finish();
  if (!fault && messages.error()) return EngineFault{0, *messages.error(), true};
  return fault;
}

std::optional<EngineFault> Engine::startContainer(std::string_view id) {
  SocketCall start{"POST", prefix() + pathOf(id, "/start"), ""};
  start.limit = kLongestStart;
  return faultIn(answerTo(std::move(start)), {kNotModified});
}

std::optional<EngineFault> Engine::signalContainer(std::string_view id, std::string_view signal) {
  const std::string query = "/kill?signal=" + std::string(signal);
  return faultIn(answerTo({"POST", prefix() + pathOf(id, query), ""}), {kNotFound, kConflict});
}

std::optional<EngineFault> Engine::removeContainer(std::string_view id) {
  return faultIn(answerTo({"DELETE", prefix() + pathOf(id, "?force=true&v=true"), ""}), {kNotFound});
}

std::variant<std::vector<ListedContainer>, EngineFault> Engine::listContainers(std::string_view server) {
  const std::string filters = json::object([server](json::ObjectWriter& out) {
    out.array("label", [server](json::ArrayWriter& labels) {
      labels.element(std::string(kServerLabel) + "=" + std::string(server));
    });
  });
  SocketCall list{"GET", prefix() + "/containers/json?all=true&filters=" + encodeForUrl(filters), ""};
  list.mostBytes = kMostListBytes;
  return readWith(readContainers, answerTo(std::move(list)));
}

std::variant<EndedState, EngineFault> Engine::readEnd(std::string_view id) {
  return readWith(readEndedState, answerTo({"GET", prefix() + pathOf(id, "/json"), ""}));
}

std::optional<EngineFault> Engine::followLog(std::string_view id, std::optional<std::int64_t> since, BodySink& sink,
                                             const std::stop_token& stop) {
  const std::string query = since ? "&since=" + std::to_string(*since) : std::string();
  SocketCall follow{"GET", prefix() + pathOf(id, "/logs?stdout=1&stderr=1&follow=1" + query), ""};
  follow.limit = kLongestLife;
  follow.sink = &sink;
  return faultIn(answerTo(std::move(follow), stop), {});
}

std::string Engine::readLastLine(std::string_view id) {
  // More than one line, because the last lines of a program are often blank.
  auto answer = answerTo({"GET", prefix() + pathOf(id, "/logs?stdout=1&stderr=1&tail=5"), ""});
  const auto* frames = std::get_if<std::string>(&answer);
  return frames == nullptr ? std::string() : lastLineOf(textOfFrames(*frames));
}

}  // namespace jobq::docker
