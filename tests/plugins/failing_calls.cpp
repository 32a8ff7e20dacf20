#include "failing_calls.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <cerrno>

namespace jobq::test {

std::atomic<int> connectFailsWith = 0;
std::atomic<bool> addingFails = false;

}  // namespace jobq::test

extern "C" __attribute__((visibility("default"))) int connect(int socket, const sockaddr* address, socklen_t length) {
  static const auto systems = reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(dlsym(RTLD_NEXT, "connect"));
  const int error = jobq::test::connectFailsWith;
  if (error == 0) return systems(socket, address, length);
  errno = error;
  return -1;
}

extern "C" __attribute__((visibility("default"))) CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  using Add = CURLMcode (*)(CURLM*, CURL*);
  static const auto libcurls = reinterpret_cast<Add>(dlsym(RTLD_NEXT, "curl_multi_add_handle"));
  return jobq::test::addingFails ? CURLM_OUT_OF_MEMORY : libcurls(multi, easy);
}
