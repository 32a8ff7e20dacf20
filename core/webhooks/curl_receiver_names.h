// The names of webhook receivers, by the parser of URLs that also decides about a webhook at its submission
// (`core/jobs/webhook_url.h`).
#pragma once

#include <string>
#include <string_view>

#include "jobq/receiver_names.h"

namespace jobq {

/// Names receivers with libcurl. Databases hold these names: a change of a name splits the deliveries to a receiver.
class CurlReceiverNames final : public ReceiverNames {
 public:
  /// Returns the host in lower case without a final dot, and the port unless the port is the scheme's own. IPv4
  /// addresses are dotted quads, also those inside IPv6 ("[::ffff:127.0.0.1]"); IPv6 addresses are eight groups in
  /// brackets: "[fe80:0:0:0:0:0:0:1]:8443". If the text has no host or is refused by libcurl, returns the text before
  /// the first colon in lower case, which is the scheme of a URL. If this part is empty, returns the whole text in
  /// lower case.
  std::string nameOf(std::string_view url) const override;
};

}  // namespace jobq
