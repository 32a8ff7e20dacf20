const kObjects = "#/components/schemas/";
// Members of a schema with a form of their own on the page, and conditions, which the descriptions say in words.
const kShown = ["$ref", "type", "description", "properties", "required", "items", "additionalProperties", "examples",
  "oneOf", "anyOf", "allOf", "if", "then", "else"];
const kChoices = {oneOf: "one of", anyOf: "any of", allOf: "all of"};

// Joins the lists of parts with a separator between two lists.
function joined(lists, separator) {
  return lists.flatMap((list, index) => index ? [separator, ...list] : list);
}

function valueCode(value) {
  return make("code", "", typeof value === "string" && value ? value : JSON.stringify(value));
}

// Returns the parts of a line with the type and the bounds of a schema; named objects are links.
function typeLine(schema) {
  if (typeof schema !== "object") return ["any value"];
  const facts = [];
  if (schema.$ref) {
    const name = schema.$ref.slice(kObjects.length);
    facts.push([makeLink("#object-" + name, name)]);
  }
  const types = [schema.type || []].flat();
  if (types.length) facts.push([types.join(" or "), ...(schema.items ? [" of ", ...typeLine(schema.items)] : [])]);
  for (const [name, value] of Object.entries(schema)) {
    if (!kShown.includes(name)) facts.push([name + " ", ...joined([value].flat().map(each => [valueCode(each)]), ", ")]);
  }
  for (const [name, words] of Object.entries(kChoices)) {
    const choices = (schema[name] || []).map(typeLine).filter(line => line.length);
    if (choices.length) facts.push([...(choices.length > 1 ? [words + " "] : []), ...joined(choices, ", ")]);
  }
  return joined(facts, ", ");
}

// Adds a named value to a list of terms: its type, its description, and its members.
function addTerm(list, name, schema, {description, isRequired, place} = {}) {
  const term = make("dt", "", make("code", "", name), " ", make("span", "type", ...joined(
    [place ? [place] : [], isRequired ? ["required"] : [], typeLine(schema)].filter(part => part.length), ", ")));
  const text = description || schema.description || "";
  list.append(term, make("dd", "", ...markedText(text), ...memberLists(schema)));
}

// Returns the lists with the members of a schema, of its elements and of its alternatives.
function memberLists(schema) {
  if (typeof schema !== "object") return [];
  const lists = [];
  if (schema.properties) {
    const list = make("dl", "");
    for (const [name, member] of Object.entries(schema.properties)) {
      addTerm(list, name, member, {isRequired: (schema.required || []).includes(name)});
    }
    lists.push(list);
  }
  const parts = [schema.items, schema.additionalProperties, ...Object.keys(kChoices).flatMap(name => schema[name] || [])];
  return [...lists, ...parts.filter(part => part).flatMap(memberLists)];
}
