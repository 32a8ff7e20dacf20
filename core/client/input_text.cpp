#include "core/client/input_text.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <variant>

#include "core/client/exit_code.h"
#include "core/client/table_print.h"
#include "jobq/byte_order_mark.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

std::string readAll(std::istream& in) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return std::string(withoutByteOrderMark(text));
}

}  // namespace

std::string readSource(const std::string& name) {
  if (name == "-") return readAll(std::cin);
  std::ifstream file(name, std::ios::binary);
  if (!file || std::filesystem::is_directory(name)) {
    throw CommandError(ExitCode::usage, "the file '" + harmless(name) + "' cannot be read: check its name");
  }
  return readAll(file);
}

void checkObject(const std::string& text, const std::string& thing, const std::string& example) {
  const auto scanned = json::read(text);
  if (const auto* fault = std::get_if<json::Fault>(&scanned)) {
    throw CommandError(ExitCode::usage,
                       thing + " is not JSON: " + fault->reason + " at byte " + std::to_string(fault->offset));
  }
  if (std::get<json::Document>(scanned).root.kind != json::Kind::object) {
    throw CommandError(ExitCode::usage, thing + " is not a JSON object: write it like " + example);
  }
}

}  // namespace jobq::cli
