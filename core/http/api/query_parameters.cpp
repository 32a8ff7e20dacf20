#include "core/http/api/query_parameters.h"

#include <optional>
#include <utility>
#include <variant>

#include "jobq/json.h"

namespace jobq {

Result<void> checkOnce(const ApiRequest& request, const char* name) {
  if (request.query.count(name) < 2) return {};
  return invalid(std::string(name) + " appears more than once in the query: send it once", name);
}

Result<std::string> readText(const ApiRequest& request, const char* name) {
  if (const auto good = checkOnce(request, name); !good) return good.failure();
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

Result<std::int64_t> readNumber(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                                std::int64_t fallback) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  if (const auto good = checkOnce(request, name); !good) return good.failure();
  const auto text = json::read(found->second);
  const auto* document = std::get_if<json::Document>(&text);
  const bool bare = document != nullptr && document->root.raw == found->second;  // no blanks around the number
  const auto number = bare ? readInteger(document->root, range, otherwise) : std::nullopt;
  if (number) return *number;
  return invalid(
      std::string(name) + " must be an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max),
      name);
}

Result<std::set<std::string>> readFlags(const ApiRequest& request, std::initializer_list<const char*> names) {
  std::set<std::string> set;
  FieldFaults faults;
  for (const char* name : names) {
    const auto found = request.query.find(name);
    if (found == request.query.end()) continue;
    if (const auto good = checkOnce(request, name); !good) {
      faults.push_back(good.failure().faults.front());
    } else if (found->second == "true") {
      set.insert(name);
    } else if (found->second != "false") {
      faults.push_back({name, std::string(name) + " must be true or false"});
    }
  }
  if (!faults.empty()) return Failure{Failure::Kind::invalid, std::move(faults)};
  return set;
}

}  // namespace jobq
