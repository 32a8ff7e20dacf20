// Text from outside the command line: from standard input, or from a file.
#pragma once

#include <string>

namespace jobq::cli {

/// Returns the whole file, or all of standard input if `name` is "-", without a byte order mark. Throws
/// CommandError(usage) if the file cannot be read.
std::string readSource(const std::string& name);

/// Throws CommandError(usage) if `text` is not exactly one JSON object. `thing` is the subject of the sentence, like
/// "the input"; `example` shows a correct object. The check comes before the sending, because a text with more than one
/// object could add members to the request's body.
void checkObject(const std::string& text, const std::string& thing, const std::string& example);

}  // namespace jobq::cli
