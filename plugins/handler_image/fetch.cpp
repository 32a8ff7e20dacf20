#include "fetch.h"

#include "http_transfer.h"
#include "jobq/error.h"
#include "web_url.h"

namespace jobq::image {

namespace {

constexpr long kMaxRedirects = 3;
constexpr long kOk = 200;

}  // namespace

std::string fetch(const std::string& url, const ImageLimits& limits, std::stop_token stop) {
  const auto address = parseWebUrl(url);
  if (!address) throw JobFailed("input.url must be an absolute http or https URL with a host");
  HttpRequest request;
  request.url = address->text;
  request.maxBody = limits.maxDownload;
  request.timeout = limits.fetchTimeout;
  request.maxRedirects = kMaxRedirects;
  request.allowPrivate = limits.allowPrivate;
  auto result = transfer(request, std::move(stop));
  if (const auto* fault = std::get_if<HttpFault>(&result)) {
    if (fault->stopped) throw JobFailed("the job was stopped while fetching " + address->shown);
    throw JobFailed(address->shown + " could not be fetched: " + fault->reason);
  }
  HttpReply& reply = std::get<HttpReply>(result);
  if (reply.status != kOk) {
    throw JobFailed(address->shown + " answered " + std::to_string(reply.status) +
                    " instead of 200; check that the address serves the picture without a login");
  }
  return std::move(reply.body);
}

}  // namespace jobq::image
