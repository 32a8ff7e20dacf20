// Names of webhook receivers for tests of storages, which test no spellings: only the server's names are equal for all
// spellings of a receiver.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

#include "jobq/receiver_names.h"

namespace jobq::testkit {

/// Names receivers by the authority of the URL in lower case, without the user. A text without an authority is its own
/// name, in lower case.
class PlainReceiverNames final : public ReceiverNames {
 public:
  std::string nameOf(std::string_view url) const override {
    const std::string_view authority = authorityOf(url);
    std::string name(authority.empty() ? url : authority);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
  }

 private:
  static std::string_view authorityOf(std::string_view url) {
    const std::size_t start = url.find("://");
    if (start == std::string_view::npos) return {};
    std::string_view authority = url.substr(start + 3);
    authority = authority.substr(0, authority.find_first_of("/?#"));
    return authority.substr(authority.rfind('@') + 1);  // npos + 1 is 0
  }
};

}  // namespace jobq::testkit
