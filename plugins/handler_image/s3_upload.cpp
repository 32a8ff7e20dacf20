#include "s3_upload.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "http_client/transfer.h"
#include "http_client/web_url.h"
#include "http_reason.h"
#include "jobq/error.h"
#include "jobq/fields.h"

namespace jobq::image {

namespace {

constexpr std::uint64_t kMaxAnswerBytes = 64 * 1024;
constexpr long kMostSaid = 200;

bool isAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool isMadeOf(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return (isAlphanumeric(c) && static_cast<unsigned char>(c) < 0x80) || others.find(c) != std::string_view::npos;
  });
}

// Encodes a path in the spelling that S3 signs: all bytes except these characters as %XX, slashes kept.
std::string encodePath(std::string_view path) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    if (isMadeOf({&c, 1}, "-_.~/")) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'%', kHex[byte >> 4], kHex[byte & 0xf]});
  }
  return out;
}

// S3 accepts keys such as "a//b", "/a" and "a/../b", but servers and proxies on the way rewrite such keys.
bool hasOddSegment(std::string_view key) {
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('/', start), key.size());
    const std::string_view segment = key.substr(start, end - start);
    if (segment.empty() || segment == "." || segment == "..") return true;
    start = end + 1;
  }
  return false;
}

// Returns <Code> or <Message> of an S3 error, printable and short. Other parts of the answer are never shown, because
// the answer repeats the signed text.
std::string errorField(const std::string& body, const std::string& name, const std::string& secret) {
  const std::size_t start = body.find("<" + name + ">");
  const std::size_t end = body.find("</" + name + ">");
  if (start == std::string::npos || end == std::string::npos) return {};
  const std::size_t from = start + name.size() + 2;
  if (from > end) return {};
  std::string text = body.substr(from, end - from);
  if (text.find(secret) != std::string::npos) return {};
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; }, ' ');
  return text.substr(0, kMostSaid);
}

std::string explainStatus(const http_client::Answer& answer, const S3Account& account) {
  const std::string code = errorField(answer.body, "Code", account.accessSecret);
  const std::string message = errorField(answer.body, "Message", account.accessSecret);
  std::string text = "the storage answered " + std::to_string(answer.status);
  if (!code.empty()) text += " " + code;
  if (!message.empty()) text += " (" + message + ")";
  if (answer.status == 401 || answer.status == 403)
    return text + "; check accessId, accessSecret, region and bucketName";
  if (answer.status == 404) return text + "; check that the bucket of bucketName exists";
  if (answer.status >= 300 && answer.status < 400) return text + ", a redirect; check endpointUrl and region";
  return text + "; check s3Config or try again";
}

}  // namespace

S3Account readS3Config(std::string_view json) {
  const Fields fields("s3Config", json);
  S3Account account;
  account.accessId = fields.requiredText("accessId");
  if (!isMadeOf(account.accessId, "-_.~+=@")) fields.refuse("accessId", "made of letters, digits and - _ . ~ + = @");
  account.accessSecret = fields.requiredText("accessSecret");
  if (account.accessSecret.find('\0') != std::string::npos) fields.refuse("accessSecret", "free of NUL characters");
  account.region = fields.text("region").value_or("us-east-1");
  if (account.region.empty() || !isMadeOf(account.region, "-")) {
    fields.refuse("region", "made of letters, digits and -, like \"us-east-1\"");
  }
  const std::string bucket = fields.requiredText("bucketName");
  if (!isMadeOf(bucket, "-_.") || bucket.starts_with('.')) {
    fields.refuse("bucketName", "made of letters, digits and - _ .");
  }
  account.key = fields.text("objectPath").value_or("");
  if (!account.key.empty() && hasOddSegment(account.key)) {
    fields.refuse("objectPath", "a key without a leading or trailing slash and without empty, . or .. segments");
  }
  account.bucketUrl = fields.requiredText("endpointUrl");
  const auto endpoint = http_client::WebUrl::read(account.bucketUrl);
  if (!endpoint || !endpoint->isBare()) {
    fields.refuse("endpointUrl", "an absolute http or https URL without user, password, query and fragment");
  }
  while (account.bucketUrl.ends_with('/')) account.bucketUrl.pop_back();
  account.bucketUrl += "/" + encodePath(bucket);
  return account;
}

std::string upload(const S3Account& account, std::string_view jobId, std::string_view file, Format format,
                   const ImageLimits& limits, std::stop_token stop) {
  const std::string key =
      account.key.empty() ? std::string(jobId) + "." + std::string(extensionOf(format)) : account.key;
  const std::string url = account.bucketUrl + "/" + encodePath(key);
  http_client::Request request;
  request.url = url;
  request.method = http_client::Method::put;
  request.body = file;
  request.headers = {{"Content-Type", std::string(mediaTypeOf(format))}};
  request.userAgent = kUserAgent;
  request.bodyBounds.kept = kMaxAnswerBytes;
  request.timeout = limits.uploadTimeout;
  request.allowPrivate = limits.allowPrivate;
  request.signature = http_client::AwsSignature{account.accessId, account.accessSecret, account.region};
  const http_client::Outcome outcome = http_client::transferPatiently(request, stop);
  if (!outcome.fault && outcome.answer.status == 200) return url;
  if (outcome.fault && outcome.fault->kind == http_client::FaultKind::stopped)
    throw JobFailed("the job was stopped while uploading the result to " + url);
  throw JobFailed("the result could not be uploaded to " + url + ": " +
                  (outcome.fault ? reasonOf(*outcome.fault, kMaxAnswerBytes, limits.uploadTimeout)
                                 : explainStatus(outcome.answer, account)));
}

}  // namespace jobq::image
