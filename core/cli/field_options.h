// Options that are fields of a form: `--workers-max 3` is {"workersMax":3}. One row a field; what a value may be is the
// server's to judge, and its sentence is the one to show.
#pragma once

#include <string>
#include <vector>

#include "core/cli/arguments.h"

namespace jobq::ctl {

/// `list` is one option with its texts separated by commas, and may be empty; `texts` repeats the option.
enum class FieldKind { text, whole, flag, list, texts, map };

struct FieldOption {
  const char* option;
  const char* value;  ///< what stands for its value in the help
  const char* help;
  const char* field;
  FieldKind kind = FieldKind::text;
};

/// The rows as options of a verb, and `--file`, which brings the whole form.
std::vector<OptionRow> optionsOf(const std::vector<FieldOption>& fields);

/// The form as a JSON object: what `--file` names, with the fields that were given in place of the file's. Throws
/// Failure(usage) when there is neither, or when a value cannot be of its field's kind.
std::string formBody(const Arguments& arguments, const std::vector<FieldOption>& fields);

/// What can be said of a template at its creation, and what can be changed later; the same of an endpoint.
const std::vector<FieldOption>& templateFields();
const std::vector<FieldOption>& templateChanges();
const std::vector<FieldOption>& endpointFields();

}  // namespace jobq::ctl
