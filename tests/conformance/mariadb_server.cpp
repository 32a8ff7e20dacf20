#include "mariadb_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <mysql.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace jobq::testkit {
namespace {

constexpr std::chrono::seconds kStartDeadline{60};

std::string userName() {
  const passwd* const user = getpwuid(geteuid());
  return user == nullptr ? "mysql" : user->pw_name;
}

std::string contentOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Closer {
  void operator()(MYSQL* handle) const noexcept { mysql_close(handle); }
};
using Session = std::unique_ptr<MYSQL, Closer>;

Session connect(const std::string& socket, const std::string& database) {
  Session session(mysql_init(nullptr));
  const unsigned protocol = MYSQL_PROTOCOL_SOCKET;
  mysql_options(session.get(), MYSQL_OPT_PROTOCOL, &protocol);
  if (mysql_real_connect(session.get(), "localhost", "root", "", database.empty() ? nullptr : database.c_str(), 0,
                         socket.c_str(), 0) == nullptr) {
    session.reset();
  }
  return session;
}

Session connected(const std::string& socket, const std::string& database) {
  Session session = connect(socket, database);
  if (!session) throw std::runtime_error("the database server of the test does not answer");
  return session;
}

void execute(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  const int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(file, 1);
  ::dup2(file, 2);
  std::vector<char*> raw;
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  ::execvp(raw[0], raw.data());
  ::_exit(127);
}

pid_t startChild(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  execute(arguments, log);
  ::_exit(127);
}

void endChild(pid_t& child) {
  if (child <= 0) return;
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  child = -1;
}

/// Gives the databases of a test back when the test has ended and its storages are closed.
class Returner final : public testing::EmptyTestEventListener {
 public:
  std::map<std::filesystem::path, std::string> taken;  // folder and database

 private:
  void OnTestEnd(const testing::TestInfo&) override {
    for (const auto& [folder, database] : std::exchange(taken, {})) MariadbServer::shared().returnDatabase(database);
  }
};

Returner& returner() {
  static Returner* const kReturner = [] {
    auto* const made = new Returner;
    testing::UnitTest::GetInstance()->listeners().Append(made);  // owns the listener
    return made;
  }();
  return *kReturner;
}

}  // namespace

MariadbServer& MariadbServer::shared() {
  static MariadbServer server;
  return server;
}

MariadbServer::MariadbServer(std::vector<std::string> options) {
  int commands[2];
  int answers[2];
  if (::pipe2(commands, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const std::string folder = folder_.path().string();
  std::vector<std::string> arguments{"/usr/sbin/mariadbd",
                                     "--no-defaults",
                                     "--user=" + userName(),
                                     "--datadir=" + folder + "/data",
                                     "--socket=" + socket(),
                                     "--pid-file=" + folder + "/pid",
                                     "--log-error=" + folder + "/log",
                                     "--tmpdir=" + folder,
                                     "--skip-networking",
                                     "--skip-name-resolve",
                                     "--innodb-buffer-pool-size=64M",
                                     "--innodb-log-file-size=64M",
                                     "--innodb-flush-log-at-trx-commit=2",
                                     "--innodb-doublewrite=0",
                                     "--innodb-file-per-table=0",
                                     "--max-allowed-packet=64M",
                                     "--skip-log-bin",
                                     "--performance-schema=OFF"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  keeper_ = ::fork();
  if (keeper_ == 0) {
    ::close(commands[1]);
    ::close(answers[0]);
    keep(commands[0], answers[1], arguments);
  }
  ::close(commands[0]);
  ::close(answers[1]);
  commands_ = commands[1];
  answers_ = answers[0];
  start();
}

MariadbServer::~MariadbServer() {
  ::close(commands_);
  ::close(answers_);
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) continue;
}

// Runs in the keeper. A starting mariadbd removes every `#sql*` file of its tmpdir, also the temporary tables of a
// second server. Two installations with the tmpdir of the environment would end each other, so each installation has a
// separate tmpdir.
bool MariadbServer::install() const {
  const pid_t installation =
      startChild({"/usr/bin/mariadb-install-db", "--no-defaults", "--user=" + userName(),
                  "--datadir=" + (folder_ / "data").string(), "--tmpdir=" + folder_.path().string(),
                  "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=64M"},
                 folder_ / "install");
  int status = 0;
  ::waitpid(installation, &status, 0);
  return status == 0;
}

// Runs in the keeper, until the other end of the pipe is closed.
void MariadbServer::keep(int commands, int answers, const std::vector<std::string>& arguments) const {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);   // the test process gets the signal too, and its end closes the pipe
  if (!install()) ::_exit(1);  // the test process reads the output of the installation, and removes the folder
  pid_t server = -1;
  for (char letter = 0; ::read(commands, &letter, 1) == 1;) {
    if (letter == 'k') endChild(server);
    if (letter == 's' && server < 0) server = startChild(arguments, folder_ / "log");
    if (::write(answers, &letter, 1) != 1) break;
  }
  endChild(server);
  std::error_code ignored;
  std::filesystem::remove_all(folder_.path(), ignored);
  ::_exit(0);
}

void MariadbServer::command(char letter) const {
  if (::write(commands_, &letter, 1) != 1) throw std::runtime_error("the keeper of the database server is gone");
  pollfd answer{answers_, POLLIN, 0};
  if (::poll(&answer, 1, 60'000) != 1 || ::read(answers_, &letter, 1) != 1) {
    throw std::runtime_error("the keeper of the database server does not answer: " + contentOf(folder_ / "install"));
  }
}

void MariadbServer::kill() { command('k'); }

void MariadbServer::start() {
  command('s');
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline;
  while (!connect(socket(), "")) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the database server did not come up within a minute: " + contentOf(folder_ / "log") +
                               contentOf(folder_ / "install"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void MariadbServer::run(const std::string& database, const std::vector<std::string>& statements) const {
  const Session session = connected(socket(), database);
  for (const std::string& statement : statements) {
    if (mysql_query(session.get(), statement.c_str()) != 0) {
      throw std::runtime_error(statement + ": " + mysql_error(session.get()));
    }
    if (MYSQL_RES* const result = mysql_store_result(session.get())) mysql_free_result(result);
  }
}

std::vector<std::string> MariadbServer::ask(const std::string& database, const std::string& query) const {
  const Session session = connected(socket(), database);
  if (mysql_query(session.get(), query.c_str()) != 0) {
    throw std::runtime_error(query + ": " + mysql_error(session.get()));
  }
  std::vector<std::string> values;
  MYSQL_RES* const result = mysql_store_result(session.get());
  if (result == nullptr) throw std::runtime_error(query + " has no result");
  while (const MYSQL_ROW row = mysql_fetch_row(result)) values.emplace_back(row[0] == nullptr ? "" : row[0]);
  mysql_free_result(result);
  return values;
}

std::string MariadbServer::provideDatabase() {
  if (!free_.empty()) {
    const std::string database = free_.back();
    free_.pop_back();
    return database;
  }
  const std::string database = "test" + std::to_string(++made_);
  run("", {"CREATE DATABASE " + database});
  return database;
}

void MariadbServer::returnDatabase(const std::string& database) {
  std::vector<std::string> statements;
  for (const std::string& table : ask(database, "SHOW TABLES")) {
    if (table == "jobq_schema") continue;
    if (table != "counted") {
      statements.push_back("DELETE FROM " + table);
      continue;
    }
    statements.emplace_back("DELETE FROM counted WHERE name > 'discarded ' AND name < 'discarded!'");
    statements.emplace_back("UPDATE counted SET value = 0");
  }
  run(database, statements);
  free_.push_back(database);
}

std::string databaseOf(const std::filesystem::path& folder) {
  const std::filesystem::path note = folder / "database";
  if (std::filesystem::exists(note)) return contentOf(note);
  MariadbServer& server = MariadbServer::shared();
  auto& taken = returner().taken;
  const auto found = taken.find(folder);
  if (found != taken.end()) server.returnDatabase(found->second);
  const std::string database = server.provideDatabase();
  taken[folder] = database;
  std::ofstream(note) << database;
  return database;
}

}  // namespace jobq::testkit
