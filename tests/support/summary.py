"""Adds up what scripts/test.sh has tested: prints each failure with its place, the slowest tests, and the last line.

CTest's results are build/test-results/<preset>.xml. A test of CTest that is a pytest file has left a file of its own,
<build folder>/test-results/<name>.xml, whose tests count one by one. The exit code is 1 when a test failed, and when
there was none.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
SLOWEST = 12
LONGEST_OUTPUT = 6000  # characters of a failed test's output, from its end


def pytest_counts(preset, name):
    """(passed, failed, skipped) of a pytest file, None when it left no results."""
    folder = BUILD / preset if (BUILD / preset / "test-results").is_dir() else BUILD
    try:
        suite = xml.etree.ElementTree.parse(folder / "test-results" / f"{name}.xml").getroot().find("testsuite")
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    tests, failures, errors, skipped = (int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped"))
    return tests - failures - errors - skipped, failures + errors, skipped


def skip_reason(case):
    """Returns the text given to GTEST_SKIP()."""
    said = re.search(r": Skipped\n(.*)", case.findtext("system-out") or "")
    return said.group(1) if said and said.group(1).strip() else "it does not say why"


def main():
    total = [0, 0, 0]
    slowest = []
    for file in sorted(BUILD.glob("test-results/*.xml"), key=lambda path: path.stat().st_mtime):
        root = xml.etree.ElementTree.parse(file).getroot()
        if root.tag != "testsuite":
            continue  # the results of a pytest file
        counts = [0, 0, 0]
        for case in root.findall("testcase"):
            name, status, seconds = case.get("name"), case.get("status"), float(case.get("time"))
            passed, failed, skipped = pytest_counts(file.stem, name) or (
                (1, 0, 0) if status == "run" else (0, 0, 1) if status == "notrun" else (0, 1, 0))
            if status == "fail":
                failed = max(failed, 1)
                output = case.findtext("system-out") or ""
                print(f"---- {file.stem}: {name} failed after {seconds:.1f} s\n{output[-LONGEST_OUTPUT:]}")
            elif skipped and status == "notrun":
                print(f"{file.stem}: {name} was skipped: {skip_reason(case)}")
            slowest.append((seconds, file.stem, name))
            counts = [a + b for a, b in zip(counts, (passed, failed, skipped))]
        print(f"{file.stem:10} {counts[0]:6} passed {counts[1]:4} failed {counts[2]:4} skipped "
              f"{float(root.get('time', 0)):8.0f} s of tests")
        total = [a + b for a, b in zip(total, counts)]
    print("The slowest tests, in seconds:")
    for seconds, preset, name in sorted(slowest, reverse=True)[:SLOWEST]:
        print(f"  {seconds:7.1f}  {preset} {name}")
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
