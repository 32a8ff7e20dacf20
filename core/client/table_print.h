// Tables for users: columns as wide as their longest cell, two blanks apart, without blanks at the end of the last
// column.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace jobq::cli {

/// Cells are UTF-8. Control characters in cells become '?', so that a name cannot steer the terminal. Used by one
/// thread.
class Table {
 public:
  /// An empty `head` prints the rows alone.
  explicit Table(std::vector<std::string> head = {});

  /// Adds a row of cells.
  void add(std::vector<std::string> row);
  /// Prints all rows to `out`, one a line.
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

/// Returns the text with every control character, C1 included, replaced by '?'.
std::string harmless(std::string_view text);

/// Returns the message of a fault for standard error: each line of `text`, harmless, after the name of the program.
std::string faultMessage(const std::string& program, std::string_view text);

}  // namespace jobq::cli
