#include "core/http/api/fields_page.h"

#include <vector>

#include "core/auth/key_fields.h"
#include "core/config/endpoint_spec.h"
#include "core/config/policy_fields.h"
#include "core/config/settings_page.h"
#include "core/config/template.h"

namespace jobq {
namespace {

// Returns the number with commas between thousands.
std::string number(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    const bool beginsThousand = (digits.size() - at) % 3 == 0 && at > (value < 0 ? 1U : 0U);
    if (beginsThousand) text += ',';
    text += digits[at];
  }
  return text;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string typeOf(const FieldFacts& field) {
  std::string type = field.type.empty() ? "string" : field.type;
  if (type == "array") type = "array of strings";
  if (!field.unit.empty()) type += field.unit == "ms" ? ", ms" : ", **seconds**";
  return field.isNullable && field.defaultText.empty() ? type + ", null" : type;
}

std::string defaultOf(const FieldFacts& field) {
  if (!isAccepted(field.use)) return "answers only";
  if (!field.absence.empty()) return "required";
  return field.defaultText.empty() ? code(field.defaultValue) : field.defaultText;
}

std::string boundsOf(const FieldFacts& field) {
  if (!isAccepted(field.use)) return "";
  std::string choices;
  for (const std::string& choice : field.choices) choices += (choices.empty() ? "" : ", ") + code(choice);
  if (!field.range) return choices.empty() ? "" : choices + " ";
  return number(field.range->min) + " to " + number(field.range->max) + (field.type == "string" ? " bytes " : " ");
}

std::string rows(const std::vector<FieldFacts>& fields, const std::string& before) {
  std::string text;
  for (const FieldFacts& field : fields) {
    if (!isAccepted(field.use) && !isAnswered(field.use)) continue;
    text += "| " + code(before + field.name) + " | " + typeOf(field) + " | " + defaultOf(field) + " | " +
            boundsOf(field) + "| " + field.meaning + " |\n" + rows(field.members, field.name + ".");
  }
  return text;
}

std::string comment(const std::string& name) { return "<!-- " + name + ": printed by jobqd --fields -->\n"; }

std::string table(const std::string& name, const std::vector<FieldFacts>& fields) {
  return comment(name) +
         "| field | type | default | bounds | meaning |\n"
         "|---|---|---|---|---|\n" +
         rows(fields, "");
}

}  // namespace

std::string fieldsPage() {
  return table("Key", described(keyFields())) + "\n" + table("Policy", described(policyFields())) + "\n" +
         comment("Operations") + operationsTable() + "\n" + table("RateLimit", described(limitFields())) + "\n" +
         table("Template", described(templateFields())) + "\n" + table("Endpoint", described(endpointFields()));
}

}  // namespace jobq
