"""The pages of the tree are true: each code block of each Markdown page is run, compared or compiled.

support/document_page.py has the rules and reads the pages. Each page has a fresh server, with etc/jobq.properties and
the page's own `properties server` blocks, and one shell, whose folder looks like the tree but is a copy where a page
may write.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import jobq_server
import npm_packages
import runpod_process
from document_page import Page, differs
from http_case import HttpTest

ROOT = pathlib.Path(jobq_server.ROOT)
BUILD = pathlib.Path(jobq_server.BUILD)
NOT_PAGES = {"build", "node_modules"}  # folders, besides those with a dot in front
# Pages whose blocks are not fenced yet. A page leaves the list when it is converted; no page joins it.
NOT_CONVERTED = []
SHELL_DEADLINE = 480  # seconds for all sh blocks of a page: bounds a hang, and judges no pace
TOOL_DEADLINE = 60
PROCESSORS = 2  # time for builds of a page: tests/cmake/python_tests.cmake
PROGRAMS = ("python", "js")  # of users of public packages
LUA_PART = "return function(input, job)\n%s\nend\n"


def all_pages():
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_PAGES and not name.startswith(".")]
        found += [(pathlib.Path(folder) / file).relative_to(ROOT).as_posix() for file in files if file.endswith(".md")]
    return sorted(found)


CONVERTED = [name for name in all_pages() if name not in NOT_CONVERTED]


def read(name):
    return Page((ROOT / name).read_text(encoding="utf-8"))


class FormTest:
    @pytest.mark.parametrize("name", CONVERTED)
    def test_each_block_is_declared(self, name):
        faults = read(name).faults()
        assert not faults, "\n".join(f"{name}, {fault}" for fault in faults)

    @pytest.mark.parametrize("name", NOT_CONVERTED)
    def test_the_list_of_pages_to_convert_shrinks(self, name):
        assert (ROOT / name).is_file(), f"{name} is gone: take it out of NOT_CONVERTED"
        assert read(name).faults(), f"{name} is converted: take it out of NOT_CONVERTED"


class TreeCopy:
    """A folder that looks like the tree: etc and scripts are copies, build is the tested one, the rest are links."""

    def __init__(self, folder):
        self.folder = folder
        for entry in ROOT.iterdir():
            if entry.name.startswith(".") or entry.name == "build":
                continue
            if entry.name in ("etc", "scripts"):
                shutil.copytree(entry, folder / entry.name, ignore=shutil.ignore_patterns("*-data"))
            else:
                (folder / entry.name).symlink_to(entry)
        build = folder / "build"
        build.mkdir()
        for name in ("bin", "plugins"):
            (build / name).symlink_to(BUILD / name)

    def add_packages(self):
        """Puts the packages there that a page with programs of Python and JavaScript installs. Returns the variables for
        them: `python3` finds the package runpod in its own environment, and the others in that of the tests."""
        (self.folder / "node_modules").symlink_to(npm_packages.installed() / "node_modules")
        environments = [runpod_process.PYTHON.parents[1], pathlib.Path(sys.prefix)]
        paths = [str(path) for environment in environments for path in environment.glob("lib/python*/site-packages")]
        return {"PYTHONPATH": os.pathsep.join(paths), "HOME": str(self.folder)}

    def settings(self, blocks):
        """Returns the settings of etc/jobq.properties and of the blocks; later settings win."""
        texts = [(self.folder / "etc/jobq.properties").read_text(encoding="utf-8"), *(block.text for block in blocks)]
        lines = [line.strip() for text in texts for line in text.splitlines()]
        pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
        return {key.strip(): value.strip() for key, _, value in pairs}

    def write(self, name, settings):
        path = self.folder / "etc" / name
        path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), encoding="utf-8")
        return path


@pytest.fixture
def tree(tmp_path):
    return TreeCopy(tmp_path)


def start_server(tree, blocks):
    """A server as scripts/run.sh starts it, on a free port."""
    server = jobq_server.Server(start=False)
    try:
        server.settings = {**tree.settings(blocks), "server.port": "0"}
        server.file = str(tree.write("jobq.properties", server.settings))
        server.data = str(tree.folder / "etc" / server.settings["data.dir"])
        return server.start()
    except BaseException:
        server.remove()
        raise


def run_shell(tree, server, blocks, variables):
    """Runs the blocks in one shell until one fails; [(block, its output, None or what it said when it failed)]."""
    results = tree.folder / "results"
    results.mkdir()
    script = "set -eo pipefail\n"
    for number, block in enumerate(blocks):
        commands = saving(block) if block.file else block.text
        script += f"exec >{results}/{number}.out 2>{results}/{number}.err\n{commands}"
    script += f"exec >/dev/null 2>&1\ntouch {results}/end\n"
    environment = {**os.environ, "URL": server.url, "KEY": server.key,
                   "CMAKE_BUILD_PARALLEL_LEVEL": str(PROCESSORS), **variables}
    shell = subprocess.Popen(["bash", "-c", script], cwd=tree.folder, env=environment, stdin=subprocess.DEVNULL,
                             start_new_session=True)
    try:
        shell.wait(SHELL_DEADLINE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        try:
            os.killpg(shell.pid, signal.SIGKILL)  # and what its blocks left in the background
        except ProcessLookupError:
            pass
        shell.wait(jobq_server.STOP_DEADLINE)
    return judged(blocks, results, shell.returncode)


def saving(block):
    """The commands that do what the page tells the reader to do with the block."""
    return f"mkdir -p $(dirname {block.file})\ncat > {block.file} <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"


def judged(blocks, results, code):
    said = []
    for number, block in enumerate(blocks):
        out, err = (results / f"{number}.out", results / f"{number}.err")
        if not out.exists():
            break
        said.append([block, out.read_text(errors="replace"), None])
        last = f"ended with {code}, or after {SHELL_DEADLINE} s: {err.read_text(errors='replace')[-2000:]}"
    if not (results / "end").exists() and said:
        said[-1][2] = last
    return said


def blocks_of(language, wanted=lambda block: True):
    return [pytest.param(name, block, id=f"{name}:{block.line}") for name in CONVERTED for block in read(name).blocks
            if block.language == language and wanted(block)]


def runs(block):
    return block.file or block.language == "sh" and not block.reason_not_to_run


class RunTest:
    @pytest.mark.parametrize("name", [name for name in CONVERTED if any(map(runs, read(name).blocks))])
    @pytest.mark.timeout(SHELL_DEADLINE + 60)
    def test_the_commands_do_as_described(self, name, tree):
        """The page's sh blocks succeed one after the other, and print what the page says."""
        if jobq_server.is_foreign():
            pytest.skip("a page runs on a server of its own")
        page = read(name)
        needs_packages = any(block.language in PROGRAMS for block in page.blocks)
        if needs_packages and not (runpod_process.installed() and shutil.which("npm")):
            pytest.skip(f"npm is not installed, or {runpod_process.MISSING}")
        variables = tree.add_packages() if needs_packages else {}
        with start_server(tree, [block for block in page.blocks if block.option == "server"]) as server:
            said = run_shell(tree, server, [block for block in page.blocks if runs(block)], variables)
        faults = [f"{name}, line {block.line}: {failure}\noutput: {out[-2000:]}"
                  for block, out, failure in said if failure]
        outputs = {block: out for block, out, _ in said}
        for block in page.blocks:
            if block.answers in outputs:
                difference = differs(block, outputs[block.answers])
                faults += [f"{name}, line {block.line}: {difference}"] if difference else []
        assert not faults, "\n".join(faults)

    @pytest.mark.parametrize("name, block", blocks_of("sh", lambda block: block.reason_not_to_run))
    def test_some_commands_are_not_run(self, name, block):
        pytest.skip(f"{name}, line {block.line}: {block.reason_not_to_run}")


def tool(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=TOOL_DEADLINE, **options)
    assert done.returncode == 0, done.stdout + done.stderr


class OtherLanguagesTest:
    @pytest.mark.parametrize("name, block", blocks_of("lua"))
    def test_lua_compiles_in_the_sandbox(self, name, block, tmp_path):
        """A script runs as a file of its own; `lua part` is the inside of a handler's function."""
        folder = tmp_path / ("filters" if block.option == "filter" or "filters/" in block.file else "handlers")
        folder.mkdir()
        script = folder / "block.lua"
        script.write_text(LUA_PART % block.text if block.option == "part" else block.text, encoding="utf-8")
        tool(jobq_server.JOBQCTL, "lua", "check", str(script))

    @pytest.mark.parametrize("name, block", blocks_of("properties", lambda block: not block.file))
    def test_settings_pass_the_check(self, name, block, tree):
        """Settings are valid beside those of etc/jobq.properties. The page itself uses a file that it has written."""
        tool(jobq_server.JOBQD, "--config", str(tree.write("block.properties", tree.settings([block]))), "--check")

    @pytest.mark.parametrize("name, block", blocks_of("cpp"))
    def test_sources_compile_against_the_sdk(self, name, block, tmp_path):
        source = tmp_path / "block.cpp"
        source.write_text(block.text, encoding="utf-8")
        compiler = os.environ.get("CXX", "c++").split()
        tool(*compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'sdk/include'}", f"-I{ROOT / 'sdk'}", f"-I{ROOT}",
             str(source))


class ApiPageTest(HttpTest):
    """core/http/API.md has each call, parameter, field and value of the OpenAPI description."""

    page = (ROOT / "core/http/API.md").read_text(encoding="utf-8")

    @pytest.fixture(autouse=True)
    def description(self, question):
        self.api = self.server.request("GET", "/openapi.json", key=None).json()

    def test_every_call(self):
        """Paths of the queue API stand there without the mount."""
        told = set(re.findall(r"`(GET|POST|PATCH|DELETE) (/[^ `?]*)", self.page))
        calls = {(method.upper(), re.sub(r"^(/sdk)?/v2/{endpoint}", "", path))
                 for path, methods in self.api["paths"].items() for method in methods if method != "parameters"}
        assert calls == told

    def test_every_word(self):
        parts = self.api["components"]
        named = {parameter["name"] for parameter in parts["parameters"].values()}
        named |= set(names_of(parts["schemas"])) | set(headers_of(self.api))
        missing = named - set(re.findall(r"[\w-]+", self.page))
        assert not missing, f"core/http/API.md does not name {sorted(missing)}"


    def test_every_citation(self):
        """`core/http/API.md, "Heading"` in a source names a heading of the page, without its number."""
        headings = re.findall(r"^#+ (?:[\d.]+ )?(.+)$", self.page, re.M)
        assert len(headings) == len(set(headings)), "two headings are equal, so no citation can name one of them"
        faults = [f"{path.relative_to(ROOT)} cites \"{heading}\" of core/http/API.md, which has no such heading"
                  for path in sources() for heading in cited(path.read_text(encoding="utf-8"))
                  if heading not in headings]
        assert not faults, "\n".join(faults)

    def test_a_citation_may_be_broken_over_lines(self):
        assert cited('// core/http/API.md,\n  // "Job\n  // object". core/http/API.md, "Webhooks"') == [
            "Job object", "Webhooks"]


def sources():
    for folder in ("core", "etc", "plugins", "scripts", "sdk", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".py", ".cmake", ".lua", ".properties", ".sh", ".md", ".txt"):
                if path.is_file() and path.name not in ("API.md", pathlib.Path(__file__).name):
                    yield path


def cited(text):
    """The headings of core/http/API.md that a text names; a comment's line may end inside of a citation."""
    return re.findall(r'core/http/API\.md,? "([^"]+)"', re.sub(r"\s*\n\s*(//+|#+|\*|--)?\s*", " ", text))


def children_of(part):
    return part.values() if isinstance(part, dict) else part if isinstance(part, list) else []


def headers_of(part):
    """The headers of all answers in a part of an OpenAPI description."""
    if isinstance(part, dict) and "content" in part:
        yield from part.get("headers", {})
    for child in children_of(part):
        yield from headers_of(child)


def names_of(part):
    """The names of members, and the values of enumerations, in a part of an OpenAPI description."""
    if isinstance(part, dict):
        yield from part.get("properties", {})
        yield from (value for value in part.get("enum", []) if isinstance(value, str))
    for child in children_of(part):
        yield from names_of(child)


FENCED = "```{}\n{}\n```\n"


class RulesTest:
    """The rules of support/document_page.py can be broken: each page here has one fault."""

    @pytest.mark.parametrize("text, fault", [
        ("A page.\n\n    curl localhost\n", "line 3: a code block that is only indented"),
        (FENCED.format("", "x"), "line 1: a fence of language nothing"),
        (FENCED.format("bash", "x"), "line 1: a fence of language bash"),
        (FENCED.format("sh quietly", "x"), "with the words 'quietly'"),
        (FENCED.format("python", "x"), "a fence of python with the words ''"),
        (FENCED.format("sh no-run:", "x"), "with the words 'no-run:'"),
        (FENCED.format("cpp file /etc/passwd", "x"), "with the words 'file /etc/passwd'"),
        (FENCED.format("cpp file a/../../b", "x"), "with the words 'file a/../../b'"),
        (FENCED.format("console", "x"), "directly behind the sh block"),
        (FENCED.format("sh", "x") + "answers\n" + FENCED.format("console", "x"), "directly behind the sh block"),
        (FENCED.format("text", "curl localhost"), "it holds no command: curl localhost"),
        (FENCED.format("text", "build/bin/jobqctl run"), "it holds no command"),
        (FENCED.format("json", "{"), "that is not JSON"),
        ("```sh\nx\n", "line 1: the fence is not closed"),
    ])
    def test_a_fault_is_found(self, text, fault):
        assert fault in "\n".join(Page(text).faults())

    @pytest.mark.parametrize("text", [
        "- an item\n\n  - one in it\n\n    - and in that\n", "- an item\n\n  " + "```sh\n  x\n  ```\n",
        FENCED.format("sh no-run: installs packages", "x"), FENCED.format("text", "IN_QUEUE --claim--> IN_PROGRESS"),
        FENCED.format("sh", "x") + "\n" + FENCED.format("console", "y")])
    def test_other_pages_have_no_faults(self, text):
        assert Page(text).faults() == []

    def test_an_indented_fence_loses_its_indentation(self):
        assert Page("- an item\n\n  ```sh\n  if x; then\n    y\n  ```\n").blocks[0].text == "if x; then\n  y\n"

    @pytest.mark.parametrize("expected, real, same", [
        ('{"a":1,"b":[true]}', '{"b":[true],\n"a":1}', True),
        ('{"a":1}', '{"a":1,"b":2}', False),
        ('{"a":1,"...":"..."}', '{"a":1,"b":2}', True),
        ('{"a":1,"...":"..."}', '{"b":2}', False),
        ('{"a":1}', '{"a":1.0}', False),
        ('{"a":1}', '{"a":true}', False),
        ('{"a":1}{"b":2}', '{"a":1}\n{"b":2}\n', True),
        ('{"delayTime":1}', '{"delayTime":25}', True),
        ('{"a":1}', 'no JSON', False),
        ('{"id":"6b0f5c3e-9f0d-4c0e-8a51-0c5f2d1b7a90-u1"}', '{"id":"0b0f5c3e-9f0d-4c0e-8a51-0c5f2d1b7a91-u1"}', True),
        ('{"id":"6b0f5c3e-9f0d-4c0e-8a51-0c5f2d1b7a90-u1"}', '{"id":"sync-6b0f5c3e-9f0d-4c0e-8a51-0c5f2d1b7a90-u1"}',
         False),
        ('{"templateId":"k3v9x0m2qa"}', '{"templateId":"aaaaaaaaaa"}', True),
        ('{"at":"2026-07-12T19:14:40.144Z"}', '{"at":"2027-01-01T00:00:00.000Z"}', True)])
    def test_an_answer_is_compared(self, expected, real, same):
        block = Page(FENCED.format("sh", "x") + FENCED.format("json", expected)).blocks[1]
        assert (differs(block, real) is None) == same

    def test_a_failing_shell_is_reported(self, tree):
        """The block that fails is the last one that ran, and its words are in the report. Files are written before."""
        page = Page(FENCED.format("sh", "A=1") + FENCED.format("lua file a/b.lua", "return $A")
                    + FENCED.format("sh", "cat a/b.lua; echo $A; echo why >&2; false; echo not here")
                    + FENCED.format("sh", "echo nor here"))
        said = run_shell(tree, jobq_server.Api("http://127.0.0.1:1", "key"), page.blocks, {})
        assert [(out, bool(failure)) for _, out, failure in said] == [("", False), ("", False),
                                                                         ("return $A\n1\n", True)]
        assert "why" in said[2][2]
