"""The wiring is searchable: stages call each other through named interfaces, so a search for the name of an interface
finds the callers and the implementations. A std::function hides both ends."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

FOLDERS = ("core", "plugins", "sdk/include")  # sdk/testkit is left out: a test passes steps as functions
# Uses of std::function in headers: how many a header may have, and why. Each other use is a named interface.
ALLOWED = {
    "core/application.h": (1, "a decorator of the storage, called once in the constructor and not kept"),
    "core/config/form.h": (3, "the table of the fields of a description: each row reads and writes one field"),
    "core/config/setting.h": (2, "the table of the settings: each row reads and prints one value"),
    "core/http/api/router.h": (1, "the table of routes: each row names its path beside its call"),
    "core/webhooks/delivery_task.h": (1, "a parameter, repeated until success and not kept"),
    "core/workers/run/run_context.h": (1, "a parameter, repeated until success and not kept"),
    "plugins/lua/sandbox/sandbox.h": (1, "a parameter, called at most once in a run and not kept"),
}
FUNCTION = re.compile(r"\bstd::(?:move_only_)?function<")
COMMENT = re.compile(r"//[^\n]*")
LAMBDA = re.compile(r"\[(?:[^\]\n]*\bthis\b[^\]\n]*|[&=])\][^\n]*")


def name(path):
    return path.relative_to(ROOT).as_posix()


def code(path):
    return COMMENT.sub("", path.read_text())


def functions_of(path):
    return len(FUNCTION.findall(code(path)))


def long_lambdas(text):
    """Returns the numbers of the lines where a lambda that captures `this` begins but does not end."""
    return [number for number, line in enumerate(text.splitlines(), 1) for found in LAMBDA.finditer(line)
            if found.group().count("{") > found.group().count("}")]


def test_wiring_has_names():
    faults = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.h")):
        most = ALLOWED.get(name(path), (0, ""))[0]
        if functions_of(path) > most:
            faults.append(f"{name(path)} has {functions_of(path)} std::function and may have {most}: "
                          "define a named interface")
    assert not faults, "\n".join(faults)


def test_exceptions_exist():
    """Each exception in the table is still needed."""
    faults = [f"{header} has no std::function any more: remove its row" for header in ALLOWED
              if not (ROOT / header).is_file() or functions_of(ROOT / header) == 0]
    assert not faults, "\n".join(faults)


def test_composition_root_has_short_lambdas():
    faults = [f"{name(path)}:{line}: a lambda over one line captures this: name what it does"
              for path in (ROOT / "core/application.cpp", ROOT / "core/adapters.cpp", ROOT / "core/plugin_instances.cpp")
              for line in long_lambdas(code(path))]
    assert not faults, "\n".join(faults)


def test_long_lambdas_are_found():
    assert long_lambdas("f([this] { g(); });\nf([this](int a) {\n  g(a);\n});\n") == [2]
    assert long_lambdas("f([&, this] {\n});\nv[i] = {\n};\n") == [1]
