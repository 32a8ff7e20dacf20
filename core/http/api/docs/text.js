"use strict";

// Returns an element with children: elements, and strings as text. No string is ever read as HTML.
function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

function makeLink(address, ...children) {
  const link = make("a", "", ...children);
  link.setAttribute("href", address);
  return link;
}

// `code`, **bold** (with code inside) and [text](address) of Markdown.
const kMarks = /`([^`]+)`|\*\*((?:`[^`]+`|[^`])+?)\*\*|\[([^\]]+)\]\(([^\s()]+)\)/g;

// Returns whether a link may lead to the address: over HTTP, or to a place on the page. `javascript:` is refused.
function isPlace(address) {
  try {
    return /^https?:$/.test(new URL(address, location.href).protocol);
  } catch {
    return false;
  }
}

// Returns the strings and elements of a line of text.
function markedLine(text) {
  const parts = [];
  let end = 0;
  for (const [all, code, bold, label, address] of text.matchAll(kMarks)) {
    const begin = text.indexOf(all, end);
    parts.push(text.slice(end, begin));
    end = begin + all.length;
    if (code) parts.push(make("code", "", code));
    else if (bold) parts.push(make("strong", "", ...markedLine(bold)));
    else if (isPlace(address)) parts.push(makeLink(address, ...markedLine(label)));
    else parts.push(all);
  }
  return [...parts, text.slice(end)].filter(part => part !== "");
}

// Returns the paragraphs and lists of a text. A line without a mark continues the paragraph or item above.
function markedText(text) {
  const blocks = [];
  let open = null;
  for (const line of text.split("\n")) {
    const [, mark, item] = /^ *(-|\d+\.) +(.+)/.exec(line) || [];
    const tag = !mark ? "p" : mark === "-" ? "ul" : "ol";
    if (!line.trim()) {
      open = null;
    } else if (open && (!mark || open.tag === tag)) {
      if (mark) open.lines.push(item);
      else open.lines.push(open.lines.pop() + " " + line.trim());
    } else {
      open = {tag, lines: [item || line.trim()]};
      blocks.push(open);
    }
  }
  return blocks.map(({tag, lines}) => tag === "p" ? make("p", "", ...markedLine(lines[0]))
    : make(tag, "", ...lines.map(line => make("li", "", ...markedLine(line)))));
}
