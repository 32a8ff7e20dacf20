// Options for the fields of a form: `--workers-max 3` is {"workersMax":3}. Each field has one row. The server judges
// the values, so that the user reads the server's sentence.
#pragma once

#include <string>
#include <vector>

#include "core/client/arguments.h"

namespace jobq::cli {

/// `list` is an option with texts separated by commas and may be empty; the option of `texts` may be repeated.
enum class FieldKind { text, whole, flag, list, texts, map };

struct FieldOption {
  const char* option;
  const char* value;  ///< placeholder of the value in the help
  const char* help;
  const char* field;
  FieldKind kind = FieldKind::text;
};

/// Returns the rows as options of a command, and the option `--file` for the whole form.
std::vector<OptionRow> optionsOf(const std::vector<FieldOption>& fields);

/// Returns the form as a JSON object: the fields of `--file`, replaced by the fields given as options. Throws
/// CommandError(usage) if neither is given, or if a value cannot be of its field's kind.
std::string formBody(const Arguments& arguments, const std::vector<FieldOption>& fields);

/// Returns the fields for the creation of a template.
const std::vector<FieldOption>& templateFields();
/// Returns the fields of a template that can be changed later.
const std::vector<FieldOption>& templateChanges();
/// Returns the fields for the creation and the change of an endpoint.
const std::vector<FieldOption>& endpointFields();

}  // namespace jobq::cli
