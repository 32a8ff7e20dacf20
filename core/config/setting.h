// Tables of settings. One row says everything about a setting: its name, the kind of its value with the bounds, how the
// value gets into a struct and back into text, and the sentences for operators. The reader of the file
// (core/config/config.cpp) and the page for operators (core/config/settings_page.h) use the same rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/bounded_integer.h"
#include "core/config/units.h"
#include "jobq/error.h"
#include "jobq/time.h"

namespace jobq {

/// One row of a table. `Form` is the struct with the value. A row holds functions instead of deriving a class for each
/// setting, because the table is constant data.
template <class Form>
struct Setting {
  std::string name;     ///< in the file, without `endpoint.<id>.` or `limits.<operation>.`
  std::string type;     ///< a word of the table of types in etc/README.md
  std::string bounds;   ///< bounds in the words of the refusal of a wrong value; empty: any value of the type
  std::string meaning;  ///< whole sentences for operators, in Markdown
  /// Reads the value of `key`. Throws ConfigError with the key and the accepted form, and with the value if it is no
  /// secret and not long.
  std::function<void(Form&, const std::string& key, const std::string& value)> parse{};
  /// Returns the value as the file has it; an empty text means no value. May be missing beside a `defaultText`.
  std::function<std::string(const Form&)> print{};
  std::string defaultText{};  ///< default for operators, in Markdown; empty: the initial value of `Form` says all

  /// Returns the row with a text for the default.
  Setting withDefault(std::string text) const {
    Setting row = *this;
    row.defaultText = std::move(text);
    return row;
  }
};

/// Type of the value that a member of this type holds.
template <class Member>
struct ValueIn {
  using Type = Member;
  static constexpr bool kMayBeAbsent = false;
};
template <class Value>
struct ValueIn<std::optional<Value>> {
  using Type = Value;
  static constexpr bool kMayBeAbsent = true;
};
template <class Form, class Member>
using ValueAt = ValueIn<std::remove_cvref_t<std::invoke_result_t<Member, Form&>>>;

/// Returns write(value), or an empty text without a value.
template <class Value, class Write>
std::string printed(const Value& value, Write&& write) {
  if constexpr (ValueIn<Value>::kMayBeAbsent) {
    return value ? write(*value) : "";
  } else {
    return write(value);
  }
}

/// Returns the items with commas between them.
template <class List>
std::string listed(const List& items) {
  std::string all;
  for (const std::string& item : items) all += (all.empty() ? "" : ", ") + item;
  return all;
}

// Rows for the common kinds of values. `member` is a pointer to a member, or a function from the struct to a reference.
template <class Form, class Member>
Setting<Form> textSetting(std::string name, Member member, std::string meaning) {
  return {std::move(name),
          "text",
          "",
          std::move(meaning),
          [=](Form& form, const std::string&, const std::string& text) { std::invoke(member, form) = text; },
          [=](const Form& form) { return std::invoke(member, form); }};
}
/// Row of a text with a bounded number of bytes.
template <class Form, class Member>
Setting<Form> textSetting(std::string name, Member member, std::size_t min, std::size_t max, std::string meaning) {
  Setting<Form> row = textSetting<Form>(std::move(name), member, std::move(meaning));
  row.bounds = std::to_string(min) + " to " + std::to_string(max) + " bytes";
  row.parse = [=](Form& form, const std::string& key, const std::string& text) {
    if (text.size() < min || text.size() > max) {
      throw ConfigError(key + " must have " + std::to_string(min) + " to " + std::to_string(max) + " bytes");
    }
    std::invoke(member, form) = text;
  };
  return row;
}
/// Row of a path. Relative paths begin at `Form::folder`.
template <class Form, class Member>
Setting<Form> pathSetting(std::string name, Member member, std::string meaning) {
  return {std::move(name),
          "path",
          "",
          std::move(meaning),
          [=](Form& form, const std::string&, const std::string& text) {
            // An empty text, such as that of a variable that is not set, must not name the folder itself.
            std::invoke(member, form) = text.empty() ? std::filesystem::path() : form.folder / text;
          },
          [=](const Form& form) { return std::invoke(member, form).string(); }};
}
/// Row of texts between commas, for any container of texts.
template <class Form, class Member>
Setting<Form> listSetting(std::string name, Member member, std::string meaning) {
  using List = typename ValueAt<Form, Member>::Type;
  return {std::move(name),
          "list",
          "",
          std::move(meaning),
          [=](Form& form, const std::string&, const std::string& text) {
            const std::vector<std::string> words = units::words(text, ",");
            std::invoke(member, form) = List(words.begin(), words.end());
          },
          [=](const Form& form) { return printed(std::invoke(member, form), listed<List>); }};
}
template <class Form, class Member>
Setting<Form> flagSetting(std::string name, Member member, std::string meaning) {
  return {std::move(name),
          "flag",
          "true or false",
          std::move(meaning),
          [=](Form& form, const std::string& key, const std::string& text) {
            std::invoke(member, form) = units::flag(key, text);
          },
          [=](const Form& form) { return std::invoke(member, form) ? "true" : "false"; }};
}
/// Row of a whole number of any integer type, or of an optional one.
template <class Form, class Member>
Setting<Form> wholeSetting(std::string name, Member member, const Range& range, std::string meaning) {
  using Number = typename ValueAt<Form, Member>::Type;
  return {std::move(name),
          "integer",
          std::to_string(range.min) + " to " + std::to_string(range.max),
          std::move(meaning),
          [=](Form& form, const std::string& key, const std::string& text) {
            std::invoke(member, form) = static_cast<Number>(units::integer(key, text, range.min, range.max));
          },
          [=](const Form& form) {
            return printed(std::invoke(member, form), [](Number number) { return std::to_string(number); });
          }};
}
template <class Form, class Member>
Setting<Form> durationSetting(std::string name, Member member, Millis min, Millis max, std::string meaning) {
  return {std::move(name),
          "duration",
          units::print(min) + " to " + units::print(max),
          std::move(meaning),
          [=](Form& form, const std::string& key, const std::string& text) {
            std::invoke(member, form) = units::duration(key, text, min, max);
          },
          [=](const Form& form) { return printed(std::invoke(member, form), units::print); }};
}
template <class Form, class Member>
Setting<Form> sizeSetting(std::string name, Member member, std::uint64_t min, std::uint64_t max, std::string meaning) {
  return {std::move(name),
          "size",
          units::printSize(min) + " to " + units::printSize(max),
          std::move(meaning),
          [=](Form& form, const std::string& key, const std::string& text) {
            std::invoke(member, form) = units::size(key, text, min, max);
          },
          [=](const Form& form) { return units::printSize(std::invoke(member, form)); }};
}
/// Row of a value with a few names.
template <class Form, class Member, class Choice>
Setting<Form> choiceSetting(std::string name, Member member, std::vector<std::pair<std::string, Choice>> choices,
                            std::string meaning) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  const std::string known = listed(names);
  return {std::move(name),
          "choice",
          known,
          std::move(meaning),
          [=](Form& form, const std::string& key, const std::string& text) {
            const auto found =
                std::find_if(choices.begin(), choices.end(), [&](const auto& choice) { return choice.first == text; });
            if (found == choices.end()) throw ConfigError(key + " = " + text + " is not one of " + known);
            std::invoke(member, form) = found->second;
          },
          [=](const Form& form) {
            const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) {
              return choice.second == std::invoke(member, form);
            });
            return found == choices.end() ? std::string() : found->first;
          }};
}

}  // namespace jobq
