// Requests and answers for tests of transfers.
#pragma once

#include <string>

#include "http_client/transfer.h"
#include "testkit/wait_for.h"
#include "tiny_http.h"

namespace jobq::test {

/// Returns a GET with the longest time, for a short answer; private addresses are allowed.
inline http_client::Request requestTo(const std::string& url) {
  http_client::Request request;
  request.url = url;
  request.userAgent = "test/1";
  request.timeout = testkit::kHangDeadline;
  request.bodyBounds.kept = 100;
  request.allowPrivate = true;
  return request;
}

/// Answers each request with 200.
inline TinyHttp::Answer saying(const std::string& body) {
  return [body](const TinyRequest&, const TinyConnection& client) { client.reply(200, body); };
}

}  // namespace jobq::test
