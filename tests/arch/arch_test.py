"""The architecture, as a test: the allowed includes between folders, the length of files, the number of files in a
folder, and the map from rules to tests in tests/README.md."""
import ast
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP_LEVEL = {"CMakeLists.txt", "core", "plugins", "sdk", "scripts", "etc", "tests", "README.md", "CHANGELOG.md",
             "CMakePresets.json", "LICENSE", "build"}
LAYERS = {  # a folder of core, and the other folders or single headers of core that the folder may include
    "base": set(),
    "model": {"base"},
    "process": {"base"},
    "config": {"base", "model", "process"},
    "plugin": {"base", "config"},
    "auth": {"base", "config"},
    "limits": {"base", "config"},
    "endpoints": {"base", "config", "model"},
    "webhooks": {"base", "config", "model"},
    "maintenance": {"base", "config", "model"},
    "jobs": {"base", "config", "model", "endpoints"},
    "workers/node": {"base", "jobs"},
    "workers/run": {"base", "model", "endpoints", "jobs"},
    "workers/pool": {"base", "config", "endpoints", "jobs", "workers/node", "workers/run"},
    "workers/remote": {"base", "endpoints", "jobs", "workers/node", "workers/pool", "workers/run"},
    "workers/launched": {"base", "model", "endpoints", "jobs", "workers/node", "workers/pool", "workers/remote"},
    "workers": {"base", "model", "endpoints", "jobs", "workers/node", "workers/pool", "workers/remote", "workers/run"},
    "http/transport": {"base", "process", "config/server_config.h"},  # a single header
    "http/api": {"base", "config", "endpoints", "jobs", "auth", "limits", "http/transport"},
    "http/api/queue": {"base", "model", "endpoints", "jobs", "http/transport", "http/api"},
    "http/api/openai": {"base", "jobs", "http/api", "http/api/queue"},
    "http/api/worker": {"base", "model", "http/api", "http/api/queue", "workers/remote/remote_workers.h",
                        "workers/remote/remote_worker.h", "workers/remote/remote_run.h", "workers/remote/foreign_reports.h"},
    "http/api/management": {"base", "config", "model", "endpoints", "webhooks", "jobs", "plugin", "http/transport", "http/api",
                            "http/api/queue", "auth/key_fields.h"},
    "client": {"base", "process", "plugin", "config/units.h"},  # shared by jobqctl and jobq-worker
    "cli": {"base", "config", "model", "process", "plugin", "client"},  # with jobq_base alone (tests/arch/test_programs.py)
    "cli/commands": {"base", "config", "model", "process", "plugin", "client", "cli"},
    "handler_process": {"base", "model", "process", "client"},  # handlers in a separate process
    "worker_program": {"base", "model", "process", "client", "handler_process"},  # jobq-worker
}
LAYERS_OF_LUA = {  # the same for the folders of plugins/lua; the files at the top know all folders
    "sandbox": set(),
    "json": {"sandbox"},
    "stdlib": {"sandbox", "json"},
}
ONLY_IN = [  # a header's name, and the files and folders that may include the header
    (re.compile(r"Poco/Net/HTTP"), ("core/http/", "core/cli/", "core/client/", "core/worker_program/")),
    (re.compile(r"boost/"), ("core/plugin/plugin_host.cpp",)),
    (re.compile(r"lua\.hpp|lua\.h|lauxlib\.h|lualib\.h"), ("plugins/lua/",)),
    (re.compile(r"curl/"), ("core/base/curl_url.cpp", "plugins/http_client/",  # URLs, outbound HTTP,
                             "plugins/launcher_docker/docker_socket.cpp")),  # and a Unix socket
    (re.compile(r"Poco/Data/|sqlite3\.h|mysql"), ("plugins/storage_sqlite/", "plugins/storage_mysql/", "tests/conformance/")),
]
POSIX = {"unistd.h"}  # headers of the system in the sdk
SHARED_BY_PLUGINS = {"http_client", "storage_sql"}  # folders with a library of several plugins
MAX_LINES = 400  # lines of a source. Markdown pages have no limit, because readers search a page.
MOST_UNITS = 25  # units of a folder; readers look up the headers and the test suites of the sdk by name
PROGRAMS = {".h", ".cpp", ".py", ".sh", ".lua", ".cmake", ".go", ".js", ".mjs", ".ts"}
RUN_BY_NAME = {"tests/fault/soak.py"}  # long tests, run by pytest only with the file in the arguments
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield path


def assert_none(faults):
    assert not faults, "\n".join(faults)


def name(path):
    return path.relative_to(ROOT).as_posix()


def test_top_level():
    assert_none([f"{entry.name} does not belong at the top" for entry in ROOT.iterdir()
                 if not entry.name.startswith(".") and entry.name not in TOP_LEVEL])


def test_sdk():
    faults = []
    for path in sources("sdk/include"):
        for include in INCLUDE.findall(path.read_text()):
            is_foreign = "/" in include and not include.startswith("jobq/") or include.endswith(".h") and "/" not in include
            if is_foreign and include not in POSIX:
                faults.append(f"{name(path)} includes {include}: the sdk knows only the standard library and POSIX")
    assert_none(faults)


def layer_of(parts):
    """Returns the layer of a path below core: the folder."""
    return "/".join(parts[:-1])


def test_core():
    faults = []
    for path in sources("core"):
        parts = path.relative_to(ROOT / "core").parts
        if len(parts) == 1:
            continue  # the application and main know all folders
        layer = layer_of(parts)
        for include in INCLUDE.findall(path.read_text()):
            if include.startswith(("plugins/", "tests/")):
                faults.append(f"{name(path)} includes {include}")
            if include.startswith("core/"):
                other = layer_of(include.split("/")[1:])
                allowed = LAYERS.get(layer, set())
                if other != layer and other not in allowed and include.removeprefix("core/") not in allowed:
                    faults.append(f"{name(path)} includes {include}: {layer} may not know {other}")
    assert_none(faults)


def test_plugins():
    faults = []
    folders = {folder.name for folder in (ROOT / "plugins").iterdir() if folder.is_dir()}
    for path in sources("plugins"):
        own = path.relative_to(ROOT / "plugins").parts[0]
        for include in INCLUDE.findall(path.read_text()):
            first = include.split("/")[0] if "/" in include else ""
            if first in {"core", "plugins", ".."} or first in folders - {own, *SHARED_BY_PLUGINS}:
                faults.append(f"{name(path)} includes {include}: a plugin knows the sdk, itself and the shared folders")
            if own in SHARED_BY_PLUGINS and first in folders - {own}:
                faults.append(f"{name(path)} includes {include}: {own} knows no plugin")
    assert_none(faults)


def test_lua():
    faults = []
    top = {path.name for path in (ROOT / "plugins/lua").glob("*.h")}
    for layer, below in LAYERS_OF_LUA.items():
        for path in sources(f"plugins/lua/{layer}"):
            for include in INCLUDE.findall(path.read_text()):
                other = "the top" if include in top else include.split("/")[0]
                if other in {*LAYERS_OF_LUA, "the top"} - {layer} - below:
                    faults.append(f"{name(path)} includes {include}: {layer} may not know {other}")
    assert_none(faults)


def test_only_in():
    faults = []
    for path in sources("core", "plugins", "sdk"):
        for include in INCLUDE.findall(path.read_text()):
            for pattern, homes in ONLY_IN:
                if pattern.match(include) and not name(path).startswith(homes):
                    faults.append(f"{name(path)} includes {include}, which belongs in {', '.join(homes)}")
    assert_none(faults)


def test_sizes():
    faults = []
    for folder in ("core", "plugins", "sdk", "scripts", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in PROGRAMS or "node_modules" in path.parts:
                continue
            lines = len(path.read_text().splitlines())
            if lines > MAX_LINES:
                faults.append(f"{name(path)} has {lines} lines, more than {MAX_LINES}")
    assert_none(faults)


def test_rooms():
    """A folder has at most 25 units (a unit is a header with its source), so a reader sees all units at once."""
    units = {}
    for path in sources("core", "plugins"):
        units.setdefault(path.parent, set()).add(path.stem)
    assert_none([f"{name(folder)} has {len(stems)} units, more than {MOST_UNITS}: give a part of them a folder"
                 for folder, stems in units.items() if len(stems) > MOST_UNITS])


def test_globbing():
    files = [ROOT / "CMakeLists.txt"]
    for folder in ("core", "plugins", "sdk", "tests"):
        files += (ROOT / folder).rglob("CMakeLists.txt")
    assert_none([f"{name(path)} globs its sources" for path in files
                 if re.search(r"file\s*\(\s*GLOB", path.read_text())])


def test_headers():
    assert_none([f"{name(path)} has no #pragma once" for path in sources("core", "plugins", "sdk", "tests")
                 if path.suffix == ".h" and "#pragma once" not in path.read_text()])


def test_seams():
    """A test replaces a source when linking (tests/fault/broken.cmake) or decorates an interface."""
    assert_none([f"{name(path)} asks for a macro of the tests: {macro}" for path in sources("core", "plugins", "sdk")
                 for macro in re.findall(r"^\s*#.*\b(JOBQ_TEST_\w+)", path.read_text(), re.M)])


def test_sources_are_built():
    """Each test belongs to a program: a test that no program names is never compiled, and never fails."""
    lists = [*(ROOT / "tests").rglob("CMakeLists.txt"), *(ROOT / "tests").rglob("*.cmake")]
    named = "\n".join(path.read_text() for path in lists)
    assert_none([f"no program of tests has {name(path)}" for path in (ROOT / "tests").rglob("*_test.cpp")
                 if path.name not in named])


def test_python_files_are_run():
    """CTest names each test file: other files never run. CTest finds the files of `http` and `arch` by a pattern."""
    lists = [*(ROOT / "tests").rglob("CMakeLists.txt"), *(ROOT / "tests").rglob("*.cmake")]
    named = set(re.findall(r"\w+", "\n".join(path.read_text() for path in lists)))
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("*_test.py")]
    assert_none([f"CTest does not run {name(path)}" for path in files
                 if path.parent.name not in ("http", "arch")
                 and not {path.stem, path.stem.removeprefix("test_")} & named])


@functools.cache
def tests_in(path):
    """Returns the names of the tests in a file: `Class.test_name` in Python, the second word of a TEST in C++."""
    text = path.read_text()
    if path.suffix != ".py":
        return set(re.findall(r"^TEST(?:_[FP])?\(\s*\w+,\s*(\w+)\)", text, re.M))
    return {f"{group.name}.{test.name}" for group in ast.parse(text).body if isinstance(group, ast.ClassDef)
            for test in group.body if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")}


def test_collection():
    """tests/pytest.ini: pytest recognises test files and test classes by name, and ignores all other files and
    classes."""
    faults = []
    for path in (ROOT / "tests").rglob("*.py"):
        for test in tests_in(path):
            group = test.split(".")[0]
            if not group.endswith(("Test", "Tests")):
                faults.append(f"{name(path)}: a class named {group} is never run")
            if not (path.name.startswith("test_") or path.name.endswith("_test.py") or name(path) in RUN_BY_NAME):
                faults.append(f"{name(path)}: {test} is never run")
    assert_none(sorted(set(faults)))


def test_map():
    """tests/README.md, "Which test proves which rule": every test in the tables exists, and every test of a rule is in
    a table."""
    files = {}
    for folder in ("tests", "sdk/testkit"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cpp", ".h"):
                files.setdefault(path.name, []).append(path)
    named = re.findall(r"`([\w.]+)::([\w.]+)`", (ROOT / "tests/README.md").read_text())
    faults = []
    for file, test in sorted(set(named)):
        if len(files.get(file, [])) != 1:
            faults.append(f"tests/README.md names {file}, and there are {len(files.get(file, []))} of that name")
        elif test not in tests_in(files[file][0]):
            faults.append(f"tests/README.md names {file}::{test}, which does not exist")
    for path in sorted((ROOT / "tests/http").glob("test_*.py")):
        if path.name.startswith(("test_api_", "test_decisions_")):
            missing = tests_in(path) - {test for file, test in named if file == path.name}
            faults += [f"{path.name}::{test} proves no rule of tests/README.md" for test in sorted(missing)]
    assert named, "tests/README.md names no test"
    assert_none(faults)


ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.M)  # a row of a table: a rule and the tests of the rule
PROOF = re.compile(r'`[\w.]+::[\w.]+`|\bPlanned:|\boutside\b|^the tables? below$|^"[^"]+"(?:, "[^"]+")*$')  # the last: other tables


def unproved(page):
    """Returns the rules in the tables of a page that have neither a test nor a reason for the absence of a test."""
    return [rule for rule, tests in ROW.findall(page) if (rule, tests) != ("rule", "tests") and not PROOF.search(tests)]


def test_each_rule_of_the_map_has_a_test():
    page = (ROOT / "tests/README.md").read_text()
    page = page[page.index("## Which test proves which rule"):]
    assert len(ROW.findall(page)) > 200, "the tables are found"
    assert_none([f"tests/README.md: the rule \"{rule}\" has no test, and does not say why" for rule in unproved(page)])


def test_a_rule_without_a_test_is_found():
    table = "| rule | tests |\n|---|---|\n| a | `x.py::T.t` |\n| b | soon |\n| c | Planned: the route |\n| d | outside |\n"
    assert unproved(table) == ["b"]
