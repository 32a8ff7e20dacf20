// Ids and names made by the server. All randomness comes from the generator of the operating system.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "jobq/call_id.h"
#include "jobq/job.h"

namespace jobq {

/// Returns `<uuid version 4>-u1`, with `sync-` in front for /runsync (core/decisions/jobs.md). The first 32 bits of the
/// UUID count milliseconds and begin anew after 49 days, so ids made one after the other are neighbours in the index of
/// a storage. 90 bits are random.
JobId newJobId(bool sync);

/// Returns lower-case alphanumerics. Endpoints and nodes have 14 letters, templates 10.
std::string newName(std::size_t letters);

/// Returns `bytes` random bytes as lower-case hexadecimal digits.
std::string randomHex(std::size_t bytes);

/// Returns `bytes` random bytes.
std::string randomBytes(std::size_t bytes);

/// Returns whether `text` matches [A-Za-z0-9_-]+ and has at most 128 characters: the shape of endpoint and job ids.
bool isIdentifier(std::string_view text);

/// Source of the ids of calls at one storage: counts from a random number. Any thread.
class CallIds {
 public:
  CallIds();

  /// Returns a number that no earlier call returned, never 0.
  CallId next();

 private:
  std::atomic<CallId> last_;
};

}  // namespace jobq
