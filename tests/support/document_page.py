"""The code blocks of a Markdown page: languages, faults, and the comparison of an expected output with the real output.

The rules for authors. Each code block has a fence with a language from the list below; indented code is a fault.

  sh                  bash commands. All sh blocks of a page run in order in a single shell, with URL and KEY of a fresh
                      server; a failed command ends the page. `set -eo pipefail` is in force.
  sh no-run: reason   commands not to be run, because they install packages or build the tree
  console             the standard output of the sh block directly above, as text
  json                the same output as JSON values in any layout; without an sh block directly above any JSON text
  ini                 units of systemd, not to be run
  text                pictures and formulas; no commands
  lua                 a complete handler; `lua filter` is a filter, `lua part` the inside of a handler's function
  properties          settings, valid beside etc/jobq.properties except in a block with `file PATH`; settings in
                      a block `properties server` are also in force for the page's server
  python file PATH    a program of a user, which the next sh block runs; js the same
  cpp                 a whole source, to be compiled against the sdk; parts of a source are `text`
  cpp file PATH       (lua, properties too) is also written to PATH before the next sh block runs; the page's text tells
                      the reader: "Save this as PATH"

Ids, times, keys and durations are compared by form (VOLATILE). In an expected JSON object the member "..." stands for
any further members.
"""

import json
import re

LANGUAGES = ("sh", "console", "json", "text", "lua", "properties", "cpp", "ini", "python", "js")
FILE = r"file (?!/|.*\.\.)\S+"
OPTIONS = {"sh": r"(no-run: \S.*)?", "lua": f"(filter|part|{FILE})?", "properties": f"(server|{FILE})?",
           "cpp": f"({FILE})?", "python": FILE, "js": FILE}
FENCE = re.compile(r"^( *)(`{3,}|~{3,})([^`]*)$")
INDENTED = re.compile(r"^( {4,}|\t)(?![-*+] |\d+[.)] )\S")
COMMAND = re.compile(r"^\s*(\$ |[A-Z_]+=\$?\S|(curl|jobqctl|jobqd|cmake|ctest|pytest|make|export|sudo|pip|npm|git|"
                     r"openssl|kill|apt-get|python3?|docker|\S+/(jobqd|jobqctl)|\S+\.sh)(\s|$))")

# Texts different in each run, and the replacements for the comparison, applied in order.
VOLATILE = [
    (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:8000"),
    (r"\b(sync-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-u1\b", r"\1<job>"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>"),
    (r"\b\d{13}-(\d+)\b", r"<milliseconds>-\1"),  # `next` of a log
    (r"\bjobq_[0-9a-f]{64}\b", "<key>"),
    (r"\bwhsec_[A-Za-z0-9+/]{43}=", "<webhook secret>"),
    (r"\bv1,[A-Za-z0-9+/]{43}=", "<signature>"),
    (r'("webhook-timestamp": ?)"\d{10}"', r'\1"<seconds>"'),
    (r"\brequest [0-9a-f]{16}\b", "request <id>"),
    (r'("workerId": ?|"id": ?)"[a-z0-9]{14}-\d+"', r'\1"<worker>"'),
    (r'("(?:id|templateId|endpointId)": ?)"[a-z0-9]{10}(?:[a-z0-9]{2}){0,2}"', r'\1"<id>"'),
    (r"\b((?:template|templateId|endpoint) )[a-z0-9]{10}(?:[a-z0-9]{4})?\b", r"\1<id>"),
    (r'("(?:delayTime|executionTime|durationMs|runtimeInMin)": ?)\d+', r"\g<1>0"),
    (r"(?mi)^(Date|Content-Length|RateLimit-Remaining|RateLimit-Reset): .*$", r"\1: <volatile>"),
]
MORE = "..."  # means any further members in an expected JSON object


class Block:
    """A fenced code block. `answers` is the sh block above a block of expected output, otherwise `None`."""

    def __init__(self, line, info, indent):
        self.line = line
        self.language, _, self.option = info.partition(" ")
        self.option = self.option.strip()
        self.indent = indent
        self.lines = []
        self.answers = None

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    @property
    def file(self):
        """Where the reader saves the block, relative to the tree; empty if nowhere."""
        return self.option.partition("file ")[2].strip()

    @property
    def reason_not_to_run(self):
        return self.option.partition("no-run:")[2].strip()


class Page:
    """The blocks of a page's text, in order, and the lines taken by Markdown for code without a fence."""

    def __init__(self, text):
        self.blocks = []
        self.indented = []
        self.open = None
        self.read(text.splitlines())

    def read(self, lines):
        previous, sh = "", None  # `sh`: the sh block above, while only blank lines follow
        for number, line in enumerate(lines, 1):
            if self.open:
                if re.fullmatch(rf" *{self.fence}+ *", line):
                    sh, self.open = self.open if self.open.language == "sh" else None, None
                else:
                    self.open.lines.append(line[min(self.open.indent, len(line) - len(line.lstrip())):])
            elif fence := FENCE.match(line):
                self.open = Block(number, fence[3].strip(), len(fence[1]))
                self.fence = re.escape(fence[2])
                self.open.answers = sh if self.open.language in ("console", "json") else None
                self.blocks.append(self.open)
            elif line.strip():
                if INDENTED.match(line) and not previous.strip():
                    self.indented.append(number)
                sh = None
            previous = line

    def faults(self):
        faults = [f"line {number}: a code block that is only indented: put a fence with a language around it"
                  for number in self.indented]
        for block in self.blocks:
            faults += [f"line {block.line}: {fault}" for fault in faults_of(block)]
        if self.open:
            faults.append(f"line {self.open.line}: the fence is not closed")
        return faults


def faults_of(block):
    if block.language not in LANGUAGES:
        return [f"a fence of language {block.language or 'nothing'}: use one of {', '.join(LANGUAGES)}"]
    if not re.fullmatch(OPTIONS.get(block.language, ""), block.option):
        return [f"a fence of {block.language} with the words {block.option!r}"]
    if block.language == "console" and not block.answers:
        return ["a console block shows an output, so it stands directly behind the sh block that makes it"]
    if block.language == "text":
        return [f"a text block is not run, so it holds no command: {line}" for line in block.lines
                if COMMAND.match(line)]
    if block.language == "json":
        try:
            values(block.text)
        except ValueError as error:
            return [f"a json block that is not JSON: {error}"]
    return []


def values(text):
    """The JSON values of a text, in order."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def settled(text):
    """The text with a fixed word for each VOLATILE part, and without blanks at the ends of lines."""
    for pattern, stead in VOLATILE:
        text = re.sub(pattern, stead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def differs(block, output):
    """Returns the difference between the expected output in `block` and the real output; `None` if both are equal."""
    expected, real = settled(block.text), settled(output)
    if block.language == "console":
        return None if expected == real else f"expected:\n{expected}\nreal:\n{real}"
    try:
        same = fits(values(expected), values(real))
    except ValueError:
        same = False
    return None if same else f"expected:\n{expected}\nreal:\n{real}"


def fits(expected, real):
    """Returns whether `real` equals `expected`; an object with the member "..." may have further members."""
    if isinstance(expected, dict) and isinstance(real, dict):
        named = set(expected) - {MORE}
        if MORE not in expected and named != set(real):
            return False
        return all(name in real and fits(expected[name], real[name]) for name in named)
    if isinstance(expected, list) and isinstance(real, list):
        return len(expected) == len(real) and all(map(fits, expected, real))
    return type(expected) is type(real) and expected == real
