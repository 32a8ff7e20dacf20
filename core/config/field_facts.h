// Facts about the fields of forms (core/config/form.h), for the documents that are made from the tables of fields: the
// schemas of the OpenAPI description, the tables of core/http/API.md, the options of jobqctl.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/bounded_integer.h"

namespace jobq {

/// Places where a field may appear. The order matters: the functions below compare.
enum class FieldUse {
  free,      ///< in requests, responses and records; changeable
  creation,  ///< in requests of creation, responses and records; never changed
  secret,    ///< in requests and records, never in responses; changeable
  making,    ///< only in requests of creation
  answer,    ///< in responses and records, set by the server
  record,    ///< only in records
  file,      ///< only in the settings file
};
/// Returns whether a request may contain the field.
constexpr bool isAccepted(FieldUse use) { return use <= FieldUse::making; }
/// Returns whether responses contain the field.
constexpr bool isAnswered(FieldUse use) {
  return use != FieldUse::secret && use != FieldUse::making && use < FieldUse::record;
}
/// Returns whether records contain the field.
constexpr bool isRecorded(FieldUse use) { return use != FieldUse::file && use != FieldUse::making; }
/// Returns whether only requests of creation may contain the field.
constexpr bool isFixed(FieldUse use) { return use == FieldUse::creation || use == FieldUse::making; }

/// A field without the struct that holds its value.
struct FieldFacts {
  std::string name{};  ///< in JSON
  FieldUse use = FieldUse::free;
  bool isNullable = false;       ///< null is a value
  std::string defaultValue{};    ///< JSON text
  std::string type{};            ///< of JSON: string, integer, boolean, array, object; empty: the keywords say the type
  std::optional<Range> range{};  ///< of an integer, of the bytes of a string, of the number of elements
  std::optional<Range> answerRange{};  ///< of values in responses, if different
  std::vector<std::string> choices{};  ///< the only values, if any
  std::string unit{};                  ///< of an integer: ms or s
  std::string requestKeywords = "{}";  ///< further keywords of JSON Schema in requests, as an object
  std::string answerKeywords = "{}";   ///< the same in responses
  std::vector<FieldFacts> members{};   ///< of an object
  std::string meaning{};               ///< whole sentences in Markdown; the first one is the help of the option
  std::string absence{};      ///< sentence that refuses a creation without the field; empty: the field has a default
  std::string defaultText{};  ///< default for readers, in Markdown; empty: `defaultValue` says all
  std::string option{};       ///< of jobqctl, without the dashes; empty: no option
  std::string placeholder{};  ///< of the value of the option; empty: follows from the type
  bool isCommaList = false;   ///< the option has all elements between commas, instead of one
};

}  // namespace jobq
