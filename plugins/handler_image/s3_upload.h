// Uploads the result as an object into an S3-compatible bucket. The s3Config of the job has these keys; other keys are
// ignored:
//
//   accessId, accessSecret, bucketName, endpointUrl   strings, required
//   region      default "us-east-1"
//   objectPath  the object's key; default "<job id>.<extension>"
//
// Objects are addressed path-style: <endpointUrl>/<bucketName>/<key>.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "image_format.h"
#include "image_limits.h"

namespace jobq::image {

/// Holds a secret: never logged, never part of a message.
struct S3Account {
  std::string accessId;
  std::string accessSecret;
  std::string region;
  std::string bucketUrl;  ///< <endpointUrl>/<bucketName>, encoded
  std::string key;        ///< as given; empty for the default
};

/// Reads and checks an s3Config. Any thread; pure. Throws JobFailed with the key and the remedy, never with a value.
S3Account readS3Config(std::string_view json);

/// Uploads the object and returns its URL. Any thread; blocks up to `limits.uploadTimeout`. Throws JobFailed with the
/// object's URL, the reason and the remedy, and also when the stop token fires.
std::string upload(const S3Account& account, std::string_view jobId, std::string_view file, Format format,
                   const ImageLimits& limits, std::stop_token stop);

}  // namespace jobq::image
