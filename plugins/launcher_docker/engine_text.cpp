#include "engine_text.h"

#include <charconv>
#include <cstddef>
#include <utility>
#include <variant>

#include "jobq/error.h"
#include "jobq/fields.h"
#include "jobq/json.h"
#include "labels.h"
#include "log_frames.h"

namespace jobq::docker {
namespace {

constexpr const char* kAnswer = "the answer of Docker";
constexpr std::size_t kMostComponents = 100;

std::pair<int, int> numbersOf(std::string_view version) {
  std::pair<int, int> numbers{0, 0};
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, numbers.first);
  if (major.ptr != end && *major.ptr == '.') std::from_chars(major.ptr + 1, end, numbers.second);
  return numbers;
}

}  // namespace

EngineVersion readVersion(std::string_view body) {
  const Fields fields(kAnswer, body);
  EngineVersion version;
  version.product = fields.text("Version").value_or("");
  version.api = fields.requiredText("ApiVersion");
  version.leastApi = fields.text("MinAPIVersion").value_or("");
  if (fields.has("Components")) {
    for (const json::Value& each : fields.list("Components", "components", kMostComponents)) {
      version.isPodman = version.isPodman || Fields(kAnswer, each.raw).text("Name") == "Podman Engine";
    }
  }
  return version;
}

bool readHasGpuRuntime(std::string_view body) {
  const Fields fields(kAnswer, body);
  return fields.has("Runtimes") && fields.requiredObject("Runtimes").has("nvidia");
}

std::string readCreatedId(std::string_view body) { return Fields(kAnswer, body).requiredText("Id"); }

std::vector<ListedContainer> readContainers(std::string_view body) {
  const auto scanned = json::read(body);
  const auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr || document->root.kind != json::Kind::array)
    throw Error("the list of containers is no array");
  std::vector<ListedContainer> containers;
  for (const json::Value& element : document->elements) {
    const Fields fields(kAnswer, element.raw);
    ListedContainer container;
    container.id = fields.requiredText("Id");
    container.state = fields.requiredText("State");
    container.worker = fields.requiredObject("Labels").text(kWorkerLabel).value_or("");
    containers.push_back(std::move(container));
  }
  return containers;
}

EndedState readEndedState(std::string_view body) {
  const Fields fields = Fields(kAnswer, body).requiredObject("State");
  EndedState state;
  state.exitCode = fields.requiredInteger("ExitCode", INT64_MIN, INT64_MAX);
  state.isOutOfMemory = fields.flag("OOMKilled").value_or(false);
  state.error = asClause(fields.text("Error").value_or(""));
  return state;
}

std::string readMessage(std::string_view body) {
  const auto scanned = json::read(body);
  if (const auto* document = std::get_if<json::Document>(&scanned)) {
    if (const auto message = document->find("message")) return asClause(json::toText(*message).value_or(""));
  }
  return asClause(body);
}

bool isOlderApi(std::string_view left, std::string_view right) { return numbersOf(left) < numbersOf(right); }

}  // namespace jobq::docker
