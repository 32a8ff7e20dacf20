#include "core/http/api/management/form_response.h"

#include "core/http/api/error_response.h"
#include "jobq/json_writer.h"

namespace jobq {

ApiResponse failureResponse(const ApiRequest& request, const Failure& failure) {
  if (failure.kind == Failure::Kind::notFound) return errorResponse(request.path, 404, failure.message());
  const auto writeFaults = [&failure](json::ArrayWriter& errors) {
    for (const FieldFault& fault : failure.faults) {
      errors.object([&fault](json::ObjectWriter& error) {
        error.member("field", fault.field);
        error.member("message", fault.message);
      });
    }
  };
  return {400, json::object([&](json::ObjectWriter& out) {
            out.member("message", failure.message());
            out.array("errors", writeFaults);
          })};
}

}  // namespace jobq
