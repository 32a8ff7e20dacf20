// Tests of files that are broken, cut off or made to harm: each file ends as a picture or as a failed job.
#include <sys/resource.h>

#include <random>

#include "image_fixture.h"

namespace jobq::test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

std::string big(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

// Returns the 33 bytes of a header without further content.
std::string pngHeader(std::uint32_t width, std::uint32_t height) {
  return "\x89PNG\r\n\x1a\n" + big(13, 4) + "IHDR" + big(width, 4) + big(height, 4) + std::string("\x08\x06\0\0\0", 5) +
         big(0, 4);
}

std::string jpegHeader(std::uint32_t width, std::uint32_t height) {
  return "\xff\xd8\xff\xc0" + big(11, 2) + "\x08" + big(height, 2) + big(width, 2) + std::string("\x01\x01\x11\0", 4);
}

std::string extendedWebp(std::uint32_t width, std::uint32_t height, char flags) {
  std::string file("RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0", 20);
  file += flags;
  file.append(3, '\0');
  for (const std::uint32_t side : {width - 1, height - 1}) {
    for (int i = 0; i < 3; ++i) file.push_back(static_cast<char>(side >> 8 * i));
  }
  return file + std::string(16, '\0');
}

long peakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST_F(HandlerImage, RefusesABombByItsHeaderAtNoCost) {
  failureOf(inputOf(pngOf(quarters(8, 8))));
  const long before = peakKilobytes();
  EXPECT_EQ(failureOf(inputOf(pngHeader(100'000, 100'000))),
            "the picture is 100000 x 100000 pixels, more than maxPixels 40000000; send a smaller one");
  EXPECT_THAT(failureOf(inputOf(pngHeader(0xffffffff, 0xffffffff))), StartsWith("the picture is 4294967295 x "));
  EXPECT_THAT(failureOf(inputOf(jpegHeader(65'535, 65'535))), StartsWith("the picture is 65535 x 65535 pixels"));
  EXPECT_THAT(failureOf(inputOf(extendedWebp(1U << 24, 1U << 24, 0))), StartsWith("the picture is 16777216 x "));
  EXPECT_LT(peakKilobytes() - before, 10'000);
}

TEST_F(HandlerImage, RefusesFilesWithImpossibleHeaders) {
  EXPECT_THAT(failureOf(inputOf(pngHeader(0, 5))), HasSubstr("has a header with a width or height of 0"));
  EXPECT_THAT(failureOf(inputOf(jpegHeader(5, 0))), HasSubstr("has a header with a width or height of 0"));
  EXPECT_THAT(failureOf(inputOf(extendedWebp(5, 5, 2))), HasSubstr("is an animated WebP, which is not supported"));
  EXPECT_THAT(failureOf(inputOf("\xff\xd8\xff\xe0" + big(4, 2) + "ab" + "not a marker")),
              HasSubstr("is a JPEG whose header is damaged"));
  EXPECT_THAT(failureOf(inputOf("RIFF1234WEBPVP9 ................")), HasSubstr("is a WebP whose header is damaged"));
  EXPECT_THAT(failureOf(inputOf("GIF89a....")), HasSubstr("is not a JPEG, PNG or WebP file"));
}

TEST_F(HandlerImage, RefusesAJpegWithHundredsOfScans) {
  std::string file = jpegOf(quarters(16, 16));
  for (int i = 0; i < 101; ++i) file.append("\xff\xda", 2);
  EXPECT_THAT(failureOf(inputOf(file)), HasSubstr("is a JPEG with more than 100 scans"));
}

// The test cuts a small file at every length, and a larger file at many lengths.
TEST_F(HandlerImage, RefusesTruncatedFiles) {
  const Gd source = quarters(40, 30);
  for (const std::string& file : {jpegOf(source), pngOf(source), webpOf(source)}) {
    // Decoders do not miss the last bytes of a JPEG (end marker) and of a PNG (IEND).
    for (std::size_t length = 0; length + 16 < file.size(); length += 1 + file.size() / 150) {
      const std::string message = failureOf(inputOf(file.substr(0, length)));
      EXPECT_THAT(message, AnyOf(HasSubstr("the picture is "), HasSubstr("input.image must be a string that is not"),
                                 HasSubstr("not a JPEG, PNG or WebP")))
          << length << " of " << file.size();
    }
  }
}

// The test makes 64 corruptions of each format; the fixed seed lets a developer repeat a failure.
TEST_F(HandlerImage, SurvivesRandomCorruption) {
  configure({{"maxPixels", "4000000"}});
  std::mt19937 random(20'260'101);
  const Gd source = quarters(60, 44);
  int worked = 0;
  testing::internal::CaptureStderr();
  for (const std::string& file : {jpegOf(source), pngOf(source), webpOf(source)}) {
    for (int round = 0; round < 64; ++round) {
      std::string broken = file;
      const unsigned hits = 1 + random() % 8;
      for (unsigned i = 0; i < hits; ++i) broken[random() % broken.size()] = static_cast<char>(random());
      const std::string message = failureOf(inputOf(broken, R"("format":"png","operations":[{"resize":{"width":9}}])"));
      worked += message == "(it did not fail)" ? 1 : 0;
      EXPECT_THAT(message, AnyOf(StartsWith("the picture is "), StartsWith("the picture has "),
                                 StartsWith("(it did not fail)"), StartsWith("resize asks for ")));
    }
  }
  EXPECT_GT(worked, 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(HandlerImage, SendsWarningsOfTheLibrariesToTheJobsLogAndNotToStderr) {
  const std::string jpeg = jpegOf(quarters(64, 64));
  const std::string png = pngOf(quarters(64, 64));
  testing::internal::CaptureStderr();
  EXPECT_THAT(failureOf(inputOf(jpeg.substr(0, jpeg.size() / 2))), HasSubstr("damaged or incomplete jpeg"));
  EXPECT_THAT(failureOf(inputOf(png.substr(0, png.size() / 2))), HasSubstr("damaged or incomplete png"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(context_.lines(), Contains(HasSubstr("Premature end of JPEG file")));
}

}  // namespace
}  // namespace jobq::test
