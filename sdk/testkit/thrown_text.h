// The message of an expected exception, for a test.
#pragma once

#include <string>

namespace jobq::testkit {

/// Returns the message of the `Exception` that ends the call, or an empty text if the call returns. Other exceptions
/// pass.
template <class Exception, class Call>
std::string thrownText(Call&& call) {
  try {
    (void)call();
  } catch (const Exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace jobq::testkit
