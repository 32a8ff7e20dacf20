// What load balancers and service managers ask, and the description of the API: without a key.
#include "core/http/error_reply.h"
#include "core/http/openapi.h"
#include "core/http/routes.h"
#include "jobq/storage.h"

namespace jobq {

void addProcessRoutes(Router& router, Storage& storage, std::function<bool()> draining) {
  router.add({{"GET"}, "/openapi.json", Scope::none, 1024, false, [](const Call&) {
                return Reply{200, openapiText()};
              }});
  router.add({{"GET"}, "/healthz", Scope::none, 1024, false, [](const Call&) {
                return Reply{200, R"({"status":"alive"})"};
              }});
  router.add(
      {{"GET"}, "/readyz", Scope::none, 1024, false, [&storage, draining = std::move(draining)](const Call& call) {
         if (draining()) return unavailable(call.path, "the server is shutting down");
         storage.check();
         return Reply{200, R"({"status":"ready"})"};
       }});
}

}  // namespace jobq
