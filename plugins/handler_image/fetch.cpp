#include "fetch.h"

#include <optional>
#include <utility>

#include "http_client/transfer.h"
#include "http_client/web_url.h"
#include "http_reason.h"
#include "jobq/error.h"

namespace jobq::image {

namespace {

constexpr int kOk = 200;

}  // namespace

std::string fetch(const std::string& url, const ImageLimits& limits, std::stop_token stop) {
  const auto address = http_client::WebUrl::read(url);
  if (!address) throw JobFailed(std::string("input.url must be ") + http_client::kUrlExpected);
  http_client::Request request;
  request.url = url;
  request.userAgent = kUserAgent;
  request.bodyBounds.kept = limits.maxDownload;
  request.timeout = limits.fetchTimeout;
  request.maxRedirects = kMaxRedirects;
  request.allowPrivate = limits.allowPrivate;
  http_client::Outcome outcome = http_client::transferPatiently(request, stop);
  const std::string shown = address->shown();
  if (outcome.fault) {
    if (outcome.fault->kind == http_client::FaultKind::stopped)
      throw JobFailed("the job was stopped while fetching " + shown);
    throw JobFailed(shown +
                    " could not be fetched: " + reasonOf(*outcome.fault, limits.maxDownload, limits.fetchTimeout));
  }
  if (outcome.answer.status != kOk) {
    throw JobFailed(shown + " answered " + std::to_string(outcome.answer.status) +
                    " instead of 200; check that the address serves the picture without a login");
  }
  return std::move(outcome.answer.body);
}

}  // namespace jobq::image
