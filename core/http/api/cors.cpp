#include "core/http/api/cors.h"

namespace jobq {
namespace {

constexpr const char* kRemembered = "600";  // seconds for which a browser may keep the answer to a preflight

}  // namespace

bool CorsPolicy::allows(std::string_view origin) const {
  return !origin.empty() && (origins_.contains("*") || origins_.contains(std::string(origin)));
}

void CorsPolicy::addTo(ApiResponse& response, std::string_view origin) const {
  if (!enabled()) return;
  const bool any = origins_.contains("*");
  // A cache must not return the answer for one origin to another origin.
  if (!any) response.headers.emplace_back("Vary", "Origin");
  if (!allows(origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", any ? std::string("*") : std::string(origin));
  response.headers.emplace_back("Access-Control-Expose-Headers", "*");
}

ApiResponse CorsPolicy::preflight(std::string_view origin, const std::string& methods,
                                  const std::string& fields) const {
  ApiResponse response{204, ""};
  if (!allows(origin)) return response;
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  if (!fields.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", fields);
  response.headers.emplace_back("Access-Control-Max-Age", kRemembered);
  return response;
}

}  // namespace jobq
