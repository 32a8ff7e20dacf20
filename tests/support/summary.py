"""Adds up the results of scripts/test.sh: prints the slowest tests, each failure with the place, and the last line.

    summary.py [<preset> ...]

CTest's results are build/test-results/<preset>.xml; each preset in the arguments must have left such a file. A pytest
file or a whole program of GoogleTest is a single test of CTest, and has left a separate file,
<build folder>/test-results/<name>.xml: the tests in the file count separately. A test that CTest could not start counts
as failed. The exit code is 1 if a test failed, or if no test passed.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
SLOWEST = 12
LONGEST_OUTPUT = 3000  # characters from the end of a failed test's output
LONGEST_REPORT = 4000  # characters of the first failed check or report of a sanitizer
REPORT = re.compile(r"^.*(: Failure$|WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|: runtime error: )", re.MULTILINE)


def own_results(preset, name):
    """Returns the results in the separate file of a test of CTest, or None without such a file."""
    own = BUILD / preset.removesuffix("-nightly")
    folder = own if (own / "test-results").is_dir() else BUILD
    try:
        return xml.etree.ElementTree.parse(folder / "test-results" / f"{name}.xml").getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return None


def own_counts(results):
    """Returns (passed, failed, skipped) of the suites in a separate file."""
    tests, failures, errors, skipped = (sum(int(suite.get(key)) for suite in results.findall("testsuite"))
                                        for key in ("tests", "failures", "errors", "skipped"))
    return tests - failures - errors - skipped, failures + errors, skipped


def own_skips(results):
    """Returns pairs (test, reason) of the skipped tests in a separate file. GoogleTest writes the place in the source
    before the reason."""
    return [(case.get("name"), (case.find("skipped").get("message") or "it does not say why").splitlines()[-1])
            for case in results.iter("testcase") if case.find("skipped") is not None]


def is_skipped(case):
    """Returns true if the test skipped itself, false if the test ran or could not be started."""
    skipped = case.find("skipped")
    return case.get("status") == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_")


def skip_reason(case):
    """Returns the text given to GTEST_SKIP()."""
    said = re.search(r": Skipped\n(.*)", case.findtext("system-out") or "")
    return said.group(1) if said and said.group(1).strip() else "it does not say why"


def count(case, preset, results):
    """Prints the skipped tests of a test of CTest. Returns (passed, failed, skipped). `results` come from
    own_results()."""
    name = case.get("name")
    if is_skipped(case):
        print(f"{preset}: {name} was skipped: {skip_reason(case)}")
        return 0, 0, 1
    for test, reason in own_skips(results) if results is not None else ():
        print(f"{preset}: {name} {test} was skipped: {reason}")
    passed, failed, skipped = own_counts(results) if results is not None else (1, 0, 0)
    if case.get("status") == "run":
        return passed, failed, skipped
    return passed if results is not None else 0, max(failed, 1), skipped


def print_failures(failures):
    """Prints each failure with the end of the output and with the first report of a cause, which may be far from the
    end, and then the names of all failures: a reader of CI may see only the last lines."""
    for preset, case in failures:
        output = case.findtext("system-out") or ""
        print(f"---- {preset}: {case.get('name')} failed after {float(case.get('time')):.1f} s")
        print(output[-LONGEST_OUTPUT:])
        report = REPORT.search(output[:-LONGEST_OUTPUT])
        if report:
            print(f"---- {preset}: {case.get('name')} reported first:")
            print(output[report.start():report.start() + LONGEST_REPORT])
    for preset, case in failures:
        print(f"failed: {preset} {case.get('name')}")


def main(presets):
    total = [0, 0, 0]
    failures = []
    slowest = []
    for preset in presets:
        if not (BUILD / "test-results" / f"{preset}.xml").exists():
            print(f"---- the tests of the preset {preset} left no results")
            total[1] += 1
    for file in sorted(BUILD.glob("test-results/*.xml"), key=lambda path: path.stat().st_mtime):
        root = xml.etree.ElementTree.parse(file).getroot()
        if root.tag != "testsuite":
            continue  # the results of a pytest file
        counts = [0, 0, 0]
        for case in root.findall("testcase"):
            counts = [a + b for a, b in zip(counts, count(case, file.stem, own_results(file.stem, case.get("name"))))]
            slowest.append((float(case.get("time")), file.stem, case.get("name")))
            if case.get("status") != "run" and not is_skipped(case):
                failures.append((file.stem, case))
        print(f"{file.stem:10} {counts[0]:6} passed {counts[1]:4} failed {counts[2]:4} skipped "
              f"{float(root.get('time', 0)):8.0f} s of tests")
        total = [a + b for a, b in zip(total, counts)]
    print("The slowest tests, in seconds:")
    for seconds, preset, name in sorted(slowest, reverse=True)[:SLOWEST]:
        print(f"  {seconds:7.1f}  {preset} {name}")
    print_failures(failures)
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
