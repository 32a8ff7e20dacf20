"""The language of comments, names and the API description: how plain the comments and descriptions are, the nouns of
type names, and the presence in the repository of each page cited by a comment and of each file cited by a page."""
import ast
import io
import json
import pathlib
import re
import subprocess
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = ROOT / "core/http/api/openapi.json"
FOLDERS = ("core", "plugins", "sdk", "tests")
NOUNS = ROOT / "tests/arch/type_nouns.txt"
LONGEST_LISTING = 60  # seconds: bounds a hang, and judges no pace
MOST_PRONOUNS = 0.05  # share of the words of all comments of a group
MOST_BARE_STARTS = 0.03  # share of the sentences with four words or more

PRONOUNS = set("""it its itself they them their those these that this one ones what who whom whose which whoever nobody
    somebody everybody anybody nothing something everything none others another he him his she""".split())
BARE_STARTS = set("""what who whoever nobody nothing somebody everybody none of true false not for as those others whose
    whether so""".split())

VAGUE_VERB = re.compile(r"(?:take|look|settle|rest|hand|goOn|tell|attend)(?=[A-Z]|$)")  # verbs without an object
PYTHON_VERBS = set("tell judge look settle rest hand attend take".split())  # the same verbs, as whole names in Python
FIELD_FUNCTIONS = {"lookUp"}  # exceptions: functions of names and addresses
LUA_FUNCTIONS = {"plugins/lua/filter.cpp": {"take"}}  # quota.take() of scripts

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

WRITTEN = {"tests/bench/bench.py": ["DIR/bench.md"], "tests/bench/report.py": ["bench.md"],
           "tests/http/test_documents.py": ["API.md"],
           "tests/arch/test_language.py": ["DIR/bench.md", "bench.md", "API.md"]}

# Strings, and comments as the group `comment`. A digit separator of C++ does not begin a character literal, and "#" within
# a word does not begin a comment.
CPP = re.compile(r"""R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\b\d(?:'?\w)*|'(?:\\.|[^'\\\n])+'
    |/\*.*?\*/|//+[<!]?(?P<comment>[^\n]*)""", re.DOTALL | re.VERBOSE)
HASH = re.compile(r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'|^\#!.*|(?<!\S)\#+(?P<comment>.*)""", re.MULTILINE | re.VERBOSE)
LUA = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|--+(?P<comment>.*)""")
SCRIPTS = ("*.sh", ".ci/*", "*.cmake", "*CMakeLists.txt", "*.lua", "*.properties")

TYPE = re.compile(r"^\s*(?:template <.*>\s+)?(?:class|struct|enum class)\s+(?:JOBQ_\w+(?:\(.*\))?\s+)?([A-Z]\w*)\b(?!\s*;)",
                  re.MULTILINE)
BLOCK = re.compile(r"^ *(```+)([^\n]*)\n.*?^ *\1 *$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`|\]\(([^)\s]+)\)")  # code within a line, the target of a link
FILE = re.compile(r"(?<![\w/.<>*{}$~:-])((?:[\w.-]+/)+[\w.-]+\.(?:md|h|cpp|py|sh|lua|properties))(?![\w/*<{-]|\.\w)")
PAGE = re.compile(r"(?<![\w/.*-])((?:[\w-]+/)*[\w-]+\.md)\b")


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True,
                           timeout=LONGEST_LISTING).stdout
    return [name for name in names.splitlines() if (ROOT / name).is_file()]


def blocks_of(comments):
    """Joins the comments of consecutive whole lines. A comment has a line number, a flag for a line without code, and a
    text."""
    blocks, last = [], None
    for line, alone, text in comments:
        if alone and last == line - 1:
            blocks[-1] += " " + text.strip()
        else:
            blocks.append(text.strip())
        last = line if alone else None
    return blocks


def comments(text, token=CPP):
    """The blocks of comments of a source. `token` matches comments, and strings, because no comment begins inside a
    string."""
    found = []
    for match in token.finditer(text):
        begin = text.rfind("\n", 0, match.start()) + 1
        alone = not text[begin:match.start()].strip()
        comment = match["comment"]
        if comment is not None and (alone or "namespace" not in comment):
            found.append((text.count("\n", 0, begin), alone, comment))
    return blocks_of(found)


def python_comments(text):
    """The docstrings and the blocks of comments of a Python source."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    found = [(token.start[0], token.line.lstrip().startswith("#"), token.string.lstrip("#"))
             for token in tokenize.generate_tokens(io.StringIO(text).readline)
             if token.type == tokenize.COMMENT and not token.string.startswith("#!")]
    return [docstring for docstring in docstrings if docstring] + blocks_of(found)


def script_comments(name, text):
    """The blocks of comments of a Lua, shell or CMake source, or of a properties file."""
    return comments(text, LUA if name.endswith(".lua") else HASH)


def prose(page):
    """The blocks of a Markdown page: paragraphs, items and cells of tables, without code blocks, headings and targets of links."""
    blocks, lines = [], []

    def end_block():
        if lines:
            blocks.append(" ".join(lines))
            lines.clear()

    for line in BLOCK.sub("", page).splitlines():
        line = line.strip()
        item = re.match(r"([-*]|\d+\.) ", line)
        if not line or line.startswith(("#", "|")) or item:
            end_block()
        if line.startswith("|"):
            blocks += [cell.strip() for cell in line.strip("|").split("|") if re.search(r"[A-Za-z]{3}", cell)]
        elif line and not line.startswith("#"):
            lines.append(line[item.end():] if item else line)
    end_block()
    return [re.sub(r"\]\([^)]*\)", "]", block) for block in blocks]


def names_of_tests(text):
    """The names of the tests of a source as sentences."""
    return [" ".join(WORD.findall(name)) + "." for name in re.findall(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", text)] + [
        name.replace("_", " ") + "." for name in re.findall(r"^ *def test_(\w+)\(", text, re.MULTILINE)]


def messages(text):
    """The messages with three words or more that the assertions of a C++ source print."""
    assertions = re.findall(r"(?:EXPECT|ASSERT)_\w+\((?:[^;\"]|\"(?:[^\"\\]|\\.)*\")*;", text)
    found = [message for each in assertions for message in re.findall(r"<<\s*\"((?:[^\"\\]|\\.)*)\"", each)]
    return [message + "." for message in found if len(message.split()) > 2]


def groups():
    """Returns the texts of each group with separate bounds: comments, names of tests and messages of a folder, and a page."""
    found = {}
    for name in tracked(*(f"{folder}/*.{end}" for folder in FOLDERS for end in ("h", "cpp"))):
        text, folder = (ROOT / name).read_text(), pathlib.Path(name).parent
        found.setdefault(f"comments of {folder}", []).extend(comments(text))
        found.setdefault(f"names of tests of {folder}", []).extend(names_of_tests(text))
        found.setdefault(f"messages of {folder}", []).extend(messages(text))
    for name in tracked("*.py"):
        text, folder = (ROOT / name).read_text(), pathlib.Path(name).parent
        found.setdefault(f"Python of {folder}", []).extend(python_comments(text))
        found.setdefault(f"names of tests of {folder}", []).extend(names_of_tests(text))
    for name in tracked(*SCRIPTS):
        found.setdefault("shell, CMake, Lua, properties", []).extend(script_comments(name, (ROOT / name).read_text()))
    for name in tracked("*.md"):
        found[name] = prose((ROOT / name).read_text())
    return {group: blocks for group, blocks in found.items() if blocks}


def descriptions(part):
    """Yields the descriptions and summaries in a part of an OpenAPI description. A property named `description` is not
    a description."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("description", "summary") and isinstance(value, str):
                yield value
            else:
                yield from descriptions(value)
    elif isinstance(part, list):
        for value in part:
            yield from descriptions(value)


def measure(blocks):
    """Returns the share of pronouns among the words, and the share of bare starts among the sentences."""
    words = pronouns = sentences = bare = 0
    for block in blocks:
        block = re.sub(r"`[^`]*`", "X", block)
        found = re.findall(r"[A-Za-z']+", block)
        words += len(found)
        pronouns += sum(word.lower() in PRONOUNS for word in found)
        for sentence in re.split(r"(?<=[.!?;:])\s+", block):
            first = re.findall(r"[A-Za-z']+", sentence)
            if len(first) >= 4:
                sentences += 1
                bare += first[0].lower() in BARE_STARTS
    return pronouns / max(1, words), bare / max(1, sentences)


def puzzles(group, blocks):
    """Returns a sentence if the blocks of a group have more pronouns or bare starts than the bounds allow."""
    assert blocks, f"{group}: no text found"
    pronouns, bare = measure(blocks)
    print(f"{group}: {100 * pronouns:.1f} % pronouns, {100 * bare:.1f} % bare starts")
    if pronouns <= MOST_PRONOUNS and bare <= MOST_BARE_STARTS:
        return []
    return [f"{group}: {100 * pronouns:.1f} % of the words are pronouns (at most {100 * MOST_PRONOUNS:.0f} %), "
            f"{100 * bare:.1f} % of the sentences start with one (at most {100 * MOST_BARE_STARTS:.0f} %): give the "
            "sentences nouns as subjects"]


def cited_files(page):
    """Returns the paths with a folder in the code and the links of a Markdown page. Code blocks, placeholders and files
    written by a block of the page (`file PATH` behind the language) are left out."""
    written = [option.partition(" file ")[2].strip() for _, option in BLOCK.findall(page)]
    found = [path for code, target in QUOTED.findall(BLOCK.sub("", page)) for path in FILE.findall(code or target)]
    return [path for path in found if "..." not in path and path not in written]


def is_file_from(name, path):
    """Returns whether the path leads to a file from the top or from the folder of the file `name`."""
    return (ROOT / path).is_file() or (ROOT / name).parent.joinpath(path).is_file()


def vague_python_names(text):
    """Returns the functions of a Python source whose name says only a vague verb."""
    functions = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return PYTHON_VERBS & functions


def nouns_of_types(text):
    """Returns the last word of the name of each type that a C++ source defines, with the name."""
    return {WORD.findall(name)[-1]: name for name in TYPE.findall(CPP.sub("", text))}


def assert_none(faults):
    assert not faults, "\n".join(faults)


class CommentTest:
    def test_a_plain_comment_passes_and_a_puzzle_does_not(self):
        plain = measure(["Returns false if the queue is empty. The reactor parks the connection."])
        puzzle = measure(["Who reads 503 sends the job again: what is stored is acknowledged, as if its wait had elapsed."])
        assert plain == (0, 0)
        assert puzzle[0] > MOST_PRONOUNS and puzzle[1] > MOST_BARE_STARTS

    def test_the_comments_of_cpp(self):
        text = """// One.
//! Two.
int a = 1'000;  ///< The "third".
const char* b = "// no";  // The fourth.
const char c = '"';  // Five's.
auto d = R"(
// no
)";
}  // namespace jobq
"""
        assert comments(text) == ["One. Two.", 'The "third".', "The fourth.", "Five's."]

    def test_the_comments_of_python(self):
        text = """#!/usr/bin/env python3
'''Page.'''
# One
# and two.
A = "# no"  # Three.
# Four.
class B:
    '''Of B.'''

    async def c(self):
        '''Of c:
        more.'''
        return '''no'''
"""
        assert python_comments(text) == ["Page.", "Of B.", "Of c:\nmore.", "One and two.", "Three.", "Four."]

    def test_the_comments_of_scripts(self):
        shell = "#!/bin/sh\n# One\n# and two.\necho \"# no\" '# no' $# a#b  # Three's.\n\n# Four.\n"
        assert script_comments("run.sh", shell) == ["One and two.", "Three's.", "Four."]
        lua = "-- One\n-- and two.\nlocal a = '--no'  -- Three.\n"
        assert script_comments("a.lua", lua) == ["One and two.", "Three."]

    def test_the_descriptions_of_an_api(self):
        api = {"info": {"summary": "One.", "description": "Two."}, "servers": [{"description": "Three."}],
               "properties": {"description": {"type": "string", "description": "Four."}}}
        assert list(descriptions(api)) == ["One.", "Two.", "Three.", "Four."]

    def test_each_folder_is_plain(self):
        found = groups()
        assert len(found) > 100, "folders and pages are found"
        assert_none([fault for group, blocks in found.items() for fault in puzzles(group, blocks)])

    def test_the_prose_of_a_page(self):
        page = "# Title\n\nOne [link](#a)\ntwo.\n- Three.\n  Four.\n\n| a | Five. |\n|---|---|\n\n```sh\nno\n```\n"
        assert prose(page) == ["One [link] two.", "Three. Four.", "Five."]

    def test_the_names_of_tests(self):
        assert names_of_tests("TEST_F(A, AJobIsRun) {\nTEST(B, HTTPIsSpoken) {\n") == ["A Job Is Run.", "HTTP Is Spoken."]
        assert names_of_tests("class A:\n    def test_a_job(self):\n") == ["a job."]

    def test_the_messages_of_assertions(self):
        text = 'EXPECT_EQ(a(";"), 1) << "one two three";\nASSERT_TRUE(b) << "four";\nout << "no no no";'
        assert messages(text) == ["one two three."]

    def test_the_api_description_is_plain(self):
        assert_none(puzzles(API.name, list(descriptions(json.loads(API.read_text())))))


class GlossaryTest:
    def test_types(self):
        known = set(NOUNS.read_text().partition("\n\n")[2].split())
        used, faults = set(), []
        for name in tracked("core/*.h", "core/*.cpp", "plugins/*.h", "plugins/*.cpp", "sdk/*.h"):
            nouns = nouns_of_types((ROOT / name).read_text())
            used |= nouns.keys()
            faults += [f"{name} defines {nouns[noun]}: {noun} is not in {NOUNS.name}, whose head has the rule"
                       for noun in sorted(nouns.keys() - known)]
        assert_none(faults + [f"{NOUNS.name} has {noun}, and no type has that noun" for noun in sorted(known - used)])

    def test_the_nouns_of_types(self):
        text = "class A;\ntemplate <class No>\nclass JOBQ_VISIBLE JobStore : Base {\n// struct No {\nenum class HTTPState : char {"
        assert nouns_of_types(text) == {"Store": "JobStore", "State": "HTTPState"}

    def test_functions(self):
        faults = []
        for name in tracked(*(f"{folder}/*.{end}" for folder in FOLDERS for end in ("h", "cpp"))):
            used = set(re.findall(r"\b([a-z]\w*)\(", CPP.sub("", (ROOT / name).read_text())))
            old = {each for each in used if VAGUE_VERB.match(each)} - FIELD_FUNCTIONS
            faults += [f"{name} has {each}(): say what the function acts on"
                       for each in sorted(old - LUA_FUNCTIONS.get(name, set()))]
        assert_none(faults)

    def test_vague_verbs_are_found(self):
        names = ("take", "takeOver", "handOut", "lookUp", "handle", "settled", "restart")
        assert [name for name in names if VAGUE_VERB.match(name)] == ["take", "takeOver", "handOut", "lookUp"]

    def test_functions_of_python(self):
        assert_none([f"{name} has {each}(): say what the function acts on"
                     for name in tracked("*.py") for each in sorted(vague_python_names((ROOT / name).read_text()))])

    def test_vague_names_of_python_are_found(self):
        text = """class Pace:
    def tell(self):
        async def look(): take()
    def take_all(self): pass
"""
        assert vague_python_names(text) == {"tell", "look"}


class CitationTest:
    def test_each_cited_page_is_there(self):
        """A page is named by the path from the top, or from the folder of the citing file. WRITTEN has the pages written
        by a program."""
        faults = []
        for name in tracked("core/*", "plugins/*", "sdk/*", "tests/*", "etc/*", "scripts/*", "*.txt", "*.cmake"):
            if pathlib.Path(name).suffix not in (".h", ".cpp", ".py", ".cmake", ".txt", ".sh", ".properties", ".lua"):
                continue
            for page in PAGE.findall((ROOT / name).read_text()):
                if page in WRITTEN.get(name, ()):
                    continue
                if not is_file_from(name, page):
                    faults.append(f"{name} cites {page}, which is not in the repository")
        assert_none(sorted(set(faults)))

    def test_each_file_cited_by_a_page_is_there(self):
        pages = {name: cited_files((ROOT / name).read_text()) for name in tracked("*.md")}
        assert "tests/README.md" in pages["README.md"], "the paths of a page are found"
        assert_none([f"{name} cites {path}, which is not in the repository"
                     for name, paths in pages.items() for path in paths if not is_file_from(name, path)])

    def test_the_files_of_a_page(self):
        page = """Run `tests/run.py --fast` and [read](core/README.md#limits), see `../a/b.h:12`, not `b.h` or c/d.h.
Save this as `tools/x.cpp`; then `plugins/<name>/x.h`, `core/*/y.h`, `a/{b,c}.h`, `a/.../d.h`, `/etc/x/y.sh`,
`$T/x/y.sh`, `a/x.py.in` and `https://x.org/y/z.md`.

```cpp file tools/x.cpp
#include "sdk/none.h"  // `sdk/none.h`
```
The end is `sdk/last.h`.
"""
        assert cited_files(page) == ["tests/run.py", "core/README.md", "../a/b.h", "sdk/last.h"]
