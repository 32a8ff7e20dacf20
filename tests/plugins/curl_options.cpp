#include "curl_options.h"

#include <dlfcn.h>

#include "jobq/mutex.h"

namespace jobq::test {
namespace {

struct SetOptions {
  Mutex mutex;
  bool isRecording JOBQ_GUARDED_BY(mutex) = false;
  std::map<CURLoption, long> numbers JOBQ_GUARDED_BY(mutex);
  std::map<CURLoption, std::string> texts JOBQ_GUARDED_BY(mutex);
};

SetOptions& setOptions() {
  static SetOptions options;
  return options;
}

void record(CURLoption option, long value) {
  SetOptions& all = setOptions();
  Lock lock(all.mutex);
  if (!all.isRecording) return;
  all.numbers[option] = value;
  const auto* text = reinterpret_cast<const char*>(value);
  if ((option == CURLOPT_PROXY || option == CURLOPT_PROTOCOLS_STR) && text != nullptr) all.texts[option] = text;
}

}  // namespace

CurlOptions::CurlOptions() {
  SetOptions& all = setOptions();
  Lock lock(all.mutex);
  all.isRecording = true;
}
CurlOptions::~CurlOptions() {
  SetOptions& all = setOptions();
  Lock lock(all.mutex);
  all.isRecording = false;
  all.numbers.clear();
  all.texts.clear();
}
long CurlOptions::number(CURLoption option) const {
  SetOptions& all = setOptions();
  Lock lock(all.mutex);
  const auto found = all.numbers.find(option);
  return found == all.numbers.end() ? -1 : found->second;
}
std::string CurlOptions::text(CURLoption option) const {
  SetOptions& all = setOptions();
  Lock lock(all.mutex);
  const auto found = all.texts.find(option);
  return found == all.texts.end() ? "(not set)" : found->second;
}

}  // namespace jobq::test

// Each value is a long, a pointer or a curl_off_t. All have the same size, and a variable argument is passed like the
// third parameter of this function.
static_assert(sizeof(long) == sizeof(void*) && sizeof(long) == sizeof(curl_off_t));
extern "C" __attribute__((visibility("default"))) CURLcode setRecordedOption(CURL* handle, CURLoption option,
                                                                             long value) __asm__("curl_easy_setopt");
CURLcode setRecordedOption(CURL* handle, CURLoption option, long value) {
  using SetOption = CURLcode (*)(CURL*, CURLoption, ...);
  static const auto libcurls = reinterpret_cast<SetOption>(dlsym(RTLD_NEXT, "curl_easy_setopt"));
  jobq::test::record(option, value);
  return libcurls(handle, option, value);
}
