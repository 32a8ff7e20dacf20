// Rows of tables of fields (core/config/form.h) for the common kinds of members. `member` is a pointer to a member, or
// a function from the struct to a reference; null clears an optional member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/config/field_facts.h"
#include "core/config/form.h"
#include "core/config/setting.h"
#include "jobq/json_value.h"
#include "jobq/time.h"

namespace jobq {

/// Returns the function that writes the member as json::appendValue() does.
template <class Form, class Member>
auto writerOf(Member member) {
  return [member](const Form& form) { return jsonText(std::invoke(member, form)); };
}
/// Row of a member without a setting.
template <class Form, class Member>
FormField<Form> fieldOf(const char* name, Member member, FieldFacts facts, typename FormField<Form>::Read read,
                        typename FormField<Form>::Write write, FieldUse use) {
  FormField<Form> row{
      .name = name, .use = use, .read = std::move(read), .write = std::move(write), .facts = std::move(facts)};
  if constexpr (ValueAt<Form, Member>::kMayBeAbsent) {
    row.clear = [member](Form& form) { std::invoke(member, form).reset(); };
  }
  return row;
}
/// Returns a row with a setting that has no name yet (FormField::inFile).
template <class Form>
FormField<Form> withSetting(FormField<Form> row, Setting<Form> setting) {
  row.setting = std::move(setting);
  return row;
}
template <class Form>
FormField<Form> textField(const char* name, std::string Form::*member, std::size_t min, std::size_t max,
                          FieldUse use = FieldUse::free) {
  const Range bytes{static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)};
  const auto read = [=](Form& form, const json::Value& value) {
    return assign(form.*member, readText(value, min, max));
  };
  return withSetting(fieldOf<Form>(name, member, {.type = "string", .range = bytes}, read, writerOf<Form>(member), use),
                     textSetting<Form>("", member, min, max, ""));
}
/// Row of a whole number of any integer type.
template <class Form, class Member>
FormField<Form> wholeField(const char* name, Member member, const Range& range, FieldUse use = FieldUse::free) {
  const auto read = [=](Form& form, const json::Value& value) {
    const auto number = readWhole(value, range);
    if (!number) return Result<void>(number.failure());
    std::invoke(member, form) = static_cast<typename ValueAt<Form, Member>::Type>(*number);
    return Result<void>();
  };
  return withSetting(
      fieldOf<Form>(name, member, {.type = "integer", .range = range}, read, writerOf<Form>(member), use),
      wholeSetting<Form>("", member, range, ""));
}
/// Row of a duration, as a whole number of `unit` in JSON and with its unit in the file. `range` counts in `unit`.
template <class Form, class Member>
FormField<Form> durationField(const char* name, Member member, Millis unit, const Range& range,
                              FieldUse use = FieldUse::free) {
  const auto read = [=](Form& form, const json::Value& value) {
    const auto number = readWhole(value, range);
    if (!number && unit == Millis(1)) {
      return Result<void>(invalid(number.failure().message() + " milliseconds" + secondsQuestion(value, range)));
    }
    if (!number) return Result<void>(number.failure());
    std::invoke(member, form) = unit * *number;
    return Result<void>();
  };
  FieldFacts facts{.type = "integer", .range = range, .unit = unit == Millis(1) ? "ms" : "s"};
  const auto write = [=](const Form& form) {
    const std::optional<Millis> duration = std::invoke(member, form);
    return duration ? jsonText(*duration / unit) : "null";
  };
  return withSetting(fieldOf<Form>(name, member, std::move(facts), read, write, use),
                     durationSetting<Form>("", member, unit * range.min, unit * range.max, ""));
}
template <class Form>
FormField<Form> flagField(const char* name, bool Form::*member, FieldUse use = FieldUse::free) {
  const auto read = [=](Form& form, const json::Value& value) { return assign(form.*member, readFlag(value)); };
  return withSetting(fieldOf<Form>(name, member, {.type = "boolean"}, read, writerOf<Form>(member), use),
                     flagSetting<Form>("", member, ""));
}
template <class Form, class Member>
FormField<Form> textsField(const char* name, Member member, FieldUse use = FieldUse::free) {
  const auto read = [=](Form& form, const json::Value& value) {
    return assign(std::invoke(member, form), readTexts(value));
  };
  const std::string items = R"({"items":{"type":"string"}})";
  return withSetting(
      fieldOf<Form>(name, member, {.type = "array"}, read, writerOf<Form>(member), use).schema(items, items),
      listSetting<Form>("", member, ""));
}
template <class Form>
FormField<Form> textMapField(const char* name, std::map<std::string, std::string> Form::*member,
                             FieldUse use = FieldUse::free) {
  const auto read = [=](Form& form, const json::Value& value) { return assign(form.*member, readTextMap(value)); };
  const std::string values = R"({"additionalProperties":{"type":"string"}})";
  return fieldOf<Form>(name, member, {.type = "object"}, read, writerOf<Form>(member), use).schema(values, values);
}
/// Row of a value with a few names.
template <class Form, class Member, class Choice>
FormField<Form> choiceField(const char* name, Member member, const std::vector<std::pair<std::string, Choice>>& choices,
                            FieldUse use = FieldUse::free) {
  FieldFacts facts{.type = "string"};
  for (const auto& choice : choices) facts.choices.push_back(choice.first);
  const Setting<Form> setting = choiceSetting<Form>("", member, choices, "");
  return withSetting(
      FormField<Form>{.name = name,
                      .use = use,
                      .read =
                          [member, choices, words = facts.choices](Form& form, const json::Value& value) {
                            const auto word = readChoice(value, words);
                            if (!word) return Result<void>(word.failure());
                            for (const auto& choice : choices) {
                              if (choice.first == *word) std::invoke(member, form) = choice.second;
                            }
                            return Result<void>();
                          },
                      .write = [print = setting.print](const Form& form) { return jsonText(print(form)); },
                      .facts = facts},
      setting);
}
/// The same for a text.
template <class Form>
FormField<Form> choiceField(const char* name, std::string Form::*member, const std::vector<std::string>& choices,
                            FieldUse use = FieldUse::free) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& choice : choices) words.emplace_back(choice, choice);
  return choiceField<Form>(name, member, words, use);
}
/// Row of a value in responses that never differs; `value` is JSON text of the type.
template <class Form>
FormField<Form> constantField(const char* name, const char* type, const char* value) {
  FormField<Form> row{.name = name,
                      .use = FieldUse::answer,
                      .read = {},
                      .write = [value](const Form&) { return std::string(value); },
                      .facts = {.type = type}};
  return row.schema("{}", std::string(R"({"const":)") + value + "}").unread();
}

/// Row of an object with optional members, which are fields of the form.
template <class Form>
FormField<Form> objectField(const char* name, const FormFields<Form>& members) {
  return {.name = name,
          .read =
              [members](Form& form, const json::Value& value) {
                for (const FormField<Form>& member : members) member.clear(form);
                return readMembers(form, value, members);
              },
          .write = [members](const Form& form) { return writePresent(form, members); },
          .facts = {.type = "object", .members = described(members)}};
}

}  // namespace jobq
