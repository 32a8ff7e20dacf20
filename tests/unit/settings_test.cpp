// Tests of the tables of settings (core/config/server_settings.h, core/config/endpoint_spec.h): each row reads what the
// row prints, and the page for operators has each row once.
#include "core/config/server_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/config/endpoint_spec.h"
#include "core/config/settings_page.h"

namespace jobq {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// Expects that the row has words for operators, and that the printed default is a value of the setting.
template <class Form>
void expectWhole(const Setting<Form>& row, const Form& standard) {
  SCOPED_TRACE(row.name);
  static const std::set<std::string> kTypes{"duration", "size", "integer", "flag", "choice",
                                            "text",     "list", "path",    "paths"};
  EXPECT_EQ(kTypes.count(row.type), 1U) << row.type;
  EXPECT_THAT(row.meaning, EndsWith("."));
  ASSERT_TRUE(row.parse);
  const std::string value = row.print ? row.print(standard) : "";
  EXPECT_TRUE(row.print || !row.defaultText.empty());
  if (value.empty()) return;
  Form read = standard;
  row.parse(read, row.name, value);
  EXPECT_EQ(row.print(read), value);
}

TEST(Settings, EachRowReadsThePrintedValue) {
  for (const SettingSection& section : serverSettings()) {
    for (const auto& row : section.settings) expectWhole(row, Config());
    const LimitSetting limit{1, Millis(2'000), 3, 4};
    for (const auto& row : section.ofOperations) expectWhole(row, limit);
  }
  EndpointSpec endpoint = endpointInFile("ID");
  endpoint.image = "plugin/echo";
  endpoint.filters = {"one", "two"};
  endpoint.maxStuck = 2;
  for (const auto& field : endpointFields()) {
    if (!field.setting.name.empty()) expectWhole(field.setting, endpoint);
  }
}

TEST(Settings, ThePageHasEachRowOnce) {
  const std::string page = settingsPage();
  const auto expectOnce = [&page](const std::string& name) {
    const std::string cell = "\n| `" + name + "` | ";
    EXPECT_THAT(page, HasSubstr(cell));
    EXPECT_EQ(page.find(cell), page.rfind(cell)) << name;
  };
  for (const SettingSection& section : serverSettings()) {
    EXPECT_THAT(page, HasSubstr("### " + section.title + "\n"));
    for (const auto& row : section.settings) expectOnce(row.name);
    for (const auto& row : section.ofOperations) expectOnce("limits.<operation>." + row.name);
  }
  for (const auto& field : endpointFields()) {
    if (!field.setting.name.empty()) expectOnce("endpoint.<id>." + field.setting.name);
  }
  EXPECT_THAT(page, HasSubstr("| `server.port` | integer | `8000` | 0 to 65535 | The port; "));
  EXPECT_THAT(page, HasSubstr("| `webhook.secret` | text | one is made and kept | | The secret "));
}

}  // namespace
}  // namespace jobq
