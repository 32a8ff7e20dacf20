// Tests of JSON objects with fields described by the rows of a table (core/config/form.h), of the names of images
// (core/model/image.h), and of records of templates (core/config/template.h).
#include "core/config/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/secret_box.h"
#include "core/config/endpoint_spec.h"
#include "core/config/form_rows.h"
#include "core/config/template.h"
#include "core/model/image.h"
#include "core/model/script_name.h"
#include "jobq/error.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

struct Box {
  std::string name = "box";
  std::int64_t size = 1;
  bool open = false;
  std::vector<std::string> labels;
  std::string color = "red";
  std::string owner;
  std::string hidden;
  std::string secret;
  std::string told = "told";
};

const FormFields<Box>& boxFields() {
  static const FormFields<Box> kFields{
      textField<Box>("name", &Box::name, 1, 5),
      wholeField<Box>("size", &Box::size, {1, 9}),
      flagField<Box>("open", &Box::open),
      textsField<Box>("labels", &Box::labels),
      choiceField<Box>("color", &Box::color, {"red", "blue"}),
      textField<Box>("owner", &Box::owner, 0, 9, FieldUse::creation),
      textField<Box>("hidden", &Box::hidden, 0, 9, FieldUse::record),
      textField<Box>("secret", &Box::secret, 0, 9, FieldUse::secret),
      textField<Box>("told", &Box::told, 0, 9, FieldUse::answer),
  };
  return kFields;
}

class FormTest : public testing::Test {
 protected:
  /// Returns the faults, one per line.
  std::string read(const std::string& text, bool creating = true) {
    std::string all;
    for (const FieldFault& fault : readForm(box_, text, boxFields(), "a box", creating)) all += fault.message + "\n";
    return all;
  }

  Box box_;
};

TEST_F(FormTest, DescribesEachFieldWithItsDefault) {
  const std::vector<FieldFacts> facts = described(boxFields());
  ASSERT_EQ(facts.size(), boxFields().size());
  EXPECT_EQ(facts[0].name + " " + facts[0].type + " " + facts[0].defaultValue, "name string \"box\"");
  EXPECT_EQ(facts[1].type + " " + std::to_string(facts[1].range->max), "integer 9");
  EXPECT_THAT(facts[4].choices, ElementsAre("red", "blue"));
  EXPECT_EQ(facts[7].use, FieldUse::secret);
}

TEST_F(FormTest, ANeededFieldIsMissedOnceAndOnlyIfItHasNoFault) {
  const FormFields<Box> fields{textField<Box>("name", &Box::name, 1, 5).needed("name is missing"),
                               textsField<Box>("labels", &Box::labels).needed("labels are missing")};
  FieldFaults faults;
  box_.name.clear();
  addAbsent(faults, box_, fields);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].message, "name is missing");
  addAbsent(faults, box_, fields);
  EXPECT_EQ(faults.size(), 2U);
}

TEST_F(FormTest, AFurtherCheckFollowsTheReading) {
  const FormFields<Box> fields{textField<Box>("name", &Box::name, 1, 5).checked([](const Box& box) {
    return box.name == "bad" ? Result<void>(invalid("is bad")) : Result<void>();
  })};
  const auto faultOf = [&](const std::string& text) {
    const FieldFaults faults = readForm(box_, text, fields, "a box", true);
    return faults.empty() ? "" : faults.front().message;
  };
  EXPECT_EQ(faultOf(R"({"name":"good"})"), "");
  EXPECT_EQ(faultOf(R"({"name":"bad"})"), "name is bad");
  EXPECT_THAT(faultOf(R"({"name":1})"), HasSubstr("must be a string"));
}

TEST_F(FormTest, ReadsEachKindOfField) {
  EXPECT_EQ(read(R"({"name":"é","size":9,"open":true,"labels":["a","b"],"color":"blue","owner":"me","secret":"s"})"),
            "");
  EXPECT_EQ(box_.name, "é");
  EXPECT_EQ(box_.size, 9);
  EXPECT_TRUE(box_.open);
  EXPECT_THAT(box_.labels, ElementsAre("a", "b"));
  EXPECT_EQ(box_.color, "blue");
  EXPECT_EQ(box_.owner, "me");
  EXPECT_EQ(box_.secret, "s");
}

TEST_F(FormTest, AbsentAndNullFieldsStay) {
  EXPECT_EQ(read(R"({"name":null,"nothing":null})"), "");
  EXPECT_EQ(read("{}"), "");
  EXPECT_EQ(box_.name, "box");
  EXPECT_EQ(box_.size, 1);
}

TEST_F(FormTest, EveryWrongFieldIsReportedAndGoodFieldsAreRead) {
  const std::string faults = read(R"({"name":"","size":10,"open":1,"labels":["a",1],"color":"green","secret":"s"})");
  EXPECT_THAT(faults, HasSubstr("name must be a string of 1 to 5 bytes"));
  EXPECT_THAT(faults, HasSubstr("size must be an integer from 1 to 9"));
  EXPECT_THAT(faults, HasSubstr("open must be true or false"));
  EXPECT_THAT(faults, HasSubstr("labels must be an array of strings"));
  EXPECT_THAT(faults, HasSubstr("color must be one of red, blue"));
  EXPECT_EQ(box_.secret, "s");
}

TEST_F(FormTest, ATextsLengthIsInBytes) {
  EXPECT_EQ(read(R"({"name":"12345"})"), "");
  EXPECT_NE(read(R"({"name":"123456"})"), "");
  EXPECT_NE(read("{\"name\":\"\u00e9\u00e9\u00e9\"}"), "") << "three characters of two bytes";
  EXPECT_NE(read(R"({"name":5})"), "");
}

TEST_F(FormTest, ANumberIsAPlainIntegerInTheRange) {
  for (const char* wrong : {"0", "10", "1.5", "\"1\"", "1e0", "true", "99999999999999999999"}) {
    EXPECT_NE(read(std::string(R"({"size":)") + wrong + "}"), "") << wrong;
  }
  EXPECT_EQ(box_.size, 1);
}

TEST_F(FormTest, AnUnknownFieldNamesTheNearest) {
  EXPECT_THAT(read(R"({"siez":1})"), HasSubstr("siez is not a field of a box; the nearest one is size"));
}

TEST_F(FormTest, FieldsOfTheServerAreRefused) {
  EXPECT_THAT(read(R"({"told":"x"})"), HasSubstr("told is not a field"));
  EXPECT_THAT(read(R"({"hidden":"x"})"), HasSubstr("hidden is not a field"));
  EXPECT_EQ(box_.told, "told");
}

TEST_F(FormTest, FieldsFixedAtCreationDoNotChange) {
  EXPECT_EQ(read(R"({"owner":"me"})"), "");
  EXPECT_THAT(read(R"({"owner":"you"})", false), HasSubstr("owner of a box is fixed when it is created"));
  EXPECT_EQ(box_.owner, "me");
}

TEST_F(FormTest, ABodyIsASingleObjectWithEachKeyOnce) {
  EXPECT_THAT(read("{"), HasSubstr("the body is not valid JSON"));
  EXPECT_THAT(read(""), HasSubstr("the body is not valid JSON"));
  EXPECT_THAT(read("[]"), HasSubstr("the body must be a JSON object"));
  EXPECT_THAT(read(R"({"size":2,"\u0073ize":3})"), HasSubstr("size appears twice"));
  EXPECT_EQ(box_.size, 2);
}

TEST_F(FormTest, AResponseHasPublicFieldsAndARecordHasAll) {
  box_.labels = {"a\"b"};
  box_.secret = "s";
  box_.hidden = "h";
  EXPECT_EQ(writeForm(box_, boxFields(), false),
            R"({"name":"box","size":1,"open":false,"labels":["a\"b"],"color":"red","owner":"","told":"told"})");
  const std::string record = writeForm(box_, boxFields(), true);
  Box copy;
  EXPECT_TRUE(readRecord(copy, record, boxFields()));
  EXPECT_EQ(copy.secret, "s");
  EXPECT_EQ(copy.hidden, "h");
  EXPECT_EQ(writeForm(copy, boxFields(), true), record);
}

TEST_F(FormTest, OnlyADamagedRecordIsRefusedAndAnUnknownNewerFieldIsIgnored) {
  EXPECT_FALSE(readRecord(box_, "{", boxFields()));
  const auto damaged = readRecord(box_, R"({"size":"many"})", boxFields());
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.failure().message(), StartsWith("size must be ")) << "the log names the field";
  EXPECT_TRUE(readRecord(box_, R"({"newer":1,"size":4})", boxFields()));
  EXPECT_EQ(box_.size, 4);
}

TEST_F(FormTest, AFaultOfTheWholeBodyIsAFaultOfEachField) {
  EXPECT_TRUE(isFaulty({{"", "broken"}}, "size"));
  EXPECT_TRUE(isFaulty({{"size", "wrong"}}, "size"));
  EXPECT_FALSE(isFaulty({{"size", "wrong"}}, "name"));
}

TEST(ImageNames, NameAPluginAScriptOrAnImage) {
  EXPECT_EQ(parseImage("plugin/echo").kind, Image::Kind::plugin);
  EXPECT_EQ(parseImage("plugin/echo").name, "echo");
  EXPECT_EQ(parseImage("lua/hello").kind, Image::Kind::lua);
  EXPECT_EQ(parseImage("lua/hello").name, "hello");
  EXPECT_EQ(parseImage("ghcr.io/me/worker:1").kind, Image::Kind::remote);
  EXPECT_EQ(parseImage("ghcr.io/me/worker:1").name, "ghcr.io/me/worker:1");
  EXPECT_EQ(parseImage("plugins/echo").kind, Image::Kind::remote);
}

TEST(ImageNames, NamesOfScriptsAndHandlersLeadToNoOtherFolder) {
  for (const char* wrong :
       {"", "lua/", "plugin/", "lua/..", "lua/a/b", "lua/../../etc/passwd", "plugin/a.b", "lua/ä", "lua/a b"}) {
    EXPECT_FALSE(checkImageName(std::string(wrong))) << wrong;
  }
  for (const char* good : {"lua/a", "plugin/A-1_z", "nginx", "a/../b"})
    EXPECT_TRUE(checkImageName(std::string(good))) << good;
  EXPECT_TRUE(checkImageName("lua/" + std::string(64, 'a')));
  EXPECT_FALSE(checkImageName("lua/" + std::string(65, 'a')));
  EXPECT_FALSE(isScriptName(std::string_view("a\0b", 3)));
}

TEST(ImageNames, OfRemoteWorkersAreNotCloseToLocalOnes) {
  const std::vector<std::string> local{"lua/words", "plugin/echo"};
  for (const auto& [wrong, meant] :
       std::vector<std::pair<std::string, std::string>>{{"Plugin/echo", "plugin/echo"},
                                                        {"plugins/echo", "plugin/echo"},
                                                        {"plugin.ech", "plugin/echo"},
                                                        {"echo", "plugin/echo"},
                                                        {"words", "lua/words"},
                                                        {"lua:words", "lua/words"},
                                                        {"lua:x", "lua/x"},
                                                        {"LUA/x", "lua/x"},
                                                        {"Plugins:other", "plugin/other"}}) {
    const auto checked = checkRemoteImage(wrong, local);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.failure().message(), "names remote workers, and is close to " + meant + ": write " + meant +
                                               ", or give the image of the workers another name");
  }
  for (const char* blank : {" echo", "acme/a b", "acme/a\tb", "acme/a\n"}) {
    EXPECT_EQ(checkRemoteImage(blank, local).failure().message(), "has a blank or a control character: leave it out");
  }
  for (const char* good : {"acme/echo", "lua:5.4", "plug/in/echo:1", "ech", "plugin/other", "plugin/echp"}) {
    EXPECT_TRUE(checkRemoteImage(good, local)) << good;
  }
}

class TemplateRecordTest : public testing::Test {
 protected:
  static std::string faultsOf(const std::string& text) {
    Template form;
    std::string all;
    for (const FieldFault& fault : readForm(form, text, templateFields(), "a template", true)) all += fault.message;
    return all;
  }

  const testkit::TemporaryFolder folder_;
  const SecretBox box_{folder_ / "secret.key"};
};

TEST_F(TemplateRecordTest, ARecordBringsTheTemplateBackWithASealedEnv) {
  Template form;
  form.id = "t1";
  form.name = "mine";
  form.imageName = "plugin/echo";
  form.env = {{"TOKEN", "s3cr3t"}};
  form.ports = {"80/http"};
  const Record record = toRecord(form, box_);
  EXPECT_EQ(record.kind, kTemplateKind);
  EXPECT_EQ(record.name, "mine");
  EXPECT_THAT(record.body, Not(HasSubstr("s3cr3t")));
  const Template back = templateOf(record, box_);
  EXPECT_EQ(toJson(back), toJson(form));
  EXPECT_THAT(back.env, ElementsAre(Pair("TOKEN", "s3cr3t")));
}

TEST_F(TemplateRecordTest, ARemovedTemplateFreesTheName) {
  Template form;
  form.id = "t1";
  form.name = "mine";
  form.imageName = "plugin/echo";
  form.removal = kRemovalDecided;
  EXPECT_EQ(toRecord(form, box_).name, "");
  EXPECT_TRUE(isGone(templateOf(toRecord(form, box_), box_)));
}

TEST_F(TemplateRecordTest, ADamagedRecordAndARecordOfADifferentKeyFileAreRefused) {
  Template form;
  form.id = "t1";
  const Record record = toRecord(form, box_);
  const SecretBox other(folder_ / "other.key");
  form.env = {{"A", "1"}};
  EXPECT_THROW((void)templateOf(toRecord(form, box_), other), Error);
  Record damaged = record;
  damaged.body = "{\"volumeInGb\":\"x\"}";
  EXPECT_THAT(testkit::thrownText<Error>([&] { return templateOf(damaged, box_); }),
              HasSubstr("the template t1 in the storage is damaged"));
}

TEST_F(TemplateRecordTest, PortsAndPathsAndEnvsHaveFixedShapes) {
  EXPECT_EQ(faultsOf(R"({"ports":["1/http","65535/tcp"],"volumeMountPath":"/a","env":{"A":""}})"), "");
  for (const char* port : {"0/http", "65536/tcp", "80", "80/udp", "/http", "-1/tcp", "8 0/tcp", "000080/tcp"}) {
    EXPECT_THAT(faultsOf(std::string(R"({"ports":[")") + port + "\"]}"), HasSubstr("ports must hold")) << port;
  }
  EXPECT_THAT(faultsOf(R"({"volumeMountPath":"a"})"), HasSubstr("absolute path"));
  for (const char* env : {R"({"":"x"})", R"({"A=B":"x"})", R"({"A\u0000":"x"})", R"({"A":"\u0000"})", R"({"A":1})"}) {
    EXPECT_NE(faultsOf(std::string(R"({"env":)") + env + "}"), "") << env;
  }
}

TEST(EndpointForms, CrossFaultsAreToldOnceAndOnlyOfGoodFields) {
  EndpointSpec form;
  form.workersMin = 4;
  FieldFaults faults;
  addCrossFaults(faults, form);
  EXPECT_EQ(faults.size(), 2U);
  faults = {{"workersMax", "wrong"}, {"templateId", "wrong"}};
  addCrossFaults(faults, form);
  EXPECT_EQ(faults.size(), 2U);
  form.workersMin = form.workersMax;
  form.templateId = "t";
  faults.clear();
  addCrossFaults(faults, form);
  EXPECT_THAT(faults, IsEmpty());
}

TEST(EndpointForms, LimitsAndRetentionsAreReadAndTold) {
  EndpointSpec form;
  const std::string text =
      R"({"rateLimits":{"run":{"requests":5,"windowMs":100,"concurrent":0,"perWorker":7}},"retention":{"runsync":1000}})";
  EXPECT_TRUE(readForm(form, text, endpointFields(), "an endpoint", true).empty());
  const LimitSetting& run = form.limits[static_cast<std::size_t>(Operation::run)];
  EXPECT_EQ(run.requests, 5U);
  EXPECT_EQ(run.window, Millis(100));
  EXPECT_EQ(run.concurrent, 0U);
  EXPECT_EQ(run.perWorker, 7U);
  EXPECT_EQ(form.runsyncRetention, Millis(1'000));
  EXPECT_FALSE(form.runRetention);
  EXPECT_THAT(writeForm(form, endpointFields(), false),
              HasSubstr(R"("rateLimits":{"run":{"requests":5,"windowMs":100,"concurrent":0,"perWorker":7}})"));
  for (const char* wrong : {R"({"rateLimits":{"run":5}})", R"({"rateLimits":{"run":{"windowMs":0}}})",
                            R"({"rateLimits":{"run":{"requests":1,"requests":2}}})", R"({"retention":{"run":999}})",
                            R"({"retention":{"other":1000}})", R"({"retention":5})"}) {
    EXPECT_FALSE(readForm(form, wrong, endpointFields(), "an endpoint", true).empty()) << wrong;
  }
  EXPECT_TRUE(readForm(form, R"({"rateLimits":{}})", endpointFields(), "an endpoint", true).empty());
  EXPECT_FALSE(form.limits[static_cast<std::size_t>(Operation::run)].requests) << "a list replaces the former list";
}

}  // namespace
}  // namespace jobq
