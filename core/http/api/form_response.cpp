#include "core/http/api/form_response.h"

namespace jobq {

ApiResponse faultResponse(const FieldFaults& faults) {
  std::string message;
  std::string errors;
  for (const FieldFault& fault : faults) {
    message += (message.empty() ? "" : "; ") + fault.message;
    errors += (errors.empty() ? "" : ",") + std::string("{\"field\":") + write(fault.field) +
              ",\"message\":" + write(fault.message) + "}";
  }
  return {400, "{\"message\":" + write(message) + ",\"errors\":[" + errors + "]}"};
}

bool readFlag(const ApiRequest& call, const char* name, FieldFaults& faults) {
  const auto found = call.query.find(name);
  if (found == call.query.end()) return false;
  if (call.query.count(name) > 1) {
    faults.push_back({name, std::string(name) + " appears more than once in the query: send it once"});
  } else if (found->second != "true" && found->second != "false") {
    faults.push_back({name, std::string(name) + " must be true or false"});
  }
  return found->second == "true";
}

}  // namespace jobq
