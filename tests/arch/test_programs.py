"""The code inside the built programs: jobqctl and jobq-worker have the lowest folders of core, and no code of the
server."""
import os
import pathlib
import re
import subprocess

import pytest
from arch_test import LAYERS, ROOT, layer_of, sources

PROGRAMS = pathlib.Path(os.environ.get("JOBQ_BUILD", ROOT / "build")) / "bin"
LONGEST_LISTING = 120  # seconds: bounds a hang, and judges no pace
PROGRAMS_WITHOUT_SERVER = {"jobqctl": {"cli"}, "jobq-worker": {"cli", "worker"}}  # and the folders of each program
BELOW_JOBQCTL = LAYERS["cli"] | {other for layer in LAYERS["cli"] for other in LAYERS[layer]}
CLASS = re.compile(r"^(?:class|struct) (\w+)[^;]*?\{", re.M)

pytestmark = pytest.mark.skipif(not all((PROGRAMS / name).exists() for name in ("jobqctl", "jobqd", "jobq-worker")),
                                reason=f"{PROGRAMS} lacks a program: build the target jobq")


def server_classes(own):
    """Yields the classes of namespace jobq in the folders of core that are forbidden for a program. `own` has the
    program's folders."""
    for path in sources("core"):
        parts = path.relative_to(ROOT / "core").parts
        if path.suffix == ".h" and len(parts) > 1 and layer_of(parts) not in BELOW_JOBQCTL | own:
            yield from CLASS.findall(path.read_text())


def classes_in(program):
    """Returns the classes of namespace jobq with a function or a virtual table in the program."""
    symbols = subprocess.run(["nm", "-C", "--defined-only", PROGRAMS / program], check=True, capture_output=True,
                             text=True, timeout=LONGEST_LISTING).stdout
    return set(re.findall(r"^[0-9a-f]+ \w (?:\w+ for )?jobq::(\w+)(?:::|$)", symbols, re.M))


@pytest.mark.parametrize("program", PROGRAMS_WITHOUT_SERVER)
def test_no_code_of_the_server(program):
    assert sorted(set(server_classes(PROGRAMS_WITHOUT_SERVER[program])) & classes_in(program)) == []


def test_the_symbols_tell_what_a_program_has():
    seen = set(server_classes({"cli", "worker"})) & classes_in("jobqd")
    assert seen >= {"ApiKeys", "ConnectionReactor", "EndpointService", "HttpServer", "JobService", "RateLimitGate",
                    "Router", "Sweeper", "WebhookDispatcher", "WorkerPool"}
    for program in PROGRAMS_WITHOUT_SERVER:
        assert "PluginHost" in classes_in(program), "a program of release and debugging has its symbols"
