// Values with units, as in configuration files. Every parser throws ConfigError with the key, the value and the
// accepted form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "jobq/time.h"

namespace jobq::units {

/// Reads 500ms 5s 10m 24h 7d; a bare number is refused, because its unit is unknown. Returns nullopt for other texts.
std::optional<Millis> readDuration(std::string_view text);

/// Reads a duration as readDuration() does.
Millis duration(std::string_view key, std::string_view text, Millis min, Millis max);

/// Reads 512B 64KB 10MB 1GB; 1 MB is 1,048,576 bytes.
std::uint64_t size(std::string_view key, std::string_view text, std::uint64_t min, std::uint64_t max);

/// Reads a whole number without unit, from `min` to `max`.
std::int64_t integer(std::string_view key, std::string_view text, std::int64_t min, std::int64_t max);

/// Reads true or false.
bool flag(std::string_view key, std::string_view text);

/// Returns the parts of a list between the characters of `separators`, without blanks around a part and without empty
/// parts.
std::vector<std::string> words(const std::string& list, const std::string& separators);

/// Returns the bytes of a webhook secret: decoded from the form of Standard Webhooks (whsec_ and base64), or the bytes
/// of any other text. Fails if the text begins with whsec_ and goes on with something else; the sentence begins with a
/// verb.
Result<std::string> signingKey(std::string_view text);
/// Returns signingKey(). Throws ConfigError, with the sentence after `key`, in place of a failure.
std::string secret(std::string_view key, std::string_view text);

/// Return the value as text with the largest unit that needs no fraction, in the form of duration() and size().
std::string print(Millis duration);
std::string printSize(std::uint64_t bytes);

}  // namespace jobq::units
