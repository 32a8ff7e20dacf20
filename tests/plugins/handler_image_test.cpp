// Tests of the image handler's work on pictures, and of its messages about wrong input.
#include <tuple>

#include "image_fixture.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(HandlerImage, KeepsAPictureWithoutOperations) {
  const Gd source = quarters(6, 4);
  const Picture result = process(source, "");
  EXPECT_EQ(result.format, "png");
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x) EXPECT_EQ(result.at(x, y), gdImageGetPixel(source.get(), x, y));
  }
  EXPECT_THAT(context_.lines(), IsEmpty());
}

TEST_F(HandlerImage, ConvertsBetweenAllFormats) {
  const Gd source = quarters(64, 48);
  for (const std::string& file : {jpegOf(source), pngOf(source), webpOf(source)}) {
    for (const std::string format : {"jpeg", "png", "webp"}) {
      const Picture result = process(inputOf(file, "\"format\":\"" + format + "\",\"quality\":95"));
      EXPECT_EQ(result.format, format);
      EXPECT_EQ(result.width, 64);
      EXPECT_EQ(result.height, 48);
      EXPECT_THAT(result.at(10, 10), IsNear(kRed, 12));
      EXPECT_THAT(result.at(50, 10), IsNear(kGreen, 12));
      EXPECT_THAT(result.at(10, 40), IsNear(kBlue, 12));
      EXPECT_THAT(result.at(50, 40), IsNear(kYellow, 12));
    }
  }
}

TEST_F(HandlerImage, KeepsTheFormatOfTheSourceByDefault) {
  const Gd source = quarters(8, 8);
  EXPECT_EQ(process(inputOf(jpegOf(source))).format, "jpeg");
  EXPECT_EQ(process(inputOf(pngOf(source))).format, "png");
  EXPECT_EQ(process(inputOf(webpOf(source))).format, "webp");
}

// A lossless WebP of a single colour needs no bits for its pixels, so the header is nearly the whole file.
TEST_F(HandlerImage, ReadsALosslessWebpOf28Bytes) {
  const std::string file("RIFF\x14\0\0\0WEBPVP8L\x08\0\0\0\x2f\x02\x40\0\x10\x88\x88\x08", 28);
  const Picture result = process(inputOf(file, R"("format":"png")"));
  EXPECT_EQ(result.width, 3);
  EXPECT_EQ(result.height, 2);
  EXPECT_THAT(failureOf(inputOf(file.substr(0, 24))), HasSubstr("is a WebP that ends within its header"));
  EXPECT_THAT(failureOf(inputOf(file.substr(0, 25))), Not(HasSubstr("within its header")));
}

TEST_F(HandlerImage, SpendsFewerBytesAtALowerQuality) {
  const Gd source(gdImageCreateTrueColor(128, 128));
  for (int i = 0; i < 128 * 128; ++i) gdImageSetPixel(source.get(), i % 128, i / 128, (i * 2654435761U) & 0xffffff);
  for (const std::string format : {"jpeg", "webp"}) {
    const auto sizeAt = [&](const char* quality) {
      return process(source, "\"format\":\"" + format + "\",\"quality\":" + quality).file.size();
    };
    EXPECT_LT(sizeAt("5"), sizeAt("60"));
    EXPECT_LT(sizeAt("60"), sizeAt("100"));
  }
}

TEST_F(HandlerImage, ResizesIntoABox) {
  const Gd source = quarters(80, 40);
  const std::tuple<const char*, int, int> kCases[] = {
      {R"({"resize":{"width":40}})", 40, 20},
      {R"({"resize":{"height":10}})", 20, 10},
      {R"({"resize":{"width":40,"height":40}})", 40, 20},
      {R"({"resize":{"width":40,"height":40,"fit":"inside"}})", 40, 20},
      {R"({"resize":{"width":200,"height":80,"fit":"inside"}})", 160, 80},
      {R"({"resize":{"width":40,"height":40,"fit":"stretch"}})", 40, 40},
      {R"({"resize":{"width":40,"height":40,"fit":"cover"}})", 40, 40},
      {R"({"resize":{"width":10,"fit":"cover"}})", 10, 5},
      {R"({"resize":{"width":1,"height":1}})", 1, 1},
      {R"({"resize":{"width":1}})", 1, 1},
  };
  for (const auto& [operation, width, height] : kCases) {
    const Picture result = operate(source, operation);
    EXPECT_EQ(result.width, width) << operation;
    EXPECT_EQ(result.height, height) << operation;
    if (width < 10) continue;
    EXPECT_THAT(result.at(1, 1), IsNear(kRed, 2)) << operation;
    EXPECT_THAT(result.at(width - 2, 1), IsNear(kGreen, 2)) << operation;
    EXPECT_THAT(result.at(1, height - 2), IsNear(kBlue, 2)) << operation;
    EXPECT_THAT(result.at(width - 2, height - 2), IsNear(kYellow, 2)) << operation;
  }
}

// Red and blue stripes mark the parts to be cut off.
TEST_F(HandlerImage, CoversABoxFromTheMiddle) {
  const Gd source(gdImageCreateTrueColor(80, 20));
  gdImageFilledRectangle(source.get(), 0, 0, 79, 19, kGreen);
  gdImageFilledRectangle(source.get(), 0, 0, 29, 19, kRed);
  gdImageFilledRectangle(source.get(), 50, 0, 79, 19, kBlue);
  const Picture result = operate(source, R"({"resize":{"width":10,"height":10,"fit":"cover"}})");
  for (int x = 0; x < 10; ++x) EXPECT_THAT(result.at(x, 5), IsNear(kGreen, 2)) << x;
}

TEST_F(HandlerImage, CropsExactly) {
  const Gd source = quarters(40, 20);
  const Picture result = operate(source, R"({"crop":{"x":18,"y":9,"width":4,"height":3}})");
  EXPECT_EQ(result.width, 4);
  EXPECT_EQ(result.height, 3);
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) EXPECT_EQ(result.at(x, y), gdImageGetPixel(source.get(), 18 + x, 9 + y));
  }
  EXPECT_EQ(operate(source, R"({"crop":{"width":40,"height":20}})").at(39, 19), kYellow);
}

TEST_F(HandlerImage, RotatesByQuarterTurnsExactly) {
  const Gd source = quarters(6, 4);
  struct Case {
    const char* degrees;
    int width, topLeft, topRight, lowLeft, lowRight;
  };
  constexpr Case kCases[] = {{"90", 4, kBlue, kRed, kYellow, kGreen},   {"-270", 4, kBlue, kRed, kYellow, kGreen},
                             {"180", 6, kYellow, kBlue, kGreen, kRed},  {"-180", 6, kYellow, kBlue, kGreen, kRed},
                             {"270", 4, kGreen, kYellow, kRed, kBlue},  {"-90", 4, kGreen, kYellow, kRed, kBlue},
                             {"0", 6, kRed, kGreen, kBlue, kYellow},    {"360.0", 6, kRed, kGreen, kBlue, kYellow},
                             {"-360", 6, kRed, kGreen, kBlue, kYellow}, {"9e1", 4, kBlue, kRed, kYellow, kGreen}};
  for (const Case& c : kCases) {
    const Picture result = operate(source, std::string(R"({"rotate":{"degrees":)") + c.degrees + "}}");
    ASSERT_EQ(result.width, c.width) << c.degrees;
    ASSERT_EQ(result.height, 10 - c.width) << c.degrees;
    EXPECT_EQ(result.at(0, 0), c.topLeft) << c.degrees;
    EXPECT_EQ(result.at(result.width - 1, 0), c.topRight) << c.degrees;
    EXPECT_EQ(result.at(0, result.height - 1), c.lowLeft) << c.degrees;
    EXPECT_EQ(result.at(result.width - 1, result.height - 1), c.lowRight) << c.degrees;
  }
}

TEST_F(HandlerImage, RotatesByAnyAngleAndHoldsTheCorners) {
  const Gd source = quarters(100, 100);
  const Picture result = operate(source, R"({"rotate":{"degrees":45}})");
  EXPECT_EQ(result.width, 142);
  EXPECT_EQ(result.height, 142);
  EXPECT_EQ(gdTrueColorGetAlpha(result.at(2, 2)), gdAlphaTransparent);
  EXPECT_EQ(gdTrueColorGetAlpha(result.at(139, 139)), gdAlphaTransparent);
  EXPECT_EQ(result.at(71, 20), kRed);
  EXPECT_EQ(result.at(120, 71), kGreen);
  EXPECT_EQ(result.at(20, 71), kBlue);
  EXPECT_EQ(result.at(71, 120), kYellow);
}

TEST_F(HandlerImage, FillsTheCornersOfARotatedJpegWhite) {
  const Gd source = quarters(100, 100);
  const Picture result =
      process(inputOf(jpegOf(source), R"("operations":[{"rotate":{"degrees":-30.5}}],"quality":95)"));
  EXPECT_THAT(result.at(3, 3), IsNear(0xffffff, 6));
  EXPECT_THAT(result.at(result.width - 4, 3), IsNear(0xffffff, 6));
  EXPECT_THAT(result.at(result.width / 2 - 20, result.height / 2), IsNear(kBlue, 200));
}

TEST_F(HandlerImage, AppliesOperationsInOrder) {
  const Gd source = quarters(80, 40);
  const Picture result = operate(source, R"({"crop":{"x":40,"width":40,"height":20}},{"rotate":{"degrees":90}},)"
                                         R"({"resize":{"width":10}})");
  EXPECT_EQ(result.width, 10);
  EXPECT_EQ(result.height, 20);
  EXPECT_EQ(result.at(5, 10), kGreen);
}

TEST_F(HandlerImage, KeepsAlpha) {
  Gd source = quarters(40, 40);
  gdImageFilledRectangle(source.get(), 0, 0, 19, 19, kClear);
  gdImageFilledRectangle(source.get(), 20, 20, 39, 39, 0x40000000 | kYellow);
  for (const std::string format : {"png", "webp"}) {
    const Picture result =
        process(source, R"("quality":95,"operations":[{"resize":{"width":20}}],"format":")" + format + "\"");
    EXPECT_EQ(gdTrueColorGetAlpha(result.at(3, 3)), gdAlphaTransparent) << format;
    EXPECT_NEAR(gdTrueColorGetAlpha(result.at(15, 15)), 0x40, 2) << format;
    EXPECT_THAT(result.at(15, 3), IsNear(kGreen, 16)) << format;
  }
  const Picture jpeg = process(source, R"("format":"jpeg","quality":95)");
  EXPECT_THAT(jpeg.at(5, 5), IsNear(0xffffff, 8));
  EXPECT_THAT(jpeg.at(30, 30), IsNear(0xe7e788, 10));  // half of the colour is white
}

TEST_F(HandlerImage, ReadsPaletteAndColourKeyTransparency) {
  const Gd palette(gdImageCreate(8, 8));
  const int clear = gdImageColorAllocate(palette.get(), 1, 2, 3);
  const int red = gdImageColorAllocate(palette.get(), 0xd0, 0x10, 0x10);
  gdImageColorTransparent(palette.get(), clear);
  gdImageFilledRectangle(palette.get(), 4, 0, 7, 7, red);
  const Gd keyed = quarters(8, 8);
  gdImageColorTransparent(keyed.get(), kRed);
  int size = 0;
  void* bytes = gdImagePngPtr(keyed.get(), &size);

  const Picture fromPalette = process(palette, "");
  EXPECT_EQ(gdTrueColorGetAlpha(fromPalette.at(1, 1)), gdAlphaTransparent);
  EXPECT_EQ(fromPalette.at(6, 6), kRed);
  const Picture fromKey = process(inputOf(ownBytes(bytes, size)));
  EXPECT_EQ(gdTrueColorGetAlpha(fromKey.at(1, 1)), gdAlphaTransparent);
  EXPECT_EQ(fromKey.at(6, 1), kGreen);
}

std::string withOrientation(const std::string& jpeg, int orientation, bool little) {
  std::string tiff = little ? std::string("II\x2a\0\x08\0\0\0", 8) : std::string("MM\0\x2a\0\0\0\x08", 8);
  const auto number = [&](unsigned value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      tiff.push_back(static_cast<char>(value >> 8 * (little ? i : bytes - 1 - i)));
    }
  };
  number(2, 2);
  number(0x010f, 2), number(2, 2), number(4, 4), number(0, 4);
  number(0x0112, 2), number(3, 2), number(1, 4), number(static_cast<unsigned>(orientation), 2), number(0, 2);
  number(0, 4);
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  const auto length = static_cast<char>(body.size() + 2);
  return jpeg.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') + length + body + jpeg.substr(2);
}

TEST_F(HandlerImage, TurnsAJpegUprightByItsExifOrientation) {
  const std::string jpeg = jpegOf(quarters(64, 32));
  struct Case {
    int width, topLeft, topRight, lowLeft, lowRight;
  };
  // The expected picture of each of the eight orientations; the stored picture is red, green / blue, yellow.
  constexpr Case kCases[] = {{64, kRed, kGreen, kBlue, kYellow}, {64, kGreen, kRed, kYellow, kBlue},
                             {64, kYellow, kBlue, kGreen, kRed}, {64, kBlue, kYellow, kRed, kGreen},
                             {32, kRed, kBlue, kGreen, kYellow}, {32, kBlue, kRed, kYellow, kGreen},
                             {32, kYellow, kGreen, kBlue, kRed}, {32, kGreen, kYellow, kRed, kBlue}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Case& c = kCases[orientation - 1];
    const Picture result =
        process(inputOf(withOrientation(jpeg, orientation, orientation % 2 == 0), R"("format":"png")"));
    ASSERT_EQ(result.width, c.width) << orientation;
    ASSERT_EQ(result.height, 96 - c.width) << orientation;
    EXPECT_THAT(result.at(4, 4), IsNear(c.topLeft, 12)) << orientation;
    EXPECT_THAT(result.at(result.width - 5, 4), IsNear(c.topRight, 12)) << orientation;
    EXPECT_THAT(result.at(4, result.height - 5), IsNear(c.lowLeft, 12)) << orientation;
    EXPECT_THAT(result.at(result.width - 5, result.height - 5), IsNear(c.lowRight, 12)) << orientation;
  }
  for (const int odd : {0, 9, 255}) EXPECT_EQ(process(inputOf(withOrientation(jpeg, odd, true))).width, 64);
}

TEST_F(HandlerImage, RefusesMoreThanMaxPixels) {
  configure({{"maxPixels", "1000"}});
  const Gd source = quarters(20, 50);
  EXPECT_EQ(process(source, "").width, 20);
  EXPECT_EQ(failureOf(inputOf(pngOf(quarters(20, 51)))),
            "the picture is 20 x 51 pixels, more than maxPixels 1000; send a smaller one");
  const auto failure = [&](const char* operation) {
    return failureOf(inputOf(pngOf(source), std::string("\"operations\":[") + operation + "]"));
  };
  EXPECT_EQ(failure(R"({"resize":{"width":40,"height":40,"fit":"stretch"}})"),
            "resize asks for 40 x 40 pixels, more than maxPixels 1000; ask for a smaller picture");
  EXPECT_THAT(failure(R"({"resize":{"height":1000000}})"), StartsWith("resize asks for 400000 x 1000000 pixels"));
  EXPECT_THAT(failure(R"({"rotate":{"degrees":45}})"), StartsWith("rotate asks for 50 x 50 pixels"));
  EXPECT_EQ(failure(R"({"rotate":{"degrees":90}})"), "(it did not fail)");
}

TEST_F(HandlerImage, RefusesSidesTooLongForTheFormat) {
  const std::string input = inputOf(pngOf(quarters(100, 1)), R"("operations":[{"resize":{"width":16384,"height":2,)"
                                                             R"("fit":"stretch"}}],"format":"webp")");
  EXPECT_EQ(failureOf(input),
            "a webp can be at most 16383 pixels wide or high, and the result is 16384 x 2; resize it or choose another "
            "format");
}

TEST_F(HandlerImage, StopsBeforeItWorks) {
  context_.stop();
  EXPECT_EQ(failureOf(inputOf(pngOf(quarters(4, 4)))), "the job was stopped while working on the picture");
}

TEST_F(HandlerImage, ServesAgainAfterAFailure) {
  EXPECT_NE(failureOf("{}"), "");
  EXPECT_EQ(process(quarters(4, 4), "").width, 4);
}

TEST_F(HandlerImage, NamesTheFaultOfTheInput) {
  const std::string image = "\"image\":\"" + base64Of(pngOf(quarters(4, 4))) + "\"";
  const std::pair<const char*, const char*> kCases[] = {
      {R"("quality":0)", "input.quality must be a whole number from 1 to 100"},
      {R"("quality":101)", "input.quality must be"},
      {R"("quality":"80")", "input.quality must be"},
      {R"("format":"gif")", "input.format must be one of \"jpeg\", \"png\", \"webp\""},
      {R"("format":1)", "input.format must be a string"},
      {R"("qualty":80)",
       "input has the unknown key \"qualty\"; the known keys are image, url, operations, format, quality"},
      {R"("url":"http://a/")", "input must have exactly one of image (base64) and url"},
      {R"("operations":{})", "input.operations must be an array"},
      {R"("operations":[1])", "input.operations[0] must be a JSON object"},
      {R"("operations":[{}])", "input.operations[0] must have exactly one of the keys resize, crop, rotate"},
      {R"("operations":[{"rotate":{"degrees":1},"crop":{}}])", "exactly one of the keys"},
      {R"("operations":[{"blur":{}}])", "input.operations[0] has the unknown key \"blur\""},
      {R"("operations":[{"resize":1}])", "input.operations[0].resize must be an object"},
      {R"("operations":[{"resize":{}}])", "input.operations[0].resize.width must be given, or height, or both"},
      {R"("operations":[{"resize":{"width":0}}])", "resize.width must be a whole number from 1 to 1000000"},
      {R"("operations":[{"resize":{"height":1000001}}])", "resize.height must be a whole number"},
      {R"("operations":[{"resize":{"width":4,"fit":"fill"}}])",
       "resize.fit must be one of \"inside\", \"cover\", \"stretch\""},
      {R"("operations":[{"resize":{"width":4,"with":1}}])", "unknown key \"with\""},
      {R"("operations":[{"crop":{"width":4}}])", "crop.height must be a whole number from 1"},
      {R"("operations":[{"crop":{"x":-1,"width":1,"height":1}}])", "crop.x must be a whole number from 0"},
      {R"("operations":[{"crop":{"x":1,"y":2,"width":4,"height":1}}])",
       "crop asks for 4 x 1 pixels at 1, 2 of a picture of 4 x 4; choose a rectangle within it"},
      {R"("operations":[{"crop":{"y":1000000,"width":1000000,"height":1000000}}])", "choose a rectangle within it"},
      {R"("operations":[{"rotate":{}}])", "rotate.degrees must be a number from -360 to 360"},
      {R"("operations":[{"rotate":{"degrees":361}}])", "rotate.degrees must be a number"},
      {R"("operations":[{"rotate":{"degrees":1e999}}])", "rotate.degrees must be a number"},
      {R"("operations":[{"rotate":{"degrees":"90"}}])", "rotate.degrees must be a number"},
  };
  for (const auto& [rest, message] : kCases) {
    EXPECT_THAT(failureOf("{" + image + "," + rest + "}"), HasSubstr(message)) << rest;
  }
  std::string many = R"({"rotate":{"degrees":90}})";
  for (int i = 0; i < 32; ++i) many += R"(,{"rotate":{"degrees":90}})";
  EXPECT_THAT(failureOf("{" + image + ",\"operations\":[" + many + "]}"), HasSubstr("at most 32 operations"));
  EXPECT_THAT(failureOf("{}"), HasSubstr("exactly one of image (base64) and url"));
  EXPECT_THAT(failureOf("[1]"), HasSubstr("input must be a JSON object"));
  EXPECT_THAT(failureOf(R"({"image":""})"), HasSubstr("input.image must be a string that is not empty"));
  EXPECT_THAT(failureOf(R"({"image":"iVBO*w=="})"), HasSubstr("input.image is not base64: a character is not in the "
                                                              "base64 alphabet (at offset 4)"));
  EXPECT_THAT(failureOf(R"({"image":"aGVsbG8gd29ybGQ="})"),
              HasSubstr("the picture is not a JPEG, PNG or WebP file; send one of these"));
}

}  // namespace
}  // namespace jobq::test
