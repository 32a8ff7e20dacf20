"""Runs unittest files and says how each test went: one line a test, and at the end `N passed, N failed`.

    python3 tests/support/run_tests.py [-k TEXT] [FILE...]      (no file: all of tests/http)

The exit code is 1 when anything failed. The server's log is printed under a test that failed with a server of its own
or the shared one.
"""

import argparse
import faulthandler
import glob
import importlib.util
import os
import sys
import time
import traceback
import unittest

SUPPORT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, SUPPORT)

import jobq_server  # noqa: E402  (found through the line above)

LONGEST_TEST = 240  # seconds, or what a class says; then every thread's stack is printed and the run ends

LONGEST_MESSAGE = 4000


class Report(unittest.TestResult):
    """Counts and prints. A test with failing sub-tests is one failed test."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.failed = 0
        self._started = 0.0
        self._faults = []
        self._skipped = False

    def startTest(self, test):
        super().startTest(test)
        faulthandler.dump_traceback_later(getattr(test, "LONGEST_TEST", LONGEST_TEST), exit=True)
        self._started = time.monotonic()
        self._faults = []
        self._skipped = False

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        if jobq_server.shared_end():
            self._faults.append(jobq_server.shared_end())
            jobq_server.forget_shared()
        if self._faults:
            self.failed += 1
            self._line("FAIL", test)
            print("\n".join(self._faults))
        elif not self._skipped:
            self.passed += 1
            self._line("ok", test)
        super().stopTest(test)

    def _line(self, word, test, more=""):
        seconds = time.monotonic() - self._started
        print(f"{word:4} {test.id()} ({seconds:.2f} s){more}", flush=True)

    def _fault(self, test, error):
        text = describe(error)
        if isinstance(test, unittest.TestCase):
            logs = [f"--- log of {server.url}\n{server.log_tail(40)}" for server in jobq_server.Server.live]
            self._faults.append("\n".join([text, *logs]))
        else:
            self.failed += 1
            print(f"FAIL {test.id()}\n{text}", flush=True)

    def addError(self, test, err):
        self._fault(test, err)

    def addFailure(self, test, err):
        self._fault(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._faults.append(f"{subtest}\n{describe(err)}")

    def addSkip(self, test, reason):
        self._skipped = True
        self._line("skip", test, f": {reason}")


def describe(error):
    """The exception, and the way to it through the tests' own files."""
    kind, value, trace = error
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith(jobq_server.ROOT)]
    lines = [f"  {os.path.relpath(frame.filename, jobq_server.ROOT)}:{frame.lineno}: {frame.line}" for frame in frames]
    message = "".join(traceback.format_exception_only(kind, value)).rstrip()
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}... ({len(message)} characters)"
    return "\n".join([*lines, message])


def load(path):
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: all of tests/http")
    parser.add_argument("-k", metavar="TEXT", default="", help="only tests whose name contains TEXT")
    options = parser.parse_args()
    files = options.files or sorted(glob.glob(os.path.join(jobq_server.ROOT, "tests", "http", "test_*.py")))

    report = Report()
    for path in files:
        suite = unittest.TestSuite(test for test in tests_of(load(path)) if options.k in test.id())
        suite.run(report)
    try:
        jobq_server.close_shared()
    except AssertionError as error:
        report.failed += 1
        print(f"FAIL the shared server's end: {error}")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
