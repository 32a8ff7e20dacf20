"""Every wait of a test has a deadline: a hang fails where it is, and says what it waited for."""
import ast

from arch_test import ROOT, assert_none

FOLDERS = ("tests", "sdk")
WAITS = {"join": "a thread", "wait": "a process, an event or a barrier"}  # called without an argument: for ever
BOUNDED = {"receiver"}  # variables with a WebhookReceiver, whose wait() has a deadline of its own
RUNS = {"run", "call", "check_call", "check_output"}  # of the module subprocess


def sources():
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported_runs(tree):
    """Returns the names under which a file has imported functions of RUNS themselves."""
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
