"""Judges every figure of the tests that depends on how fast the machine is: latencies, starts, paces beside a twin.

    build/venv/bin/python tests/bench/pace.py              the proofs at full length, about ten minutes
    build/venv/bin/python tests/bench/pace.py --short      with the numbers of jobs that CI has
    build/venv/bin/python tests/bench/pace.py load         only the steps whose name contains that

The tests print these figures everywhere; here they run with JOBQ_JUDGE_PACE=1, so that each has to keep its bound. The
machine must have no other work: above 5 % of it the last line says that the figures are worthless. The exit code is 1
when a bound was missed or a test failed.
"""

import argparse
import os
import re
import subprocess
import sys

from machine import DISTURBED, OtherWork, machine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("JOBQ_BUILD", os.path.join(ROOT, "build"))
FULL = {"JOBQ_BACKLOG_JOBS": "1000000", "JOBQ_BACKLOG_ROUNDS": "11", "JOBQ_LOAD_JOBS": "100000",
        "JOBQ_LOAD_WHOLE_BODIES": "100"}
LONGEST_STEP = 3600  # seconds
FIGURE = re.compile(r"pace: (.*): (-?[\d.]+)( ?\w*), (bound|at least) ([\d.]+)")


def steps():
    """Name and command of each program that prints paces."""
    pytest = [sys.executable, "-m", "pytest", "-s", "-q"]
    fault = {"backlog": "backlog", "load": "load", "limits": "limits_load", "releases": "release_load",
             "fair share": "fair_share", "disk": "disk", "refused start": "refused_start"}
    for name, file in fault.items():
        yield name, [*pytest, os.path.join(ROOT, "tests", "fault", f"test_{file}.py")]
    for file in sorted(os.listdir(os.path.join(ROOT, "tests", "http"))):
        path = os.path.join(ROOT, "tests", "http", file)
        if file.endswith(".py") and "judge_pace" in open(path, encoding="utf-8").read():
            yield file[len("test_"):-len(".py")].replace("_", " "), [*pytest, path]
    for program in ("jobq_webhook_tests", "jobq_handler_tests", "lua_http_test"):
        yield program, [os.path.join(BUILD, "tests", program), "--gtest_brief=1"]
    yield "scripts", [sys.executable, os.path.join(ROOT, "tests", "bench", "lua_pace.py"), "--check"]
    yield "beside large", [sys.executable, os.path.join(ROOT, "tests", "bench", "beside_large.py"), "--check"]


def run(name, command, environment):
    """Prints the step's figures; returns whether it passed."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=LONGEST_STEP)
    worst = {}  # worst value of each figure, so a figure measured often is printed once
    for what, figure, unit, kind, bound in FIGURE.findall(done.stdout):
        least = kind == "at least"
        before = worst.get(what)
        if before is None or (float(figure) < before[0] if least else float(figure) > before[0]):
            worst[what] = (float(figure), unit, kind, float(bound))
    for what, (figure, unit, kind, bound) in worst.items():
        good = figure >= bound if kind == "at least" else figure <= bound
        print(f"{'ok  ' if good else 'MISS'} {what}: {figure:g}{unit}, {kind} {bound:g}{unit}", flush=True)
    passed = done.returncode == 0
    print(f"{'ok  ' if passed else 'FAIL'} {name}: {len(worst)} figures", flush=True)
    if not passed or not worst:
        print(done.stdout[-4000:], flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("name", nargs="*", help="words that a step's name contains")
    options = parser.parse_args()
    environment = {**({} if options.short else FULL), **os.environ, "JOBQ_JUDGE_PACE": "1", "JOBQ_BUILD": BUILD}
    wanted = [step for step in steps() if not options.name or any(word in step[0] for word in options.name)]
    if not wanted:
        parser.error("no step has such a name")
    print(machine())
    others = OtherWork()
    missed = [name for name, command in wanted if not run(name, command, environment)]
    share = others.share()
    print(f"{len(wanted) - len(missed)} of {len(wanted)} steps kept their bounds{': not ' if missed else ''}"
          f"{', '.join(missed)}; other work took {share:.0%} of the processors"
          f"{': these figures are worthless' if share > DISTURBED else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
