const kDeepest = 8;  // levels of an example, since a schema may contain itself

// Returns a value of the schema: the first example, a fixed value, or an object with the required members alone.
// `find` returns the target of a reference.
function exampleOf(schema, find, level = 0) {
  const {examples, const: fixed, default: usual, enum: values, type, items, required, properties, oneOf, anyOf, allOf,
    ...bounds} = find(schema);
  const known = [...(examples || []), fixed, usual, ...(values || [])].find(value => value !== undefined);
  if (known !== undefined || level > kDeepest) return known;
  const below = each => exampleOf(each, find, level + 1);
  const choice = (oneOf || anyOf || [])[0];
  if (choice && !type) return below(choice);
  if (allOf && !type) return Object.assign({}, ...allOf.map(below));
  switch ([type].flat()[0]) {
    case "array": return bounds.minItems && items ? [below(items)] : [];
    case "string": return "text";
    case "boolean": return false;
    case "null": return null;
    case "integer":
    case "number": return bounds.minimum || 0;
    default: return Object.fromEntries((required || []).map(name => [name, below((properties || {})[name] || {})]));
  }
}

// Returns a word of a POSIX shell that stands for exactly this text.
function quoted(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

// Returns the path of a call with the examples of its parameters. A parameter without an example is a variable of the
// shell: `{id}` becomes `$ID`.
function examplePath(path, parameters) {
  return path.replace(/\{(\w+)\}/g, (_, name) => {
    const parameter = parameters.find(each => each.in === "path" && each.name === name);
    const example = parameter && parameter.example;
    return example === undefined ? "$" + name.toUpperCase() : encodeURIComponent(example);
  });
}

// Returns the call as a line for a shell. `server` is the address without a final slash, `body` a JSON value or absent.
function curlLine({server, method, path, parameters, body, needsKey, isFile}) {
  const words = ["curl"];
  if (method !== "get") words.push("-X " + method.toUpperCase());
  words.push('"' + server.replace(/[$`"\\]/g, "\\$&") + examplePath(path, parameters) + '"');
  if (needsKey) words.push('-H "Authorization: Bearer $JOBQ_KEY"');
  if (body !== undefined) words.push("-d " + quoted(JSON.stringify(body)));
  if (isFile) words.push("-o answer");
  return words.join(" ");
}
