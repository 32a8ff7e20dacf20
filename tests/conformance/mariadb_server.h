// A database server of a test process: its own mariadbd on an empty directory, reached through a Unix socket only.
//
// A small process, the keeper, starts the server, and ends the server and removes the directory when the test process
// is gone, however the test process ended. The server dies with the keeper.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "testkit/temporary_folder.h"

namespace jobq::testkit {

class MariadbServer {
 public:
  /// Starts a server with further options, such as "--max-allowed-packet=16M". Throws std::runtime_error with the log
  /// of the server if the server does not come up. The calling process has no other thread.
  explicit MariadbServer(std::vector<std::string> options = {});
  ~MariadbServer();
  MariadbServer(const MariadbServer&) = delete;
  MariadbServer& operator=(const MariadbServer&) = delete;

  /// Returns the server that the tests of the process share, started at the first call.
  static MariadbServer& shared();

  std::string socket() const { return (folder_ / "db.sock").string(); }

  /// Ends the server like a crash, with SIGKILL.
  void kill();
  /// Starts the killed server on its files. Returns when the server answers.
  void start();

  /// Runs statements, separated by newlines, as the administrator. Throws std::runtime_error if a statement fails.
  void run(const std::string& database, const std::vector<std::string>& statements) const;
  /// Returns the first column of the rows of a query.
  std::vector<std::string> ask(const std::string& database, const std::string& query) const;

  /// Returns the name of an empty database: a new database, or a database given back by a test.
  std::string provideDatabase();
  /// Empties the database for a later test. No storage has the database open.
  void returnDatabase(const std::string& database);

 private:
  void command(char letter) const;
  /// Makes the data of the server. Returns false if that failed; the file "install" of the folder has the output.
  bool install() const;
  [[noreturn]] void keep(int commands, int answers, const std::vector<std::string>& arguments) const;

  const TemporaryFolder folder_;
  pid_t keeper_ = -1;
  int commands_ = -1;
  int answers_ = -1;
  std::vector<std::string> free_;
  int made_ = 0;
};

/// Returns the database of a test folder; the first call takes the database from the shared server. A folder cleared
/// since the last call gets an empty database; no storage may have the former database open then. The database is given
/// back at the end of the running test.
std::string databaseOf(const std::filesystem::path& folder);

}  // namespace jobq::testkit
