// Values with units, as they are written in configuration files. Every parser throws ConfigError, which names the key,
// the value and what is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/time.h"

namespace jobq::units {

/// 500ms 5s 10m 24h 7d; a bare number is refused, because nobody can know what it means.
Millis duration(std::string_view key, std::string_view text, Millis min, Millis max);

/// 512B 64KB 10MB 1GB; 1 MB is 1,048,576 bytes.
std::uint64_t size(std::string_view key, std::string_view text, std::uint64_t min, std::uint64_t max);

std::int64_t integer(std::string_view key, std::string_view text, std::int64_t min, std::int64_t max);

/// true or false.
bool flag(std::string_view key, std::string_view text);

/// The bytes of a webhook secret: as Standard Webhooks writes it (whsec_ and base64), or any other text for its own.
std::string secret(std::string_view key, std::string_view text);

std::string print(Millis duration);
std::string printSize(std::uint64_t bytes);

/// The candidate that is nearest to `word` by edit distance; empty when there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace jobq::units
