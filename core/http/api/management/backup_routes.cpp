// Route `/v1/backup`: returns the content of the storage as one file while the server works.
#include <memory>
#include <variant>

#include "core/http/api/error_response.h"
#include "core/http/api/management/backups.h"
#include "core/http/api/routes.h"

namespace jobq {
namespace {

ApiResponse backupResponse(const ApiRequest& request, const BackupDependencies& with) {
  if (with.draining)
    return unavailable(request.path, "the server is shutting down: call POST /v1/backup again after its next start");
  const Backups::MakeResult result = with.backups.make(request.client->disconnected());
  if (const auto* copy = std::get_if<std::shared_ptr<const BodyFile>>(&result)) {
    return {200, "", {{"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"}}, *copy};
  }
  if (std::holds_alternative<Backups::Busy>(result)) {
    return errorResponse(request.path, 409, "another backup is being written or sent: try again when it has ended");
  }
  if (std::holds_alternative<Backups::Unsupported>(result)) {
    return errorResponse(request.path, 409,
                         "the storage " + with.storageName +
                             " cannot be copied by the server: use storage = sqlite, or the tools of its own database");
  }
  return unavailable(
      request.path,
      "the backup was stopped, because the server is shutting down: call POST /v1/backup again after its next start");
}

}  // namespace

void addBackupRoutes(Router& router, const BackupDependencies& with) {
  router.add({{"POST"}, "/v1/backup", Scope::admin, 1024, false, [with](ApiRequest& request) {
                return backupResponse(request, with);
              }});
}

}  // namespace jobq
