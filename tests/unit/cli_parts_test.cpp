// Tests of the parts of jobqctl that need no server: command lines, forms, tables, and reading of answers (core/cli).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <sstream>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/field_options.h"
#include "core/cli/local_job.h"
#include "core/client/arguments.h"
#include "core/client/exit_code.h"
#include "core/client/input_text.h"
#include "core/client/table_print.h"
#include "core/config/field_facts.h"
#include "core/config/template.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns code and sentence of the failure, or an empty string without a failure.
template <class Act>
std::string failureOf(Act&& act) {
  try {
    act();
    return "";
  } catch (const CommandError& failure) {
    return std::to_string(static_cast<int>(failure.code())) + " " + failure.what();
  }
}

const std::vector<OptionRow>& someOptions() {
  static const std::vector<OptionRow> kOptions{
      {"name", "NAME", "a name"}, {"label", "LABEL", "a label", true}, {"quiet", "", "no words"}, {"wait", "TIME", ""}};
  return kOptions;
}
Arguments parsed(const std::vector<std::string>& given) { return parseArguments(given, someOptions()); }

TEST(ArgumentsTest, WordsAndOptionsMayBeMixed) {
  const Arguments arguments = parsed({"job", "--name", "n", "show", "--quiet", "id", "--wait=2s"});
  EXPECT_THAT(arguments.words, ElementsAre("job", "show", "id"));
  EXPECT_EQ(arguments.value("name"), "n");
  EXPECT_TRUE(arguments.has("quiet"));
  EXPECT_EQ(arguments.value("wait"), "2s");
  EXPECT_EQ(arguments.value("label", "none"), "none");
  EXPECT_THAT(arguments.values("label"), IsEmpty());
}

TEST(ArgumentsTest, AValueMayBeEmptyOrBeginWithADash) {
  EXPECT_EQ(parsed({"--name", ""}).value("name", "x"), "");
  EXPECT_EQ(parsed({"--name", "-5"}).value("name"), "-5");
  EXPECT_EQ(parsed({"--name", "--quiet"}).value("name"), "--quiet");
  EXPECT_EQ(parsed({"--name=a=b"}).value("name"), "a=b");
}

TEST(ArgumentsTest, OnlyARepeatableOptionMayBeRepeatedAndKeepsTheOrder) {
  EXPECT_THAT(parsed({"--label", "b", "--label=a"}).values("label"), ElementsAre("b", "a"));
  EXPECT_THAT(failureOf([] { (void)parsed({"--name", "a", "--name", "b"}); }), testing::StartsWith("2 "));
}

TEST(ArgumentsTest, ANameMayBeShortenedUnambiguously) {
  EXPECT_EQ(parsed({"--na", "n"}).value("name"), "n");
  EXPECT_EQ(parsed({"--lab", "-l"}).value("label"), "-l");
}

TEST(ArgumentsTest, AfterTwoDashesAllArgumentsAreWords) {
  EXPECT_THAT(parsed({"a", "--", "--name", "-"}).words, ElementsAre("a", "--name", "-"));
  EXPECT_THAT(parsed({"-"}).words, ElementsAre("-")) << "standard input";
}

TEST(ArgumentsTest, AWrongOptionIsNamed) {
  EXPECT_THAT(failureOf([] { (void)parsed({"--nothing"}); }), HasSubstr("nothing"));
  EXPECT_THAT(failureOf([] { (void)parsed({"--name"}); }), HasSubstr("name"));
  EXPECT_THAT(failureOf([] { (void)parsed({"--nothing"}); }), testing::StartsWith("2 "));
}

TEST(ArgumentsTest, ATimeHasAUnitAndARange) {
  const auto waitOf = [](const std::string& text) {
    return durationOf(parsed({"--wait", text}), "wait", Millis(7), {Millis(500), Millis(3'600'000)});
  };
  EXPECT_EQ(waitOf("500ms"), Millis(500));
  EXPECT_EQ(waitOf("2s"), Millis(2'000));
  EXPECT_EQ(waitOf("5m"), Millis(300'000));
  EXPECT_EQ(waitOf("1h"), Millis(3'600'000));
  EXPECT_EQ(durationOf(parsed({"--wait", "1d"}), "wait", Millis(7), {Millis(0), Millis(86'400'000)}),
            Millis(86'400'000));
  EXPECT_EQ(durationOf(parsed({}), "wait", Millis(7), {Millis(500), Millis(1'000)}), Millis(7));
  for (const char* wrong : {"", "5", "s", "-1s", "1.5s", "2 s", "2x", "499ms", "61m", "99999999999999999999s"}) {
    EXPECT_THAT(failureOf([&] { (void)waitOf(wrong); }), HasSubstr("--wait takes a time from 500ms to 1h")) << wrong;
  }
}

TEST(ArgumentsTest, TheHelpHasALineForEachOption) {
  EXPECT_THAT(describeOptions(someOptions()), HasSubstr("  --label LABEL  a label (may be repeated)\n"));
  EXPECT_THAT(describeOptions(someOptions()), HasSubstr("  --quiet        no words\n"));
}

TEST(TableTest, ColumnsAreAsWideAsTheLongestCell) {
  Table table({"id", "name"});
  table.add({"1", "a"});
  table.add({"22", "\xc3\xa9\xc3\xa9", "more"});
  table.add({});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "id  name\n1   a\n22  \xc3\xa9\xc3\xa9    more\n\n");
}

TEST(TableTest, ACellCannotSteerTheTerminal) {
  EXPECT_EQ(harmless("a\x1b[2J\tb\x7f\n"), "a?[2J?b??");
  EXPECT_EQ(harmless("\xc2\x9b[2J"), "?[2J") << "the escape is a single character";
  EXPECT_EQ(harmless("\xc2\xa0\xc3\xa9"), "\xc2\xa0\xc3\xa9");
  EXPECT_EQ(harmless("\xc2"), "\xc2");
}

TEST(InputText, AFileIsReadWhole) {
  const testkit::TemporaryFolder folder;
  const std::string bytes("{\"a\":1}\n\0x", 10);
  std::ofstream(folder / "in", std::ios::binary) << bytes;
  EXPECT_EQ(readSource((folder / "in").string()), bytes);
  std::ofstream(folder / "marked", std::ios::binary) << "\xEF\xBB\xBF" << bytes;
  EXPECT_EQ(readSource((folder / "marked").string()), bytes);
  EXPECT_THAT(failureOf([&] { (void)readSource((folder / "none").string()); }), HasSubstr("cannot be read"));
  EXPECT_THAT(failureOf([&] { (void)readSource(folder.path().string()); }), HasSubstr("cannot be read"));
}

TEST(InputText, AnInputIsASingleObject) {
  EXPECT_EQ(failureOf([] { checkObject(" {\"a\":1} ", "the input", "{}"); }), "");
  EXPECT_THAT(failureOf([] { checkObject("[1]", "the input", "{\"n\": 1}"); }),
              HasSubstr("2 the input is not a JSON object: write it like {\"n\": 1}"));
  EXPECT_THAT(failureOf([] { checkObject("{}, \"more\": 1", "the input", "{}"); }), HasSubstr("is not JSON"));
}

const std::vector<FieldOption>& someFields() {
  static const std::vector<FieldOption> kFields{{"name", "NAME", "", "name", FieldKind::text},
                                                {"workers-max", "N", "", "workersMax", FieldKind::whole},
                                                {"public", "true|false", "", "isPublic", FieldKind::flag},
                                                {"port", "PORT", "", "ports", FieldKind::texts},
                                                {"env", "KEY=VALUE", "", "env", FieldKind::map}};
  return kFields;
}
std::string bodyOf(const std::vector<std::string>& given) {
  return formBody(parseArguments(given, optionsOf(someFields())), someFields());
}

TEST(FormOptions, OptionsBecomeAForm) {
  EXPECT_EQ(bodyOf({"--env", "A=1", "--name", "a \"b\"", "--workers-max", "3", "--public=true", "--port", "80/http",
                    "--port", "22/tcp", "--env", "B=x=y", "--env", "C="}),
            R"({"name":"a \"b\"","workersMax":3,"isPublic":true,"ports":["80/http","22/tcp"],)"
            R"("env":{"A":"1","B":"x=y","C":""}})");
  EXPECT_EQ(bodyOf({"--workers-max", "-1"}), R"({"workersMax":-1})") << "only the server checks the range";
}

TEST(FormOptions, AValueUnfitForTheKindIsRefused) {
  for (const char* wrong : {"", "x", "1.5", "1e3", "03", "-", "0x1", "1 "}) {
    EXPECT_THAT(failureOf([&] { (void)bodyOf({"--workers-max", wrong}); }), HasSubstr("takes a whole number")) << wrong;
  }
  EXPECT_THAT(failureOf([] { (void)bodyOf({"--public", "yes"}); }), HasSubstr("takes true or false, not 'yes'"));
  for (const char* wrong : {"A", "=1", ""}) {
    EXPECT_THAT(failureOf([&] { (void)bodyOf({"--env", wrong}); }), HasSubstr("takes KEY=VALUE")) << wrong;
  }
}

TEST(FormOptions, OptionsCountBeforeTheFieldsOfAFile) {
  const testkit::TemporaryFolder folder;
  const std::string file = (folder / "form").string();
  std::ofstream(file) << "{ \"name\": \"n\" }";
  EXPECT_EQ(bodyOf({"--file", file}), "{ \"name\": \"n\" }");
  EXPECT_EQ(bodyOf({"--file", file, "--name", "m", "--workers-max", "2"}), R"({"name":"m","workersMax":2})");
  std::ofstream(file) << R"({"other":[1, 2],"n\u0061me":"n","x\"y":1.0})";
  EXPECT_EQ(bodyOf({"--file", file, "--name", "m"}), R"({"name":"m","other":[1, 2],"x\"y":1.0})");
  EXPECT_THAT(failureOf([] { (void)bodyOf({}); }), HasSubstr("no field is given: use options like --name NAME"));
}

TEST(FormOptions, AListIsASingleOptionAndMayBeEmpty) {
  const std::vector<FieldOption> fields{{"filters", "NAMES", "", "filters", FieldKind::list}};
  const auto form = [&fields](const std::string& names) {
    return formBody(parseArguments({"--filters", names}, optionsOf(fields)), fields);
  };
  EXPECT_EQ(form("a, b,c"), R"({"filters":["a","b","c"]})");
  EXPECT_EQ(form(""), R"({"filters":[]})");
}

TEST(FormOptions, ATableOfFieldsGivesTheOptions) {
  const std::vector<FieldFacts> fields{
      {.name = "size",
       .type = "integer",
       .unit = "ms",
       .meaning = "The size of the box. Others stay.",
       .option = "size"},
      {.name = "secret", .type = "string", .meaning = "A field without an option."},
      {.name = "label",
       .type = "string",
       .meaning = "The label.",
       .absence = "none",
       .option = "label",
       .placeholder = "L"},
      {.name = "kind",
       .use = FieldUse::creation,
       .type = "string",
       .choices = {"a", "b"},
       .meaning = "X.",
       .option = "kind"},
  };
  const std::vector<OptionRow> options = optionsOf(fieldOptions(fields, true));
  ASSERT_EQ(options.size(), 4U) << "the last one is --file";
  EXPECT_EQ(options[0].name + " " + options[0].value + " " + options[0].help, "label L the label");
  EXPECT_EQ(options[1].name + " " + options[1].value + " " + options[1].help, "size MS the size of the box");
  EXPECT_EQ(options[2].name + " " + options[2].value, "kind a|b");
  EXPECT_EQ(fieldOptions(fields, false).size(), 2U) << "the kind is fixed at the creation";
}

TEST(FormOptions, EachFieldOfATemplateHasAnOption) {
  std::size_t accepted = 0;
  for (const FieldFacts& field : described(jobq::templateFields())) accepted += isAccepted(field.use) ? 1 : 0;
  EXPECT_EQ(templateOptions().size(), accepted);
  EXPECT_EQ(templateOptions().size(), templateChanges().size() + 2) << "category and isServerless are fixed";
}

TEST(Completion, KnowsEachCommandAndEachOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completionOf(shell);
    for (const Command& command : commands()) {
      const std::string name = command.name;
      EXPECT_THAT(script, HasSubstr(name.substr(name.find(' ') + 1))) << shell;
      for (const OptionRow& row : command.options)
        EXPECT_THAT(script, HasSubstr(row.name)) << shell << " " << command.name;
    }
  }
  EXPECT_THAT(failureOf([] { (void)completionOf("tcsh"); }), HasSubstr("bash, zsh or fish"));
}

TEST(Answers, EndWithASingleLineEnd) {
  const auto printed = [](std::string_view answer) {
    std::ostringstream out;
    printAnswer(answer, out);
    return out.str();
  };
  EXPECT_EQ(printed("{}"), "{}\n");
  EXPECT_EQ(printed("{}\n"), "{}\n");
  EXPECT_EQ(printed(""), "");
}

TEST(AnswerReader, ReadsObjectsAndCells) {
  const auto object = readObject(R"({"a":"x","b":5,"c":null,"d":"","list":["p","q"],"none":[]})");
  EXPECT_EQ(cell(*object, "a"), "x");
  EXPECT_EQ(cell(*object, "b"), "5");
  for (const char* key : {"c", "d", "missing"}) EXPECT_EQ(cell(*object, key), "-") << key;
  EXPECT_EQ(listCell(*object, "list", "all"), "p,q");
  EXPECT_EQ(listCell(*object, "none", "all"), "all");
  EXPECT_EQ(listCell(*object, "missing", "all"), "all");
  EXPECT_EQ(objects(readArray(R"([{"a":1},5,"x",{"a":2}])")).size(), 2U);
}

TEST(AnswerReader, AnythingElseIsNoJobqServer) {
  for (const char* text : {"", "<html>", "[1]", "5"}) {
    EXPECT_THAT(failureOf([&] { (void)readObject(text); }), HasSubstr("3 the answer does not come from a jobq server"))
        << text;
  }
  EXPECT_THAT(failureOf([] { (void)readArray("{}"); }), HasSubstr("does not come from a jobq server"));
  std::ostringstream out;
  EXPECT_THAT(failureOf([&] { printMembers("[]", {}, out); }), HasSubstr("does not come from a jobq server"));
}

TEST(AnswerReader, PrintsMembersInOrder) {
  std::ostringstream out;
  printMembers(R"({"z":"one","hidden":1,"a":[1, 2],"n":null,"e":""})", {"hidden"}, out);
  EXPECT_EQ(out.str(), "z  one\na  [1, 2]\nn  -\ne  -\n");
}

TEST(LocalJobTest, ReportsGoToTheStreamAsSeparateLines) {
  testkit::ManualClock clock;
  std::ostringstream out;
  LocalJob job(clock, Millis(5'000), out);
  EXPECT_EQ(job.deadline(), clock.now() + Millis(5'000));
  job.emit("1", "{\"t\":2}");
  job.progress("\"half\"");
  job.log(LogLevel::information, "a\tb\x1b");
  EXPECT_EQ(out.str(), "chunk 1 metrics {\"t\":2}\nprogress \"half\"\nlog a b?\n");
  EXPECT_THROW(job.emit("{", ""), JobFailed);
}

TEST(LocalJobTest, IsStoppedAtTheDeadlineAndNotBefore) {
  testkit::ManualClock clock;
  std::ostringstream out;
  LocalJob job(clock, Millis(5'000), out);
  std::promise<void> stopped;
  const std::stop_callback told(job.stopToken(), [&stopped] { stopped.set_value(); });
  clock.awaitWaiter(Millis(5'000), Millis(5'000));
  clock.advance(Millis(4'999));
  clock.awaitWaiter(Millis(1), Millis(1));
  EXPECT_FALSE(job.stopToken().stop_requested());
  clock.advance(Millis(1));
  EXPECT_EQ(stopped.get_future().wait_for(testkit::kHangDeadline), std::future_status::ready)
      << "the job was not stopped";
}

}  // namespace
}  // namespace jobq::cli
