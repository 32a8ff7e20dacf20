#include "options.h"

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace jobq::fault {
namespace {

[[noreturn]] void explain(std::string_view why) {
  std::cerr << why << "\n"
            << "usage: crash_loop [--cycles N] [--seed N] [--jobs-per-cycle N] [--keep] [--plugins FOLDER]\n"
               "                  [--expect-violation] [--all-webhooks]\n";
  std::exit(2);
}

std::uint64_t numberIn(std::string_view name, std::string_view text) {
  std::uint64_t number = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || rest != text.data() + text.size()) explain(std::string(name) + " needs a number");
  return number;
}

}  // namespace

Options readOptions(int argc, char** argv) {
  Options options;
  options.seed = std::random_device{}();
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--keep") {
      options.keep = true;
    } else if (name == "--all-webhooks") {
      options.allWebhooks = true;
    } else if (name == "--expect-violation") {
      options.expectViolation = true;
    } else if (i + 1 == argc) {
      explain(std::string(name) + " is unknown or lacks its value");
    } else if (name == "--cycles") {
      options.cycles = static_cast<int>(numberIn(name, argv[++i]));
    } else if (name == "--seed") {
      options.seed = numberIn(name, argv[++i]);
    } else if (name == "--jobs-per-cycle") {
      options.jobsPerCycle = numberIn(name, argv[++i]);
    } else if (name == "--plugins") {
      options.plugins = std::filesystem::absolute(argv[++i]);
      if (!std::filesystem::is_directory(options.plugins)) explain(options.plugins.string() + " is no folder");
    } else {
      explain(std::string(name) + " is unknown");
    }
  }
  return options;
}

}  // namespace jobq::fault
