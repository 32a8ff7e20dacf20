// The server's own objects (keys, plugins, counters), read with Poco JSON for printing. What belongs to a caller, a
// job's output, never comes through here: it is sliced with jobq/json.h.
#pragma once

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>

#include <ostream>
#include <string>
#include <vector>

namespace jobq::ctl {

/// Both throw Failure(unreachable) when the text is something else: then it was not a jobq server that answered.
Poco::JSON::Object::Ptr readObject(const std::string& text);
Poco::JSON::Array::Ptr readArray(const std::string& text);

/// The member as text; `-` when it is absent, null or empty.
std::string cell(const Poco::JSON::Object& object, const std::string& key);

/// The array's elements, separated by commas; `whenEmpty` when it is absent or has none.
std::string listCell(const Poco::JSON::Object& object, const std::string& key, const std::string& whenEmpty);

/// The object's members, one a line, in their order; those named in `without` are left out. Arrays and objects are
/// shown as their JSON.
void printMembers(const std::string& text, const std::vector<std::string>& without, std::ostream& out);

/// The elements of an array of objects; elements of other kinds are left out.
std::vector<Poco::JSON::Object::Ptr> objects(const Poco::JSON::Array::Ptr& array);

}  // namespace jobq::ctl
