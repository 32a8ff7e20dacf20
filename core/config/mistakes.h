// Mistakes in settings. One start names all mistakes, each after the line of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/error.h"

namespace jobq {

/// Places of settings: the lines of a file by key, where line 0 means the command line.
class SettingPlaces {
 public:
  /// Line of a sentence without a place; such a sentence comes last.
  static constexpr std::size_t kNoLine = SIZE_MAX;

  SettingPlaces() = default;
  /// `file` is the name of the file as messages show it.
  explicit SettingPlaces(std::string file) : file_(std::move(file)) {}

  void add(const std::string& key, std::size_t line) { lines_[key] = line; }

  /// Returns the line of the setting at the begin of `sentence`, else the line of `key`, else kNoLine. An absent
  /// setting of an endpoint has the line of another setting of the endpoint.
  std::size_t lineOf(std::string_view sentence, std::string_view key = {}) const;

  /// Returns the sentence after its place: `file:line: ` or `--set: `, or as it is without a place.
  std::string placed(const std::string& sentence, std::size_t line) const;

  /// Returns the lines of `text`, each after the place of the setting at the begin of the line.
  std::string placed(std::string_view text) const;

 private:
  std::size_t lineOfKey(std::string_view key) const;

  std::string file_;
  std::map<std::string, std::size_t, std::less<>> lines_;
};

/// Collected mistakes, each once, in the order of their lines. Used by one thread.
class Mistakes {
 public:
  static constexpr std::size_t kMost = 50;

  /// `places` outlives the object, and is asked when a mistake is added.
  explicit Mistakes(const SettingPlaces& places) : places_(places) {}

  /// Adds each line of `sentences`. `key` has the place of a sentence without a setting at the begin.
  void add(std::string_view sentences, std::string_view key = {});
  void addAt(std::size_t line, const std::string& sentence);

  /// Runs check(), and adds the sentences of a ConfigError.
  template <class Check>
  void collect(Check&& check, std::string_view key = {}) {
    try {
      check();
    } catch (const ConfigError& error) {
      add(error.what(), key);
    }
  }

  bool isEmpty() const { return found_.empty(); }
  /// Returns true if further mistakes would not be named, so the search may end.
  bool isFull() const { return found_.size() > kMost; }

  /// Throws ConfigError with one line for each mistake, if there are any.
  void throwAny() const;

 private:
  const SettingPlaces& places_;
  std::set<std::pair<std::size_t, std::string>> found_;  // each sentence once, with its line
};

}  // namespace jobq
