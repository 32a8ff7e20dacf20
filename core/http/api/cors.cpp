#include "core/http/api/cors.h"

namespace jobq {
namespace {

constexpr const char* kRemembered = "600";  // seconds for which a browser may keep the answer to a preflight

}  // namespace

bool CorsPolicy::allows(std::string_view origin) const {
  return !origin.empty() && (origins_.contains("*") || origins_.contains(std::string(origin)));
}

void CorsPolicy::addTo(ApiResponse& reply, std::string_view origin) const {
  if (!enabled()) return;
  const bool any = origins_.contains("*");
  // A cache must not return the answer for one origin to another origin.
  if (!any) reply.headers.emplace_back("Vary", "Origin");
  if (!allows(origin)) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", any ? std::string("*") : std::string(origin));
  reply.headers.emplace_back("Access-Control-Expose-Headers", "*");
}

ApiResponse CorsPolicy::preflight(std::string_view origin, const std::string& methods,
                                  const std::string& fields) const {
  ApiResponse reply{204, ""};
  if (!allows(origin)) return reply;
  reply.headers.emplace_back("Access-Control-Allow-Methods", methods);
  if (!fields.empty()) reply.headers.emplace_back("Access-Control-Allow-Headers", fields);
  reply.headers.emplace_back("Access-Control-Max-Age", kRemembered);
  return reply;
}

}  // namespace jobq
