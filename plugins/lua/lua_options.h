// The settings `lua.*` of the configuration file, shared by handlers and filters.
#pragma once

#include <cstdint>

#include "jobq/config.h"
#include "jobq/time.h"

namespace jobq::lua {

struct LuaOptions {
  /// Reads the settings. Throws ConfigError if a value does not parse or is out of range.
  explicit LuaOptions(const PluginConfig& config)
      : memory(config.size("memory", 64U << 20, 1U << 20, std::uint64_t{64} << 30,
                           "memory that one script may hold at a time")),
        http(config.flag("http", false, "whether handlers may call http.get and http.post")),
        httpBody(config.size("httpBody", 10U << 20, 1024, 1U << 30, "largest answer of http.get and http.post")),
        httpTimeout(config.duration("httpTimeout", Millis(10'000), Millis(100), Millis(3'600'000),
                                    "longest call of http.get and http.post, redirects included")),
        filterTime(config.duration("filterTime", Millis(5), Millis(1), Millis(1'000),
                                   "processor time of a filter for one job; 20ms more for each MB decoded")) {}

  std::uint64_t memory;    ///< bytes that one script may hold at a time
  bool http;               ///< handlers may call http.get and http.post
  std::uint64_t httpBody;  ///< limit in bytes of the body of an HTTP answer
  Millis httpTimeout;      ///< limit of an HTTP call, redirects included
  Millis filterTime;       ///< processor time of a filter for one job, 20 ms more for each decoded MB
};

}  // namespace jobq::lua
