// Tables of fields: structs that the management API shows as JSON objects, the storage keeps as records, and the
// settings file may describe. One row says everything about a field: its name, its bounds and its meaning, how a
// request, a record or the file gives its value, how a response or a record shows the value. A new field is a new row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/config/field_facts.h"
#include "core/config/setting.h"
#include "jobq/error.h"
#include "jobq/json_value.h"
#include "jobq/json_writer.h"
#include "jobq/time.h"

namespace jobq {

/// Returns true if the field, or the whole body, has a fault already: further faults of the field say no more.
bool isFaulty(const FieldFaults& faults, std::string_view field);

/// One row of the table. `Form` is the struct behind the JSON object. A row holds functions instead of deriving a class
/// for each field, because the table is constant data.
template <class Form>
struct FormField {
  using Read = std::function<Result<void>(Form&, const json::Value&)>;
  using Write = std::function<std::string(const Form&)>;

  std::string name;  ///< in JSON
  FieldUse use = FieldUse::free;
  Read read;                           ///< sentences as those of the readers below
  Write write;                         ///< JSON text
  FieldFacts facts{};                  ///< without the facts that described() adds
  Setting<Form> setting{};             ///< in the settings file; without a name the file has no such field
  std::function<void(Form&)> clear{};  ///< effect of null in a request; without a function null is ignored
  bool isReleased = false;             ///< a change of the field makes a release, which replaces the workers

  // Each of these functions changes the row and returns the row itself, so that a table reads as a list.

  FormField& means(std::string text) {
    facts.meaning = std::move(text);
    return *this;
  }
  /// A creation needs the field. `sentence` refuses a creation without the field.
  FormField& needed(std::string sentence) {
    facts.absence = std::move(sentence);
    return *this;
  }
  /// Further keywords of JSON Schema: an object for requests, and one for responses.
  FormField& schema(std::string request, std::string answer) {
    facts.requestKeywords = std::move(request);
    facts.answerKeywords = std::move(answer);
    return *this;
  }
  /// The schema has its type and its bounds from the keywords alone.
  FormField& untyped() {
    facts.type.clear();
    facts.range.reset();
    return *this;
  }
  /// Values in responses have another range.
  FormField& answering(const Range& range) {
    facts.answerRange = range;
    return *this;
  }
  /// The default depends on other fields; the text says how.
  FormField& defaulting(std::string text) {
    facts.defaultText = std::move(text);
    return *this;
  }
  /// The field has an option of jobqctl.
  FormField& option(std::string word, std::string placeholder = {}) {
    facts.option = std::move(word);
    facts.placeholder = std::move(placeholder);
    return *this;
  }
  /// The option of jobqctl has all elements between commas.
  FormField& commaList() {
    facts.isCommaList = true;
    return *this;
  }
  /// Values pass a further check, a function from the form to Result<void>.
  template <class Check>
  FormField& checked(Check check) {
    read = [before = std::move(read), check](Form& form, const json::Value& value) {
      const Result<void> done = before(form, value);
      return done ? check(std::as_const(form)) : done;
    };
    return *this;
  }
  /// Records show the field, and the value is read from elsewhere.
  FormField& unread() {
    read = [](Form&, const json::Value&) { return Result<void>(); };
    return *this;
  }
  /// The settings file has the field; the value there has the bounds and the meaning of the row. `defaultText` is that
  /// of Setting.
  FormField& inFile(std::string key, std::string defaultText = {}) {
    Setting<Form> other = setting;
    other.name = std::move(key);
    other.defaultText = std::move(defaultText);
    return inFile(std::move(other));
  }
  /// The same for a setting that has a form of its own. Without a meaning the setting has that of the row.
  FormField& inFile(Setting<Form> other) {
    setting = std::move(other);
    if (setting.meaning.empty()) setting.meaning = facts.meaning;
    return *this;
  }
  /// A change of the field makes a release.
  FormField& released() {
    isReleased = true;
    return *this;
  }
};

template <class Form>
using FormFields = std::vector<FormField<Form>>;

// Readers of values. The sentence of a failure begins with a verb, because the name of the field is put in
// front.
Result<std::string> readText(const json::Value& value, std::size_t min, std::size_t max);
Result<std::int64_t> readWhole(const json::Value& value, const Range& range);
Result<bool> readFlag(const json::Value& value);
Result<std::vector<std::string>> readTexts(const json::Value& value);
Result<std::map<std::string, std::string>> readTextMap(const json::Value& value);
Result<std::string> readChoice(const json::Value& value, const std::vector<std::string>& choices);

/// Returns the JSON text of a value (json::appendValue()).
template <class Value>
std::string jsonText(const Value& value) {
  std::string text;
  json::appendValue(text, value);
  return text;
}

/// Returns the facts of all fields.
template <class Form>
std::vector<FieldFacts> described(const FormFields<Form>& fields) {
  std::vector<FieldFacts> all;
  for (const FormField<Form>& field : fields) {
    FieldFacts facts = field.facts;
    facts.name = field.name;
    facts.use = field.use;
    facts.isNullable = field.clear != nullptr;
    facts.defaultValue = field.write(Form());
    all.push_back(std::move(facts));
  }
  return all;
}

/// The members of a request in their order, each key once with its first value. `faults` has a fault for each
/// repetition, or one for the text as a whole.
struct FormBody {
  explicit FormBody(std::string_view text);
  std::vector<std::pair<std::string, json::Value>> members;  ///< views into the text
  FieldFaults faults;
};

/// Returns the fault of a field that `thing` does not have, with the nearest of the known names.
FieldFault unknownField(const std::string& name, const char* thing, const std::vector<std::string>& known);
/// Returns the fault of a field that cannot change after the creation of `thing`.
FieldFault fixedField(const std::string& name, const char* thing);

/// Fills `form` from the body of a request. With `creating`, fields that cannot change later are accepted. Every wrong
/// field adds a fault, and the other fields are read all the same. Null is a value for rows with `clear`. Under every
/// other name, even an unknown name, a null counts as an absent field.
template <class Form>
FieldFaults readForm(Form& form, std::string_view text, const FormFields<Form>& fields, const char* thing,
                     bool creating) {
  FormBody body(text);
  for (const auto& member : body.members) {
    const std::string& name = member.first;
    const json::Value& value = member.second;
    const auto row = std::find_if(fields.begin(), fields.end(),
                                  [&name](const auto& field) { return field.name == name && isAccepted(field.use); });
    if (value.kind == json::Kind::null) {
      if (row != fields.end() && row->clear) row->clear(form);
    } else if (row == fields.end()) {
      std::vector<std::string> known;
      for (const auto& field : fields) {
        if (isAccepted(field.use)) known.push_back(field.name);
      }
      body.faults.push_back(unknownField(name, thing, known));
    } else if (isFixed(row->use) && !creating) {
      body.faults.push_back(fixedField(name, thing));
    } else if (const auto done = row->read(form, value); !done) {
      body.faults.push_back({name, name + " " + done.failure().message()});
    }
  }
  return std::move(body.faults);
}

/// Fills `form` from a record written by writeForm() with `whole`. Fails if the record is damaged.
template <class Form>
Result<void> readRecord(Form& form, std::string_view text, const FormFields<Form>& fields) {
  const FormBody body(text);
  if (!body.faults.empty()) return invalid(body.faults.front().message);
  for (const auto& [name, value] : body.members) {
    if (value.kind == json::Kind::null) continue;
    for (const auto& field : fields) {
      if (field.name != name || !isRecorded(field.use)) continue;
      if (const auto done = field.read(form, value); !done) return invalid(name + " " + done.failure().message());
    }
  }
  return {};
}

/// Adds the sentence of each field that a creation needs and that is empty in `form`, except for faulty fields.
template <class Form>
void addAbsent(FieldFaults& faults, const Form& form, const FormFields<Form>& fields) {
  for (const FormField<Form>& field : fields) {
    if (field.facts.absence.empty() || isFaulty(faults, field.name)) continue;
    const std::string value = field.write(form);
    if (value == "\"\"" || value == "[]") faults.push_back({field.name, field.facts.absence});
  }
}

/// Returns the members of an object except nulls, as views into the text. Fails if `value` is not an object or has a
/// name twice; `inside` stands before the repeated name.
Result<std::vector<std::pair<std::string, json::Value>>> presentMembers(const json::Value& value,
                                                                        const std::string& inside);
/// Returns the failure of an object without a member `name`, with the nearest of the known names.
Failure unknownMember(const std::string& name, const std::vector<std::string>& known);

/// Fills `form` from the object that is the value of a field; a null counts as an absent member. `inside` stands before
/// the names of members in sentences. Stops at the first fault.
template <class Form>
Result<void> readMembers(Form& form, const json::Value& value, const FormFields<Form>& fields,
                         const std::string& inside = {}) {
  const auto members = presentMembers(value, inside);
  if (!members) return members.failure();
  for (const auto& [name, member] : *members) {
    const auto row = std::find_if(fields.begin(), fields.end(),
                                  [&wanted = name](const FormField<Form>& field) { return field.name == wanted; });
    if (row == fields.end()) {
      std::vector<std::string> known;
      for (const FormField<Form>& field : fields) known.push_back(inside + field.name);
      return unknownMember(inside + name, known);
    }
    if (const auto done = row->read(form, member); !done) {
      return invalid("has a wrong " + inside + name + ": it " + done.failure().message());
    }
  }
  return {};
}

/// Returns the object of the fields whose value is not null.
template <class Form>
std::string writePresent(const Form& form, const FormFields<Form>& fields) {
  return json::object([&](json::ObjectWriter& out) {
    for (const FormField<Form>& field : fields) {
      if (const std::string value = field.write(form); value != "null") out.namedRaw(field.name, value);
    }
  });
}

/// Writes the fields of the form as members of an object, in the order of the table: the fields of responses, or with
/// `whole` the fields of records.
template <class Form>
void writeMembers(json::ObjectWriter& out, const Form& form, const FormFields<Form>& fields, bool whole) {
  for (const auto& field : fields) {
    if (whole ? isRecorded(field.use) : isAnswered(field.use)) out.namedRaw(field.name, field.write(form));
  }
}

/// Returns the form as a JSON object with the members of writeMembers().
template <class Form>
std::string writeForm(const Form& form, const FormFields<Form>& fields, bool whole) {
  return json::object([&](json::ObjectWriter& out) { writeMembers(out, form, fields, whole); });
}

}  // namespace jobq
