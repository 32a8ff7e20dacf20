// Reads the server's own objects (keys, plugins, counters) with Poco JSON for printing. Data of callers, such as the
// output of a job, is sliced with sdk/include/jobq/json.h instead.
#pragma once

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/cli/api_client.h"

namespace jobq::cli {

/// Returns the text as a JSON object. Throws CommandError(unreachable) for any other text: the answer did not come from
/// a jobq server.
Poco::JSON::Object::Ptr readObject(const std::string& text);
/// Returns the text as a JSON array. Throws CommandError(unreachable) for any other text.
Poco::JSON::Array::Ptr readArray(const std::string& text);

/// Reads a list of the server in pages of 1,000 elements, and returns the text of an array with all elements. Throws
/// like ApiClient::get().
std::string getList(const ApiClient& api, const std::string& path);

/// Returns the member as text, or `-` if the member is absent, null or empty.
std::string cell(const Poco::JSON::Object& object, const std::string& key);

/// Returns the elements of the array `key` separated by commas, or `whenEmpty` if the array is absent or empty.
std::string listCell(const Poco::JSON::Object& object, const std::string& key, const std::string& whenEmpty);

/// Prints the members of the object `text`, one a line, in their order, without the members named in `without`. Arrays
/// and objects are printed as JSON. Throws CommandError(unreachable) if `text` is no JSON object.
void printMembers(const std::string& text, const std::vector<std::string>& without, std::ostream& out);

/// Returns the objects among the elements of an array; elements of other kinds are left out.
std::vector<Poco::JSON::Object::Ptr> objects(const Poco::JSON::Array::Ptr& array);

}  // namespace jobq::cli
