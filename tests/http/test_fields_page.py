"""core/http/API.md: the tables of fields are the tables that the program prints."""
import os

import fields_page
from jobq_server import JOBQD, ROOT, jobqd


class PrintedFieldsTest:
    def test_the_page_has_the_tables_of_the_program(self, subtests):
        """core/decisions/http.md: `jobqd --fields` prints the tables of the page, byte by byte."""
        page, program = fields_page.on_page(), fields_page.printed(JOBQD)
        assert page.keys() == program.keys()
        for name, table in program.items():
            with subtests.test(name):
                renewal = f"python3 tests/support/fields_page.py {os.path.relpath(JOBQD, ROOT)}"
                assert page[name] == table, f"core/http/API.md has another table of {name}; renew it:\n{renewal}"

    def test_no_configuration_is_read(self, tmp_path):
        """core/decisions/http.md: `--fields` needs no file, also beside other options."""
        done = jobqd("--config", str(tmp_path / "none.properties"), "--fields")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("printed by jobqd --fields") == len(fields_page.printed(JOBQD))
