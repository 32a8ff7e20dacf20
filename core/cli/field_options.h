// Options for the fields of a form: `--workers-max 3` is {"workersMax":3}. The tables of the fields say which field has
// an option (core/config/field_facts.h). The server judges the values, so that the user reads the server's sentence.
#pragma once

#include <string>
#include <vector>

#include "core/client/arguments.h"
#include "core/config/field_facts.h"

namespace jobq::cli {

/// `list` is an option with texts separated by commas and may be empty; the option of `texts` may be repeated.
enum class FieldKind { text, whole, flag, list, texts, map };

struct FieldOption {
  std::string option;
  std::string value;  ///< placeholder of the value in the help
  std::string help;
  std::string field;
  FieldKind kind = FieldKind::text;
};

/// Returns the options of the fields of a table, first the ones that a creation needs. Without `creating`, fields that
/// are fixed at the creation have none.
std::vector<FieldOption> fieldOptions(const std::vector<FieldFacts>& fields, bool creating);

/// Returns the rows as options of a command, and the option `--file` for the whole form.
std::vector<OptionRow> optionsOf(const std::vector<FieldOption>& fields);

/// Returns the form as a JSON object: the fields of `--file`, replaced by the fields given as options. Throws
/// CommandError(usage) if neither is given, or if a value cannot be of its field's kind.
std::string formBody(const Arguments& arguments, const std::vector<FieldOption>& fields);

/// Returns the options for the creation of a template.
const std::vector<FieldOption>& templateOptions();
/// Returns the options for the change of a template.
const std::vector<FieldOption>& templateChanges();
/// Returns the options for the creation and the change of an endpoint.
const std::vector<FieldOption>& endpointOptions();
const std::vector<FieldOption>& endpointChanges();

}  // namespace jobq::cli
