"""etc/events.md is what the program prints. tests/arch/test_pages.py compares the page with the sources."""
import difflib
import os
import pathlib

from jobq_server import JOBQD, ROOT, jobqd

PAGE = pathlib.Path(ROOT) / "etc/events.md"


class EventsPageTest:
    def test_the_page_is_the_output_of_the_program(self):
        """`jobqd --events` prints etc/events.md, byte by byte."""
        done = jobqd("--events")
        assert (done.returncode, done.stderr) == (0, "")
        page, program = PAGE.read_text(encoding="utf-8"), done.stdout
        same = page == program  # in a variable, because pytest would explain the comparison at length
        lines = difflib.unified_diff(page.splitlines(True), program.splitlines(True), "etc/events.md", "jobqd", n=0)
        renewal = f"{os.path.relpath(JOBQD, ROOT)} --events > etc/events.md"
        assert same, f"etc/events.md is not what jobqd --events prints; renew it:\n{renewal}\n{''.join(lines)}"

    def test_each_row_has_sentences(self):
        """A meaning and an action end with a full stop. An event of the levels warning and error has both."""
        lines = PAGE.read_text(encoding="utf-8").splitlines()
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
        rows += [["", line, "."] for line in lines if line.startswith("- `")]
        assert len(rows) > 60
        assert [row for row in rows if len(row) != 3 or not all(cell.endswith(".") for cell in row[1:])] == []

    def test_no_configuration_is_read(self, tmp_path):
        done = jobqd("--config", str(tmp_path / "none.properties"), "--events")
        assert (done.returncode, done.stderr) == (0, "")
