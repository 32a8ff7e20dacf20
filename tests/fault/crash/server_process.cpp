#include "server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "testkit/wait_for.h"

namespace jobq::fault {
namespace {

constexpr auto kLook = std::chrono::milliseconds(1);
constexpr auto kStopDeadline = std::chrono::seconds(60);

std::string contentOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Becomes the program or ends the process. Uses only calls permitted in the child of a process with threads.
[[noreturn]] void become(const char* program, const char* settings, const char* log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execl(program, program, "--config", settings, static_cast<char*>(nullptr));
  ::_exit(127);
}

}  // namespace

ServerProcess::ServerProcess(std::filesystem::path program, std::filesystem::path folder, const std::string& settings)
    : program_(std::move(program)), folder_(std::move(folder)) {
  std::ofstream(folder_ / "jobq.properties") << "server.port = 0\ndata.dir = data\n" << settings;
}

ServerProcess::~ServerProcess() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  const testkit::HangGuard guard("the killed server to end");
  ::waitpid(process_, nullptr, 0);  // bounded by the guard
}

pid_t ServerProcess::start() {
  std::filesystem::remove(folder_ / "data" / "address");
  const std::string settings = folder_ / "jobq.properties";
  const std::string log = folder_ / "log";
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) become(program_.c_str(), settings.c_str(), log.c_str(), parent);
  if (process_ < 0) throw std::runtime_error("cannot fork");
  return process_;
}

bool ServerProcess::awaitReady(std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    if (contentOf(folder_ / "data" / "address").ends_with("\n")) return true;
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = 0;
      throw std::runtime_error("jobqd ended by itself while it started:\n" + logTail());
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
}

Address ServerProcess::address() const {
  const std::string text = contentOf(folder_ / "data" / "address");  // http://127.0.0.1:8000
  const std::size_t host = text.find("//") + 2;
  const std::size_t colon = text.rfind(':');
  return {text.substr(host, colon - host), static_cast<std::uint16_t>(std::atoi(text.c_str() + colon + 1))};
}

std::string ServerProcess::key() const {
  std::string key = contentOf(folder_ / "data" / "admin.key");
  while (key.ends_with("\n")) key.pop_back();
  return key;
}

void ServerProcess::kill() {
  ::kill(process_, SIGKILL);
  int status = 0;
  {
    const testkit::HangGuard guard("the killed server to end");
    ::waitpid(process_, &status, 0);  // bounded by the guard
  }
  process_ = 0;
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    throw std::runtime_error("jobqd had ended by itself before it was killed:\n" + logTail());
  }
}

void ServerProcess::stop() {
  ::kill(process_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kStopDeadline;
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("jobqd hangs after SIGTERM:\n" + logTail());
    std::this_thread::sleep_for(kLook);
  }
  process_ = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error("jobqd did not end well after SIGTERM:\n" + logTail());
  }
}

std::string ServerProcess::logTail() const {
  constexpr std::size_t kTail = 4000;
  const std::string log = contentOf(folder_ / "log");
  return log.size() > kTail ? log.substr(log.size() - kTail) : log;
}

}  // namespace jobq::fault
