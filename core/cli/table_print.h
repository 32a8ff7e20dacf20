// Tables for people: columns as wide as their longest cell, two blanks apart, nothing after the last one.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace jobq::ctl {

/// One thread. Cells are UTF-8; their control characters become '?', so that a name cannot steer the terminal.
class Table {
 public:
  /// Without a head it prints the rows alone.
  explicit Table(std::vector<std::string> head = {});

  void add(std::vector<std::string> row);
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

/// The text with every control character, C1 included, replaced by '?'.
std::string harmless(std::string_view text);

}  // namespace jobq::ctl
