// Tables of fields: structs that the management API shows as JSON objects, the storage keeps as records, and the
// settings file may describe. One row says everything about a field: its name, its bounds, how a request, a record or
// the file gives its value, how a response or a record shows the value. A new field is a new row.
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
#include "core/config/setting.h"
#include "jobq/error.h"
#include "jobq/json_value.h"
#include "jobq/json_writer.h"
#include "jobq/time.h"

namespace jobq {

/// Returns true if the field, or the whole body, has a fault already: further faults of the field say no more.
bool isFaulty(const FieldFaults& faults, std::string_view field);

/// Places where a field may appear. The order matters: the functions below compare.
enum class FieldUse {
  free,      ///< in requests, responses and records; changeable
  creation,  ///< in requests of creation, responses and records; never changed
  secret,    ///< in requests and records, never in responses; changeable
  answer,    ///< in responses and records, set by the server
  record,    ///< only in records
  file,      ///< only in the settings file
};
/// Returns whether a request may contain the field.
constexpr bool isAccepted(FieldUse use) { return use <= FieldUse::secret; }
/// Returns whether responses contain the field.
constexpr bool isAnswered(FieldUse use) { return use != FieldUse::secret && use < FieldUse::record; }
/// Returns whether records contain the field.
constexpr bool isRecorded(FieldUse use) { return use != FieldUse::file; }

/// One row of the table. `Form` is the struct behind the JSON object. A row holds functions instead of deriving a class
/// for each field, because the table is constant data.
template <class Form>
struct FormField {
  std::string name;  ///< in JSON
  FieldUse use = FieldUse::free;
  std::function<Result<void>(Form&, const json::Value&)> read;  ///< sentences as those of the readers below
  std::function<std::string(const Form&)> write;                ///< JSON text
  std::function<void(Form&)> clear{};  ///< effect of null in a request; without a function null is ignored
  Setting<Form> setting{};             ///< in the settings file; without a name the file cannot set the field
  bool isReleased = false;             ///< a change of the field makes a release, which replaces the workers

  /// Returns the row with a name in the settings file; the value there has the bounds of the row. `meaning` and
  /// `defaultText` are those of Setting.
  FormField inFile(std::string key, std::string meaning, std::string defaultText = {}) const {
    FormField row = *this;
    row.setting.name = std::move(key);
    row.setting.meaning = std::move(meaning);
    row.setting.defaultText = std::move(defaultText);
    return row;
  }
  /// Returns the row with a setting that has a form of its own.
  FormField inFile(Setting<Form> other) const {
    FormField row = *this;
    row.setting = std::move(other);
    return row;
  }
  /// Returns the row of a field whose changes make a release.
  FormField released() const {
    FormField row = *this;
    row.isReleased = true;
    return row;
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

// Rows for the common kinds of members.
template <class Form>
FormField<Form> textField(const char* name, std::string Form::*member, std::size_t min, std::size_t max,
                          FieldUse use = FieldUse::free) {
  return {name,
          use,
          [=](Form& form, const json::Value& value) { return assign(form.*member, readText(value, min, max)); },
          [=](const Form& form) { return jsonText(form.*member); },
          {},
          textSetting<Form>("", member, min, max, "")};
}
/// Row of a whole number of any integer type, or of an optional one (null). `member` is a pointer to a member, or a
/// function from the struct to a reference.
template <class Form, class Member>
FormField<Form> wholeField(const char* name, Member member, const Range& range, FieldUse use = FieldUse::free) {
  using Found = ValueAt<Form, Member>;
  using Number = typename Found::Type;
  FormField<Form> row{name,
                      use,
                      [=](Form& form, const json::Value& value) {
                        const auto number = readWhole(value, range);
                        if (!number) return Result<void>(number.failure());
                        std::invoke(member, form) = static_cast<Number>(*number);
                        return Result<void>();
                      },
                      [=](const Form& form) { return jsonText(std::invoke(member, form)); },
                      {},
                      wholeSetting<Form>("", member, range, "")};
  if constexpr (Found::kMayBeAbsent) row.clear = [=](Form& form) { std::invoke(member, form).reset(); };
  return row;
}
/// Row of a duration, as a whole number of `unit` in JSON and with its unit in the file. `range` counts in `unit`.
template <class Form>
FormField<Form> durationField(const char* name, Millis Form::*member, Millis unit, const Range& range,
                              FieldUse use = FieldUse::free) {
  return {name,
          use,
          [=](Form& form, const json::Value& value) {
            const auto number = readWhole(value, range);
            if (!number) return Result<void>(number.failure());
            form.*member = unit * *number;
            return Result<void>();
          },
          [=](const Form& form) { return jsonText(form.*member / unit); },
          {},
          durationSetting<Form>("", member, unit * range.min, unit * range.max, "")};
}
template <class Form>
FormField<Form> flagField(const char* name, bool Form::*member, FieldUse use = FieldUse::free) {
  return {name,
          use,
          [=](Form& form, const json::Value& value) { return assign(form.*member, readFlag(value)); },
          [=](const Form& form) { return jsonText(form.*member); },
          {},
          flagSetting<Form>("", member, "")};
}
template <class Form>
FormField<Form> textsField(const char* name, std::vector<std::string> Form::*member, FieldUse use = FieldUse::free) {
  return {name,
          use,
          [=](Form& form, const json::Value& value) { return assign(form.*member, readTexts(value)); },
          [=](const Form& form) { return jsonText(form.*member); },
          {},
          listSetting<Form>("", member, "")};
}
template <class Form>
FormField<Form> choiceField(const char* name, std::string Form::*member, const std::vector<std::string>& choices,
                            FieldUse use = FieldUse::free) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& choice : choices) words.emplace_back(choice, choice);
  return {name,
          use,
          [=](Form& form, const json::Value& value) { return assign(form.*member, readChoice(value, choices)); },
          [=](const Form& form) { return jsonText(form.*member); },
          {},
          choiceSetting<Form>("", member, words, "")};
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
    } else if (row->use == FieldUse::creation && !creating) {
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
