// The length of a line, shared by the witness and the reader of its journal.
#pragma once

#include <cstddef>

namespace jobq::fault {

/// Bytes of each line, its end included: a divisor of the page size, because a killed write() may stop between two
/// pages.
inline constexpr std::size_t kJournalLine = 128;

}  // namespace jobq::fault
