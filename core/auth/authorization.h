// The header Authorization of a call.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns the key in the value of the header: the text after `Bearer`, or the whole value, without blanks around.
std::string_view secretOf(std::string_view authorization);

/// Returns the sentence for a caller without a good key. The sentence depends on the form of the value alone, so that
/// it neither shows a key nor whether a key exists.
std::string describeRefusedKey(std::string_view authorization);

}  // namespace jobq
