// The settings of the plugin, `storage.mysql.*`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "jobq/config.h"

namespace jobq::mysql {

/// The settings from the configuration. Construction throws ConfigError.
struct Options {
  explicit Options(const PluginConfig& config);

  /// Returns the password, from the file if the settings name a file. Throws ConfigError if the file cannot be read.
  std::string readPassword() const;
  /// Throws ConfigError if `tls` names an unreadable file of authorities.
  void checkAuthorities() const;
  /// Returns the name of the database server for messages: the socket, or host and port.
  std::string address() const;

  std::string host;
  std::uint16_t port;
  std::string socket;  // path of a Unix socket; empty for a connection to host and port
  std::string user;
  std::string password;
  std::string passwordFile;
  std::string database;
  std::size_t pool;
  std::string tls;  // "off", "on", or the path of a file with certificates of authorities
};

}  // namespace jobq::mysql
