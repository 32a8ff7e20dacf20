#include "core/cli/answer_reader.h"

#include <Poco/Dynamic/Var.h>
#include <Poco/Exception.h>
#include <Poco/JSON/Parser.h>

#include <algorithm>
#include <variant>

#include "core/client/exit_code.h"
#include "core/client/table_print.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

constexpr std::size_t kPage = 1'000;

[[noreturn]] void refuseStranger() {
  throw CommandError(ExitCode::unreachable, "the answer does not come from a jobq server: check the address");
}

template <class Pointer>
Pointer readAs(const std::string& text) {
  try {
    return Poco::JSON::Parser().parse(text).extract<Pointer>();
  } catch (const Poco::Exception&) {
    refuseStranger();
  }
}

std::string memberCell(const json::Value& value) {
  if (value.kind == json::Kind::null) return "-";
  const std::string text = json::toText(value).value_or(std::string(value.raw));
  return text.empty() ? "-" : text;
}

}  // namespace

Poco::JSON::Object::Ptr readObject(const std::string& text) { return readAs<Poco::JSON::Object::Ptr>(text); }

Poco::JSON::Array::Ptr readArray(const std::string& text) { return readAs<Poco::JSON::Array::Ptr>(text); }

std::string getList(const ApiClient& api, const std::string& path) {
  std::string all = "[";
  std::string cursor;
  for (bool hasMore = true; hasMore;) {
    const std::string answer = api.get(path + "?limit=" + std::to_string(kPage) +
                                       (cursor.empty() ? "" : "&cursor=" + ApiClient::encode(cursor)));
    const std::vector<Poco::JSON::Object::Ptr> page = objects(readArray(answer));
    // A server without pages answers the whole list to each call.
    const bool isNext = cursor.empty() || (!page.empty() && cell(*page.front(), "id") > cursor);
    if (!isNext) break;
    if (all.size() > 1) all += ',';
    all += answer.substr(answer.find('[') + 1, answer.rfind(']') - answer.find('[') - 1);
    hasMore = page.size() == kPage;
    if (hasMore) cursor = cell(*page.back(), "id");
  }
  return all + ']';
}

std::string cell(const Poco::JSON::Object& object, const std::string& key) {
  const Poco::Dynamic::Var value = object.get(key);
  const std::string text = value.isEmpty() ? "" : value.toString();
  return text.empty() ? "-" : text;
}

std::string listCell(const Poco::JSON::Object& object, const std::string& key, const std::string& whenEmpty) {
  const Poco::JSON::Array::Ptr array = object.getArray(key);
  std::string text;
  for (std::size_t i = 0; !array.isNull() && i < array->size(); ++i) {
    text += (text.empty() ? "" : ",") + array->get(static_cast<unsigned>(i)).toString();
  }
  return text.empty() ? whenEmpty : text;
}

void printMembers(const std::string& text, const std::vector<std::string>& without, std::ostream& out) {
  const auto scanned = json::read(text);
  const auto* object = std::get_if<json::Document>(&scanned);
  if (!object || object->root.kind != json::Kind::object) refuseStranger();
  Table table;
  for (const json::Member& member : object->members) {
    const std::string name = json::decode(member.key);
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    table.add({name, memberCell(member.value)});
  }
  table.print(out);
}

std::vector<Poco::JSON::Object::Ptr> objects(const Poco::JSON::Array::Ptr& array) {
  std::vector<Poco::JSON::Object::Ptr> all;
  for (std::size_t i = 0; !array.isNull() && i < array->size(); ++i) {
    const Poco::JSON::Object::Ptr object = array->getObject(static_cast<unsigned>(i));
    if (!object.isNull()) all.push_back(object);
  }
  return all;
}

}  // namespace jobq::cli
