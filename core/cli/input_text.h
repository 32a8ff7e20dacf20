// Text that comes from outside the command line: from standard input, or from a file.
#pragma once

#include <string>

namespace jobq::ctl {

/// The whole file, or all of standard input for "-". Throws Failure(usage) when the file cannot be read.
std::string readSource(const std::string& name);

/// Throws Failure(usage) when `text` is not one JSON object. `thing` names it in the sentence, like "the input";
/// `example` shows one. Checked before it is sent, because text that is more than one object could add members to what
/// it is put into.
void checkObject(const std::string& text, const std::string& thing, const std::string& example);

}  // namespace jobq::ctl
