"""Every wait of a test has a deadline: a hang fails at the place of the wait, with a message that names the awaited
event."""
import ast
import re

from arch_test import ROOT, assert_none

FOLDERS = ("tests", "sdk")
WAITS = {"join": "a thread", "wait": "a process, an event or a barrier"}  # called without an argument: for ever
BOUNDED = {"receiver"}  # variables with a WebhookReceiver: wait() has a deadline inside
RUNS = {"run", "call", "check_call", "check_output"}  # functions of the module subprocess

# Waits of C++ without a deadline; sdk/testkit/wait_for.h has waits with a deadline.
CPP_WAIT = re.compile(r"\.wait\((?:lock|\w*mutex_?)\b|future\(\)\.wait\(\)|\bpthread_join\(|\bwaitpid\([^;]*, 0\)"
                      r"|\bthreads?(?:\w*_)?\.join\(\)")
CPP_ALLOWED = {  # file -> the reason why the waits in the file need no deadline
    "sdk/testkit/manual_clock.h": "waits of the code under test; those of tests are bounded by awaitWaiter()",
    "sdk/testkit/wait_for.h": "bounded by HangGuard",
    "sdk/testkit/run_together.h": "bounded by HangGuard",
    "tests/conformance/mariadb_server.cpp": "the keeper ends at the closed pipe, and its children by SIGKILL",
    "tests/plugin_host/fixture_children.cpp": "a child that ends by a signal of its own, or behind it",
    "tests/bench/gearman_worker.cpp": "a program that runs until it is killed",
    "tests/fault/crash/board.cpp": "a consumer ended by close(), which each life calls at its own deadline",
    "tests/unit/thread_executor_stop_test.cpp": "plays a handler that never ends, on a thread that the test leaves behind",
}


def sources():
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported_runs(tree):
    """Returns the local names of the functions of RUNS that a file imports directly."""
    return {alias.asname or alias.name for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "subprocess"
            for alias in node.names if alias.name in RUNS}


def is_run(function, imported):
    if isinstance(function, ast.Name):
        return function.id in imported
    return (isinstance(function, ast.Attribute) and function.attr in RUNS
            and isinstance(function.value, ast.Name) and function.value.id == "subprocess")


def waits_forever(call):
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in WAITS or call.args or call.keywords:
        return False
    return not (function.attr == "wait" and isinstance(function.value, ast.Name) and function.value.id in BOUNDED)


def deadlines_missing(text):
    """Returns pairs (line, fault) of a Python source."""
    tree = ast.parse(text)
    imported = imported_runs(tree)
    faults = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        if is_run(call.func, imported) and not {keyword.arg for keyword in call.keywords} & {"timeout", None}:
            faults.append((call.lineno, "runs a program without timeout="))
        elif waits_forever(call):
            faults.append((call.lineno, f"waits for {WAITS[call.func.attr]} without a deadline: .{call.func.attr}()"))
    return sorted(faults)


def test_each_wait_has_a_deadline():
    assert_none([f"{path.relative_to(ROOT).as_posix()}:{line} {fault}"
                 for path in sources() for line, fault in deadlines_missing(path.read_text(encoding="utf-8"))])


def test_the_faults_are_found():
    text = """from subprocess import run as start
thread.join()
thread.join(5)
", ".join(words)
process.wait()
process.wait(timeout=5)
receiver.wait()
subprocess.run(["ls"], check=True)
subprocess.check_output(["ls"], timeout=5)
start(["ls"])
"""
    assert [line for line, _ in deadlines_missing(text)] == [2, 5, 8, 10]


def cpp_waits(text):
    """Returns the lines of a C++ source with a wait for ever. A comment marks a line after a HangGuard."""
    return [number for number, line in enumerate(text.splitlines(), 1)
            if CPP_WAIT.search(line) and "bounded by the guard" not in line]


def test_each_wait_of_cpp_has_a_deadline():
    seen, faults = set(), []
    for folder in ("tests", "sdk/testkit"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            name = path.relative_to(ROOT).as_posix()
            lines = cpp_waits(path.read_text(encoding="utf-8"))
            seen |= {name} if lines else set()
            if name not in CPP_ALLOWED:
                faults += [f"{name}:{line} waits without a deadline: sdk/testkit/wait_for.h has waits with one"
                           for line in lines]
    assert_none(faults + [f"{name} has no wait that needs its reason" for name in sorted(set(CPP_ALLOWED) - seen)])


def test_the_faults_of_cpp_are_found():
    text = """changed_.wait(mutex_);
wait.on(changed_, mutex_);
more_.wait(lock, [this] { return closed_; });
never.get_future().wait();
waitpid(child, &status, 0);
waitpid(child, &status, 0);  // bounded by the guard
waitpid(child, &status, WNOHANG);
thread.join();
join("the reader", thread);
"""
    assert cpp_waits(text) == [1, 3, 4, 5, 8]
