#include "core/http/api/openapi.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "core/http/api/field_schemas.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::string_view kMount = "/v2/";
constexpr std::string_view kPathOfMount = "$request.path.endpoint";  // in each link to a call of a mount
constexpr std::string_view kLinks = "#/components/links/";
constexpr const char* kSuffix = "ForSdk";  // of the operations and links of the second mount

struct Counterpart {
  std::string_view first;
  std::string_view second;
};
// Components of the first mount with a counterpart of their own in the second one.
constexpr std::array<Counterpart, 5> kCounterparts{{
    {"#/components/parameters/wait", "#/components/parameters/lenientWait"},
    {"#/components/parameters/hold", "#/components/parameters/lenientHold"},
    {"#/components/schemas/JobRequest", "#/components/schemas/LenientJobRequest"},
    {"#/components/schemas/Policy", "#/components/schemas/LenientPolicy"},
    {"#/components/schemas/Stream", "#/components/schemas/StreamObject"},
}};

json::Document parse(std::string_view text) { return std::get<json::Document>(json::read(text)); }

// Returns the id of an operation in the second mount: `status` is `statusForSdk`, `statusByPost` `statusForSdkByPost`.
std::string operationOfSdk(const std::string& name) {
  constexpr std::string_view kByPost = "ByPost";
  if (!name.ends_with(kByPost)) return name + kSuffix;
  return name.substr(0, name.size() - kByPost.size()) + kSuffix + std::string(kByPost);
}

std::string referenceOfSdk(const std::string& name) {
  if (name.starts_with(kLinks)) return name + kSuffix;
  const auto found = std::find_if(kCounterparts.begin(), kCounterparts.end(),
                                  [&name](const Counterpart& each) { return each.first == name; });
  return found == kCounterparts.end() ? name : std::string(found->second);
}

// Returns the JSON text of a part of the first mount as the second mount has the part. `key` is the name of the member
// with the part.
std::string ofSdk(const json::Value& part, std::string_view key) {
  if (part.kind == json::Kind::object) {
    return json::object([&part](json::ObjectWriter& out) {
      for (const json::Member& member : parse(part.raw).members) {
        const std::string name = json::decode(member.key);
        out.namedRaw(name, ofSdk(member.value, name));
      }
    });
  }
  if (part.kind == json::Kind::array) {
    return json::array([&](json::ArrayWriter& out) {
      for (const json::Value& element : parse(part.raw).elements) out.raw(ofSdk(element, key));
    });
  }
  if (key == "operationId") return json::quoted(operationOfSdk(json::decode(part.raw)));
  if (key == "$ref") return json::quoted(referenceOfSdk(json::decode(part.raw)));
  if (key == "tags" && part.raw == "\"Jobs\"") return "\"Jobs for SDKs\"";
  return std::string(part.raw);
}

// Writes the requirements of an operation: either form of a key, with one of the scopes as a role.
void writeSecurity(json::ObjectWriter& out, const json::Value& scopes) {
  out.array("security", [&scopes](json::ArrayWriter& requirements) {
    for (const char* scheme : {"bearer", "bareKey"}) {
      for (const json::Value& scope : parse(scopes.raw).elements) {
        requirements.object(
            [&](json::ObjectWriter& each) { each.namedRaw(scheme, "[" + std::string(scope.raw) + "]"); });
      }
    }
  });
}

// Returns the JSON text of a path with `security` in place of `x-scopes`.
std::string withSecurity(std::string_view path) {
  return json::object([path](json::ObjectWriter& out) {
    for (const json::Member& member : parse(path).members) {
      if (member.value.kind != json::Kind::object) {
        out.namedRaw(member.key, member.value.raw);
        continue;
      }
      out.namedRaw(member.key, json::object([&member](json::ObjectWriter& operation) {
                     for (const json::Member& part : parse(member.value.raw).members) {
                       if (part.key == "x-scopes") {
                         writeSecurity(operation, part.value);
                       } else {
                         operation.namedRaw(part.key, part.value.raw);
                       }
                     }
                   }));
    }
  });
}

std::string paths(std::string_view text) {
  const json::Document source = parse(text);
  return json::object([&source](json::ObjectWriter& out) {
    const auto isMounted = [](const json::Member& path) { return path.key.starts_with(kMount); };
    for (const json::Member& path : source.members) {
      if (isMounted(path)) out.namedRaw(path.key, withSecurity(path.value.raw));
    }
    for (const json::Member& path : source.members) {
      if (isMounted(path)) out.namedRaw("/sdk" + std::string(path.key), withSecurity(ofSdk(path.value, "")));
    }
    for (const json::Member& path : source.members) {
      if (!isMounted(path)) out.namedRaw(path.key, withSecurity(path.value.raw));
    }
  });
}

std::string links(std::string_view text) {
  return json::object([text](json::ObjectWriter& out) {
    for (const json::Member& link : parse(text).members) {
      out.namedRaw(link.key, link.value.raw);
      const bool isMounted = link.value.raw.find(kPathOfMount) != std::string_view::npos;
      if (isMounted) out.namedRaw(std::string(link.key) + kSuffix, ofSdk(link.value, ""));
    }
  });
}

std::string schemas(std::string_view text) {
  return json::object([text](json::ObjectWriter& out) {
    for (const json::Member& schema : parse(text).members) {
      out.namedRaw(schema.key, withFields(schema.key, schema.value.raw));
      if (schema.key == "JobRequest") out.raw("LenientJobRequest", ofSdk(schema.value, ""));
    }
  });
}

std::string components(std::string_view text) {
  return json::object([text](json::ObjectWriter& out) {
    for (const json::Member& part : parse(text).members) {
      const std::string_view raw = part.value.raw;
      out.namedRaw(part.key, part.key == "links"     ? links(raw)
                             : part.key == "schemas" ? schemas(raw)
                                                     : std::string(raw));
    }
  });
}

}  // namespace

std::string completedOpenapi(std::string_view source) {
  return json::object([source](json::ObjectWriter& out) {
    for (const json::Member& part : parse(source).members) {
      const std::string_view raw = part.value.raw;
      out.namedRaw(part.key, part.key == "paths"        ? paths(raw)
                             : part.key == "components" ? components(raw)
                                                        : std::string(raw));
    }
  });
}

const std::string& openapiText() {
  static const std::string kText = completedOpenapi(openapiSource());
  return kText;
}

}  // namespace jobq
