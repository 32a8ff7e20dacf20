#include "name_server.h"

#include <dlfcn.h>
#include <netdb.h>

#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "jobq/mutex.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

struct Names {
  Mutex mutex;
  Condition changed;
  std::map<std::string, std::vector<std::string>, std::less<>> addresses JOBQ_GUARDED_BY(mutex);
  std::string silent JOBQ_GUARDED_BY(mutex);
  int asking JOBQ_GUARDED_BY(mutex) = 0;  // threads resolving the silent name at this moment
};

// Never destroyed: a resolver's thread may outlive main.
Names& names() {
  static auto& names = *new Names;
  return names;
}

GetAddrInfo systems() {
  static const auto found = reinterpret_cast<GetAddrInfo>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return found;
}

int resolveLiterals(const std::vector<std::string>& literals, const char* service, addrinfo hints, addrinfo** result) {
  hints.ai_flags |= AI_NUMERICHOST;
  addrinfo** end = result;
  *result = nullptr;
  for (const std::string& literal : literals) {
    if (systems()(literal.c_str(), service, &hints, end) != 0) continue;  // the literal has a different address family
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return *result == nullptr ? EAI_NONAME : 0;
}

int resolve(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  std::vector<std::string> literals;
  {
    // A test waiting for the silent answer fails after the deadline instead of hanging.
    const testkit::WaitDeadline wait("an answer of the silent name server");
    Names& all = names();
    Lock lock(all.mutex);
    if (all.silent == node) {
      ++all.asking;
      all.changed.notifyAll();
      while (all.silent == node && !wait.isOver()) all.changed.waitFor(all.mutex, testkit::kHangDeadline);
      --all.asking;
      all.changed.notifyAll();
      return EAI_NONAME;
    }
    const auto found = all.addresses.find(node);
    literals = found == all.addresses.end() ? std::vector<std::string>{node} : found->second;
  }
  return resolveLiterals(literals, service, hints == nullptr ? addrinfo{} : *hints, result);
}

}  // namespace

NameServer::NameServer(const std::string& name, std::vector<std::string> addresses) {
  Names& all = names();
  Lock lock(all.mutex);
  all.addresses.insert_or_assign(name, std::move(addresses));
}
NameServer::~NameServer() {
  Names& all = names();
  Lock lock(all.mutex);
  all.addresses.clear();
}

SilentNameServer::SilentNameServer(const std::string& name) {
  Names& all = names();
  Lock lock(all.mutex);
  all.silent = name;
}
SilentNameServer::~SilentNameServer() {
  Names& all = names();
  Lock lock(all.mutex);
  all.silent.clear();
  all.changed.notifyAll();
  for (testkit::WaitDeadline wait("the questions to end"); all.asking > 0;) wait.on(all.changed, all.mutex);
}
void SilentNameServer::awaitQuestion() const {
  Names& all = names();
  Lock lock(all.mutex);
  for (testkit::WaitDeadline wait("a question for a name"); all.asking == 0;) wait.on(all.changed, all.mutex);
}

}  // namespace jobq::test

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints, addrinfo** result) {
  if (node == nullptr) return jobq::test::systems()(node, service, hints, result);
  return jobq::test::resolve(node, service, hints, result);
}
