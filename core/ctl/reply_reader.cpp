#include "core/ctl/reply_reader.h"

#include <Poco/Dynamic/Var.h>
#include <Poco/Exception.h>
#include <Poco/JSON/Parser.h>

#include "core/ctl/exit_code.h"

namespace jobq::ctl {
namespace {

template <class Pointer>
Pointer readAs(const std::string& text) {
  try {
    return Poco::JSON::Parser().parse(text).extract<Pointer>();
  } catch (const Poco::Exception&) {
    throw Failure(ExitCode::unreachable, "what answered is not a jobq server: check the address");
  }
}

}  // namespace

Poco::JSON::Object::Ptr readObject(const std::string& text) { return readAs<Poco::JSON::Object::Ptr>(text); }

Poco::JSON::Array::Ptr readArray(const std::string& text) { return readAs<Poco::JSON::Array::Ptr>(text); }

std::string cell(const Poco::JSON::Object& object, const std::string& key) {
  const Poco::Dynamic::Var value = object.get(key);
  return value.isEmpty() ? "-" : value.toString();
}

std::string listCell(const Poco::JSON::Object& object, const std::string& key, const std::string& whenEmpty) {
  const Poco::JSON::Array::Ptr array = object.getArray(key);
  std::string text;
  for (std::size_t i = 0; !array.isNull() && i < array->size(); ++i) {
    text += (text.empty() ? "" : ",") + array->get(static_cast<unsigned>(i)).toString();
  }
  return text.empty() ? whenEmpty : text;
}

std::vector<Poco::JSON::Object::Ptr> objects(const Poco::JSON::Array::Ptr& array) {
  std::vector<Poco::JSON::Object::Ptr> all;
  for (std::size_t i = 0; !array.isNull() && i < array->size(); ++i) {
    const Poco::JSON::Object::Ptr object = array->getObject(static_cast<unsigned>(i));
    if (!object.isNull()) all.push_back(object);
  }
  return all;
}

}  // namespace jobq::ctl
