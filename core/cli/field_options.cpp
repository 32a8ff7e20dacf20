#include "core/cli/field_options.h"

#include <Poco/Ascii.h>
#include <Poco/StringTokenizer.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/client/exit_code.h"
#include "core/client/input_text.h"
#include "core/client/table_print.h"
#include "core/config/endpoint_spec.h"
#include "core/config/template.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

constexpr const char* kFile = "file";

[[noreturn]] void refuse(const FieldOption& field, const std::string& wanted, const std::string& text) {
  throw CommandError(ExitCode::usage, "--" + field.option + " takes " + wanted + ", not '" + harmless(text) + "'");
}

std::string wholeNumber(const FieldOption& field, const std::string& text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const bool digits = text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  const bool zeros = text.size() > sign + 1 && text[sign] == '0';
  if (!digits || zeros) refuse(field, "a whole number", text);
  return text;
}

std::string textArray(const std::vector<std::string>& texts) {
  return json::array([&texts](json::ArrayWriter& out) {
    for (const std::string& text : texts) out.element(text);
  });
}

std::vector<std::string> wordsOf(const std::string& text) {
  const Poco::StringTokenizer words(text, ",",
                                    Poco::StringTokenizer::TOK_TRIM | Poco::StringTokenizer::TOK_IGNORE_EMPTY);
  return {words.begin(), words.end()};
}

std::string textMap(const FieldOption& field, const std::vector<std::string>& pairs) {
  return json::object([&](json::ObjectWriter& out) {
    for (const std::string& pair : pairs) {
      const std::size_t sign = pair.find('=');
      if (sign == std::string::npos || sign == 0) refuse(field, field.value, pair);
      out.namedMember(pair.substr(0, sign), pair.substr(sign + 1));
    }
  });
}

std::string valueOf(const FieldOption& field, const std::vector<std::string>& given) {
  switch (field.kind) {
    case FieldKind::text: return json::quoted(given.back());
    case FieldKind::whole: return wholeNumber(field, given.back());
    case FieldKind::flag:
      if (given.back() != "true" && given.back() != "false") refuse(field, "true or false", given.back());
      return given.back();
    case FieldKind::list: return textArray(wordsOf(given.back()));
    case FieldKind::texts: return textArray(given);
    case FieldKind::map: return textMap(field, given);
  }
  return "null";
}

FieldKind kindOf(const FieldFacts& field) {
  if (field.type == "integer") return FieldKind::whole;
  if (field.type == "boolean") return FieldKind::flag;
  if (field.type == "array") return field.isCommaList ? FieldKind::list : FieldKind::texts;
  return field.type == "object" ? FieldKind::map : FieldKind::text;
}

std::string placeholderOf(const FieldFacts& field) {
  if (!field.placeholder.empty()) return field.placeholder;
  if (field.unit == "ms") return "MS";
  if (field.unit == "s") return "SECONDS";
  if (field.type == "integer") return "N";
  if (field.type == "boolean") return "true|false";
  if (field.type == "object") return "NAME=VALUE";
  std::string all;
  for (const std::string& choice : field.choices) all += (all.empty() ? "" : "|") + choice;
  return all;
}

// Returns the first sentence as a part of a sentence: without its capital letter and its dot.
std::string helpOf(const FieldFacts& field) {
  std::string help = field.meaning.substr(0, std::min(field.meaning.find(". "), field.meaning.size() - 1));
  help[0] = Poco::Ascii::toLower(help[0]);
  return help + (field.isCommaList ? ", separated by commas" : "");
}

}  // namespace

std::vector<FieldOption> fieldOptions(const std::vector<FieldFacts>& fields, bool creating) {
  std::vector<FieldOption> needed;
  std::vector<FieldOption> others;
  for (const FieldFacts& field : fields) {
    if (field.option.empty() || (!creating && isFixed(field.use))) continue;
    FieldOption option{field.option, placeholderOf(field), helpOf(field), field.name, kindOf(field)};
    const bool comesFirst = !field.absence.empty() || field.use == FieldUse::making;
    (comesFirst ? needed : others).push_back(std::move(option));
  }
  needed.insert(needed.end(), others.begin(), others.end());
  return needed;
}

const std::vector<FieldOption>& templateOptions() {
  static const std::vector<FieldOption> kOptions = fieldOptions(described(templateFields()), true);
  return kOptions;
}

const std::vector<FieldOption>& templateChanges() {
  static const std::vector<FieldOption> kOptions = fieldOptions(described(templateFields()), false);
  return kOptions;
}

const std::vector<FieldOption>& endpointOptions() {
  static const std::vector<FieldOption> kOptions = fieldOptions(described(endpointFields()), true);
  return kOptions;
}

const std::vector<FieldOption>& endpointChanges() {
  static const std::vector<FieldOption> kOptions = fieldOptions(described(endpointFields()), false);
  return kOptions;
}

std::vector<OptionRow> optionsOf(const std::vector<FieldOption>& fields) {
  std::vector<OptionRow> options;
  for (const FieldOption& field : fields) {
    options.push_back({field.option, field.value, field.help, field.kind >= FieldKind::texts});
  }
  options.push_back({kFile, "FILE", "fields as one JSON object; options override it; - reads standard input"});
  return options;
}

std::string formBody(const Arguments& arguments, const std::vector<FieldOption>& fields) {
  std::vector<std::pair<std::string, std::string>> given;  // name and JSON text
  std::set<std::string> names;
  for (const FieldOption& field : fields) {
    if (!arguments.has(field.option)) continue;
    names.insert(field.field);
    given.emplace_back(field.field, valueOf(field, arguments.values(field.option)));
  }
  if (given.empty() && !arguments.has(kFile)) {
    throw CommandError(ExitCode::usage, "no field is given: use options like --" + fields.front().option + " " +
                                            fields.front().value + ", or --file");
  }
  const std::string text = arguments.has(kFile) ? readSource(arguments.value(kFile)) : "{}";
  checkObject(text, "the text of --file", "{\"" + fields.front().field + "\": ...}");
  if (given.empty()) return text;
  const auto scanned = json::read(text);
  return json::object([&](json::ObjectWriter& out) {
    for (const auto& [name, value] : given) out.namedRaw(name, value);
    for (const json::Member& member : std::get<json::Document>(scanned).members) {
      const std::string name = json::decode(member.key);
      if (!names.contains(name)) out.namedRaw(name, member.value.raw);
    }
  });
}

}  // namespace jobq::cli
