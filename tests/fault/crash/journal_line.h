// The one thing that the witness and the reader of its journal share.
#pragma once

#include <cstddef>

namespace jobq::fault {

/// Bytes of each line, its end included: a divisor of the page, because a killed write() may stop between two pages.
inline constexpr std::size_t kJournalLine = 128;

}  // namespace jobq::fault
