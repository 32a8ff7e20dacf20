#include "core/http/api/docs_page.h"

namespace jobq {

// The page inserts texts of the description as text, never as HTML.
std::string_view docsPage() noexcept {
  return R"page(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>jobq API</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  details { border: 1px solid #8886; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem; }
  summary { cursor: pointer; }
  code, pre { font: 14px/1.4 ui-monospace, monospace; }
  pre { white-space: pre-wrap; background: #8882; border-radius: 6px; padding: .6rem; }
  .text { white-space: pre-wrap; }
</style>
</head>
<body>
<h1>jobq API</h1>
<p class="text" id="about">Loading openapi.json ...</p>
<div id="operations"></div>
<script>
  "use strict";
  const METHODS = ["get", "post", "put", "patch", "delete"];

  function add(parent, tag, text, kind) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    parent.appendChild(element);
    return element;
  }

  function render(api) {
    // Replaces each $ref by what it names; one that is inside itself stays as it is.
    function resolved(value, seen) {
      if (Array.isArray(value)) return value.map(each => resolved(each, seen));
      if (value === null || typeof value !== "object") return value;
      if (typeof value.$ref === "string") {
        if (seen.includes(value.$ref)) return value;
        const target = value.$ref.slice(2).split("/").reduce((at, name) => at[name], api);
        return resolved(target, [...seen, value.$ref]);
      }
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolved(each, seen)]));
    }

    function addContent(parent, content) {
      for (const [type, media] of Object.entries(content || {})) {
        add(parent, "p", type);
        if (media.schema) add(parent, "pre", JSON.stringify(media.schema, null, 2));
      }
    }

    function addOperation(parent, path, method, operation) {
      const box = add(parent, "details");
      const line = add(box, "summary");
      add(line, "code", method.toUpperCase() + " " + path);
      add(line, "span", " " + (operation.summary || ""));
      if (operation.description) add(box, "p", operation.description, "text");
      for (const parameter of operation.parameters || []) {
        const row = add(box, "p");
        add(row, "code", parameter.name);
        add(row, "span", " (" + parameter.in + (parameter.required ? ", required" : "") + ") " +
          (parameter.description || ""));
        if (parameter.schema) add(box, "pre", JSON.stringify(parameter.schema));
      }
      if (operation.requestBody) {
        add(box, "h4", "Body");
        addContent(box, operation.requestBody.content);
      }
      for (const [status, response] of Object.entries(operation.responses || {})) {
        add(box, "h4", status + " " + (response.description || ""));
        addContent(box, response.content);
      }
    }

    document.getElementById("about").textContent = api.info.description || "";
    const operations = document.getElementById("operations");
    const groups = new Map((api.tags || []).map(tag => [tag.name, []]));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const method of METHODS.filter(each => item[each])) {
        const operation = resolved(item[method], []);
        operation.parameters = [...resolved(item.parameters || [], []), ...(operation.parameters || [])];
        const tag = (operation.tags || ["Other"])[0];
        groups.set(tag, [...(groups.get(tag) || []), [path, method, operation]]);
      }
    }
    for (const [tag, members] of groups) {
      add(operations, "h2", tag);
      for (const member of members) addOperation(operations, ...member);
    }
  }

  fetch("openapi.json").then(answer => answer.json()).then(render).catch(error => {
    document.getElementById("about").textContent = "openapi.json cannot be shown: " + error;
  });
</script>
</body>
</html>
)page";
}

}  // namespace jobq
