const kMethods = ["get", "post", "put", "patch", "delete"];
const kWide = "(min-width: 60rem)";  // as in the style: the contents are beside the calls

function byId(id) {
  return document.getElementById(id);
}

// Returns the id of a place on the page, the same after each load.
function placeId(kind, name) {
  return kind + "-" + name.replace(/\W+/g, "-");
}

// Returns the calls of a description in its order, each with all that the page shows.
function callsOf(api, find) {
  return Object.entries(api.paths).flatMap(([path, item]) => kMethods.filter(method => item[method]).map(method => {
    const operation = item[method];
    const {summary = "", description = "", tags = ["Other"]} = operation;
    return {
      path, method, operation, summary, description, tag: tags[0],
      id: placeId("call", operation.operationId || method + path),
      parameters: [...(item.parameters || []), ...(operation.parameters || [])].map(find),
      needsKey: (operation.security || api.security || []).length > 0,
      scopes: [...new Set((operation.security || []).flatMap(each => Object.values(each).flat()))],
      words: [method, path, summary, description].join(" ").toLowerCase(),
    };
  }));
}

function curlOf(call, server, find) {
  const body = find(call.operation.requestBody || {}).content;
  const success = find((call.operation.responses || {})["200"] || {}).content;
  return curlLine({...call, server,
    body: body && exampleOf((body["application/json"] || {}).schema || {}, find),
    isFile: Boolean(success && success["application/octet-stream"])});
}

function makeCall(call, server, find) {
  const {operation} = call;
  const box = make("details", "box", make("summary", "",
    make("h3", "", make("span", "method " + call.method, call.method.toUpperCase()), " ", make("code", "", call.path)),
    make("span", "", ...markedLine(call.summary))));
  box.id = call.id;
  if (call.scopes.length) box.append(make("p", "type", "Scope of the key: " + call.scopes.join(" or ")));
  box.append(...markedText(call.description), make("h4", "", "Example"), make("pre", "curl", curlOf(call, server, find)));
  if (call.parameters.length) {
    const list = make("dl", "");
    for (const {name, in: place, required: isRequired, description, schema = {}} of call.parameters) {
      addTerm(list, name, schema, {place, isRequired, description});
    }
    box.append(make("h4", "", "Parameters"), list);
  }
  if (operation.requestBody) {
    box.append(make("h4", "", "Body"));
    for (const [type, {schema = {}}] of Object.entries(find(operation.requestBody).content)) {
      const {description = "", ...shown} = find(schema);
      box.append(make("p", "type", type + ": ", ...typeLine(schema)), ...markedText(description), ...memberLists(shown));
    }
  }
  const answers = make("dl", "");
  for (const [status, reference] of Object.entries(operation.responses || {})) {
    const {description = "", content = {}} = find(reference);
    const schemas = Object.values(content).map(({schema = {}}) => schema);
    const types = Object.keys(content).map((type, index) => [type + ": ", ...typeLine(schemas[index])]);
    answers.append(make("dt", "", make("code", "", status), " ", make("span", "type", ...joined(types, "; "))),
      make("dd", "", ...markedText(description), ...schemas.flatMap(memberLists)));
  }
  box.append(make("h4", "", "Answers"), answers);
  return box;
}

function makeObject(name, schema) {
  const box = make("details", "box", make("summary", "", make("h3", "", name)),
    make("p", "type", ...typeLine(schema)), ...markedText(schema.description || ""), ...memberLists(schema));
  box.id = placeId("object", name);
  return box;
}

// Adds a group with a title to the page and to the contents. `members` are pairs of a box and its title in the contents.
// Returns the parts, for the search.
function addGroup(title, description, members) {
  const group = make("section", "", make("h2", "", title), ...markedText(description), ...members.map(([box]) => box));
  group.id = placeId("group", title);
  const items = members.map(([box, ...words]) => make("li", "", makeLink("#" + box.id, ...words)));
  const entry = make("ul", "", make("li", "", makeLink("#" + group.id, title), make("ul", "", ...items)));
  byId("groups").append(group);
  byId("contents").append(entry);
  return {group, entry, rows: members.map(([box], index) => ({box, item: items[index]}))};
}

// Shows the place that the address of the page names, also inside a closed box and after a search.
function showPlace(hash) {
  const place = hash.length > 1 && byId(hash.slice(1));
  if (!place) return;
  if (place.hidden) {
    byId("search").value = "";
    byId("search").dispatchEvent(new Event("input"));
  }
  if (place.tagName === "DETAILS") place.open = true;
  place.scrollIntoView();
}

// Shows the calls with every word of the search in method, path, summary or description.
function filter(groups, calls) {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(word => word);
  let count = 0;
  for (const {group, entry, rows} of groups) {
    for (const {box, item} of rows) {
      const call = calls.get(box.id);
      const isFound = call ? words.every(word => call.words.includes(word)) : !words.length;
      box.hidden = item.hidden = !isFound;
      if (call && isFound) count += 1;
    }
    group.hidden = entry.hidden = rows.every(({box}) => box.hidden);
  }
  byId("count").textContent = count + " of " + calls.size + " calls";
}

function render(api) {
  const find = value => value.$ref
    ? find(value.$ref.slice(2).split("/").reduce((node, name) => node[name], api)) : value;
  const base = new URL((api.servers || [{url: "."}])[0].url, location.href);
  const server = base.href.replace(/\/$/, "");
  const calls = callsOf(api, find);
  const tags = new Map((api.tags || []).map(tag => [tag.name, tag.description || ""]));
  for (const {tag} of calls) if (!tags.has(tag)) tags.set(tag, "");
  const schemas = Object.entries((api.components || {}).schemas || {});

  byId("about").replaceChildren(
    make("p", "type", "Version " + api.info.version + ", described by ", makeLink("openapi.json", "openapi.json"), "."),
    ...markedText(api.info.description || ""),
    ...markedText("**Examples.** The lines for `curl` have the address of this page. `$JOBQ_KEY` is an API key; other "
      + "variables in capitals, such as `$ID`, are yours to set."));
  const groups = [...tags].map(([tag, description]) => addGroup(tag, description,
    calls.filter(call => call.tag === tag).map(call => [makeCall(call, server, find),
      make("span", "method " + call.method, call.method.toUpperCase()), " " + call.path])));
  groups.push(addGroup("Objects", "", schemas.map(([name, schema]) => [makeObject(name, schema), name])));

  const callsById = new Map(calls.map(call => [call.id, call]));
  byId("search").addEventListener("input", () => filter(groups, callsById));
  filter(groups, callsById);
  byId("contents").open = matchMedia(kWide).matches;
  // A click on the link to the current place changes no address, so clicks are watched too.
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#']");
    if (link) showPlace(link.hash);
  });
  addEventListener("hashchange", () => showPlace(location.hash));
  showPlace(location.hash);
}

fetch("openapi.json").then(answer => answer.json()).then(render).catch(error => {
  byId("about").textContent = "openapi.json cannot be shown: " + error;
});
