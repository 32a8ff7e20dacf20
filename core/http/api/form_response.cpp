#include "core/http/api/form_response.h"

#include "core/http/api/error_response.h"
#include "core/http/api/query_parameters.h"
#include "jobq/json_writer.h"

namespace jobq {

ApiResponse faultResponse(const FieldFaults& faults) {
  const auto writeFaults = [&faults](json::ArrayWriter& errors) {
    for (const FieldFault& fault : faults) {
      errors.object([&fault](json::ObjectWriter& error) {
        error.member("field", fault.field);
        error.member("message", fault.message);
      });
    }
  };
  return {400, json::object([&](json::ObjectWriter& out) {
            out.member("message", Failure{Failure::Kind::invalid, faults}.message());
            out.array("errors", writeFaults);
          })};
}

ApiResponse failureResponse(const ApiRequest& call, const Failure& failure) {
  if (failure.kind == Failure::Kind::notFound) return errorResponse(call.path, 404, failure.message());
  return faultResponse(failure.faults);
}

bool readFlag(const ApiRequest& call, const char* name, FieldFaults& faults) {
  const auto found = call.query.find(name);
  if (found == call.query.end()) return false;
  if (const auto good = checkOnce(call, name); !good) {
    faults.insert(faults.end(), good.failure().faults.begin(), good.failure().faults.end());
  } else if (found->second != "true" && found->second != "false") {
    faults.push_back({name, std::string(name) + " must be true or false"});
  }
  return found->second == "true";
}

}  // namespace jobq
