#include "core/client/table_print.h"

#include <algorithm>
#include <utility>

#include "core/base/words.h"

namespace jobq::cli {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> head) {
  if (!head.empty()) add(std::move(head));
}

void Table::add(std::vector<std::string> row) {
  widths_.resize(std::max(widths_.size(), row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = harmless(row[i]);
    widths_[i] = std::max(widths_[i], characters(row[i]));
  }
  rows_.push_back(std::move(row));
}

void Table::print(std::ostream& out) const {
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << row[i];
      if (i + 1 < row.size()) out << std::string(widths_[i] - characters(row[i]) + 2, ' ');
    }
    out << '\n';
  }
}

std::string harmless(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const unsigned char next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
    if (c1) ++i;
    out.push_back(c1 || c < 0x20 || c == 0x7f ? '?' : text[i]);
  }
  return out;
}

std::string faultMessage(const std::string& program, std::string_view text) {
  std::string message;
  eachLine(text, [&](std::string_view line) { message += program + ": " + harmless(line) + "\n"; });
  return message;
}

}  // namespace jobq::cli
