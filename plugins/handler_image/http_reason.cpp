#include "http_reason.h"

#include <new>

namespace jobq::image {

namespace {

std::string reasonOfRefusal(const http_client::Fault& fault) {
  const bool isPrivate = fault.refused && fault.refused->addressClass == net::AddressClass::privateRange;
  if (!isPrivate) return fault.reason + "; use a public address";
  return "the address is private, which is not allowed here; use a public address or set net.allowPrivate";
}

}  // namespace

std::string reasonOf(const http_client::Fault& fault, std::uint64_t maxBody, Millis timeout) {
  using http_client::FaultKind;
  switch (fault.kind) {
    case FaultKind::addressRefused: return reasonOfRefusal(fault);
    case FaultKind::bodyTooLarge:
      return "the reply is larger than " + std::to_string(maxBody) + " bytes; offer a smaller file";
    case FaultKind::late:
      return "the transfer took longer than " + std::to_string(timeout.count()) +
             " ms; use a faster server or raise the timeout";
    case FaultKind::tooManyRedirects:
      return "there are more than " + std::to_string(kMaxRedirects) + " redirects; give the final address";
    case FaultKind::badRedirect:
      return "the address leads to something other than http or https; give an http or https URL";
    case FaultKind::outOfMemory: throw std::bad_alloc();
    case FaultKind::machine: return fault.reason + "; raise ulimit -n, or free memory of this machine";
    default: return fault.reason + "; check the address and try again";
  }
}

}  // namespace jobq::image
