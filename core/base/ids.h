// Names that are made up here. All randomness comes from the operating system's generator.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "jobq/job.h"

namespace jobq {

/// `<uuid version 4>-u1`, with `sync-` in front for /runsync (core/decisions/jobs.md).
JobId newJobId(bool sync);

/// Lower-case alphanumerics: 14 of them name an endpoint or a node, 10 a template.
std::string newName(std::size_t letters);

/// `bytes` random bytes as lower-case hexadecimal digits.
std::string randomHex(std::size_t bytes);

std::string toHex(std::string_view bytes);

/// `bytes` random bytes.
std::string randomBytes(std::size_t bytes);

/// Whether `text` matches [A-Za-z0-9_-]+ and is at most 128 characters long: the shape of endpoint and job ids.
bool isIdentifier(std::string_view text);

}  // namespace jobq
