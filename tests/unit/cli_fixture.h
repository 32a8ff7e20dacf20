// Commands of jobqctl, each called through the table of commands, against answers of the test.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/cli/api_client.h"
#include "core/cli/commands.h"
#include "core/client/arguments.h"
#include "core/client/exit_code.h"
#include "scripted_server.h"

namespace jobq::cli {

/// Keeps the texts for standard error until its end.
class CapturedErrors {
 public:
  CapturedErrors() : before_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~CapturedErrors() { std::cerr.rdbuf(before_); }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* const before_;
};

class CliFixture {
 protected:
  /// End of a command: the exit code, and the output, or the sentence of the failure.
  struct End {
    int code;
    std::string text;
    bool operator==(const End&) const = default;
  };

  /// Calls the command of a command line without the name of the program.
  End run(const std::vector<std::string>& given) const {
    std::ostringstream out;
    try {
      std::vector<std::string> words = leadingWords(given);
      const Command& command = extractCommand(words);
      std::vector<OptionRow> known = commonOptions();
      known.insert(known.end(), command.options.begin(), command.options.end());
      Arguments arguments = parseArguments(given, known);
      (void)extractCommand(arguments.words);
      const ExitCode code = command.run({arguments, api_, arguments.has("json"), out});
      return {static_cast<int>(code), out.str()};
    } catch (const CommandError& failure) {
      return {static_cast<int>(failure.code()), out.str() + failure.what()};
    }
  }
  /// Calls the command against one answer of the server.
  End runWith(const std::string& answer, const std::vector<std::string>& given) {
    server_.answer(answer);
    return run(given);
  }

  test::ScriptedServer server_;
  const ApiClient api_{server_.url(), "the-key"};
};

inline void expectEnd(const auto& end, int code, const std::string& text) {
  EXPECT_EQ(end.text, text);
  EXPECT_EQ(end.code, code);
}

}  // namespace jobq::cli
