#include "connection/options.h"

#include <fstream>
#include <iterator>

#include "jobq/byte_order_mark.h"
#include "jobq/error.h"
#include "jobq/secret_option.h"

namespace jobq::mysql {

Options::Options(const PluginConfig& config)
    : host(config.text("host", "127.0.0.1", "host of the database server")),
      port(static_cast<std::uint16_t>(config.integer("port", 3306, 1, 65'535, "port of the database server"))),
      socket(config.text("socket", "", "path of the Unix socket of the server, used instead of host and port")),
      user(config.text("user", "jobq", "name of the database user")),
      password(readSecret(config, "password", "password of the user; better in a file, see passwordFile")),
      passwordFile(config.text("passwordFile", "", "file whose first line is the password of the user")),
      database(config.text("database", "jobq", "name of the database, which exists and which the user may change")),
      pool(static_cast<std::size_t>(
          config.integer("pool", 8, 2, 256, "connections of this node to the database, besides two for its beats"))),
      tls(config.text("tls", "off",
                      "off; on for TLS checked against the authorities of the system; or a PEM file of authorities")) {
  if (!password.empty() && !passwordFile.empty()) {
    throw ConfigError("storage.mysql.password and storage.mysql.passwordFile are both set; set one of them");
  }
  if (database.empty()) throw ConfigError("storage.mysql.database is empty; set the name of the database");
}

std::string Options::readPassword() const {
  if (passwordFile.empty()) return password;
  std::ifstream in(passwordFile);
  std::string line;
  if (!in.is_open() || (!std::getline(in, line) && !in.eof())) {
    throw ConfigError("storage.mysql.passwordFile names " + passwordFile +
                      ", which cannot be read; let this user read the file");
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return std::string(withoutByteOrderMark(line));
}

void Options::checkAuthorities() const {
  if (tls == "off" || tls == "on" || std::ifstream(tls).is_open()) return;
  throw ConfigError("storage.mysql.tls names " + tls +
                    ", which cannot be read; write off, on, or the path of a PEM file that this user may read");
}

std::string Options::address() const { return socket.empty() ? host + ":" + std::to_string(port) : socket; }

}  // namespace jobq::mysql
