"""The summary of scripts/test.sh: the counts of passed, failed and skipped tests."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import summary  # noqa: E402

LONGEST = 60  # seconds for a run of ctest: bounds a hang, and judges no pace

PYTEST_RESULTS = """<testsuites><testsuite tests="3" failures="0" errors="0" skipped="1">
<testcase name="a"/><testcase name="b"/><testcase name="c"><skipped message="no npm"/></testcase></testsuite></testsuites>"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A build folder for CTest. play() writes the tests of the folder."""
    (tmp_path / "test-results").mkdir()
    monkeypatch.setattr(summary, "BUILD", tmp_path)
    return tmp_path


def play(build, *tests):
    """Lets CTest run the tests, lines of CMake, as the preset `release`."""
    (build / "CTestTestfile.cmake").write_text("\n".join(tests))
    subprocess.run(["ctest", "--output-junit", build / "test-results/release.xml"], cwd=build, timeout=LONGEST, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def last_line(capsys):
    return capsys.readouterr().out.splitlines()[-1]


def test_passed_and_failed_tests_are_counted(build, capsys):
    play(build, "add_test(a true)", "add_test(b true)")
    assert summary.main(["release"]) == 0
    assert last_line(capsys) == "2 passed, 0 failed"
    play(build, "add_test(a true)", 'add_test(b sh -c "echo the reason; exit 1")')
    assert summary.main(["release"]) == 1
    said = capsys.readouterr().out
    assert "release: b failed" in said and "the reason" in said and said.endswith("1 passed, 1 failed\n")


def test_a_test_that_could_not_start_has_failed(build, capsys):
    play(build, "add_test(a true)", "add_test(b /nonexistent/program)", "add_test(c NOT_AVAILABLE)")
    assert summary.main(["release"]) == 1
    assert last_line(capsys) == "1 passed, 2 failed"


def test_a_preset_without_results_has_failed(build, capsys):
    play(build, "add_test(a true)")
    assert summary.main(["release", "asan"]) == 1
    said = capsys.readouterr().out
    assert "the preset asan left no results" in said and said.endswith("1 passed, 1 failed\n")


def test_no_test_at_all_is_a_failure(build, capsys):
    assert summary.main([]) == 1
    assert last_line(capsys) == "0 passed, 0 failed"


def test_the_reasons_of_skipped_tests_are_printed(build, capsys):
    play(build, "add_test(a sh -c \"echo 'x.cpp:1: Skipped'; echo no receiver\")",
         "set_tests_properties(a PROPERTIES SKIP_REGULAR_EXPRESSION Skipped)", "add_test(python true)")
    (build / "test-results/python.xml").write_text(PYTEST_RESULTS)
    assert summary.main(["release"]) == 0
    said = capsys.readouterr().out
    assert "release: a was skipped: no receiver" in said and "release: python c was skipped: no npm" in said
    assert said.endswith("2 passed, 0 failed, 2 skipped\n")


def test_the_tests_of_a_whole_program_count_one_by_one(build, capsys):
    """A file of GoogleTest has a suite for each class."""
    play(build, "add_test(unit_test true)")
    (build / "test-results/unit_test.xml").write_text(
        '<testsuites><testsuite tests="2" failures="0" errors="0" skipped="1"><testcase name="A"/><testcase name="B">'
        '<skipped message="a.cpp:1&#x0A;no file"/></testcase></testsuite>'
        '<testsuite tests="3" failures="1" errors="0" skipped="0"/></testsuites>')
    assert summary.main(["release"]) == 1
    said = capsys.readouterr().out
    assert "release: unit_test B was skipped: no file" in said
    assert said.endswith("3 passed, 1 failed, 1 skipped\n")


def test_the_names_of_failed_tests_are_at_the_end(build, capsys):
    """A page of CI may show the last lines of a run only."""
    play(build, 'add_test(a sh -c "exit 1")', "add_test(b true)", 'add_test(c sh -c "echo the reason; exit 1")')
    assert summary.main(["release"]) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == ["failed: release a", "failed: release c", "1 passed, 2 failed"]


@pytest.mark.parametrize("report", ["a.cpp:7: Failure", "WARNING: ThreadSanitizer: data race (pid=7)",
                                    "==7==ERROR: AddressSanitizer: heap-use-after-free", "a.cpp:7:5: runtime error: shift"])
def test_a_report_far_from_the_end_is_printed(build, capsys, report):
    """A sanitizer reports in the middle of a program's output, and the program fails at its end."""
    play(build, f"add_test(a sh -c \"echo '{report}'; seq 1 3000; exit 1\")")
    assert summary.main(["release"]) == 1
    said = capsys.readouterr().out
    assert f"{report}\n1\n2\n3\n" in said and "\n2998\n2999\n3000\n" in said
