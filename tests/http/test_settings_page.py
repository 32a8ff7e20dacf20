"""etc/README.md, "Settings": the tables that the program prints, bounds as refusals name them, settings of plugins as the
plugins declare them."""
import difflib
import os
import re

import settings_page
from http_case import HttpTest
from jobq_server import JOBQD, ROOT, jobqd

REFUSALS = {  # the message of `jobqd` about a wrong value, by the type of the setting
    "integer": "is not a whole number from {}", "duration": "is not a duration from {}, like",
    "size": "is not a size from {}, like", "flag": "is not {}", "choice": "is not one of {}", "text": "must have {}",
}
NO_VALUE = {"text": "x" * 1000}  # for a text with bounds; for all other types "?"


def key_of(name):
    return name.replace("<operation>", "run").replace("<id>", "echo")


def refusal(kind, bounds):
    return REFUSALS[kind].format(bounds)


class PrintedSettingsTest:
    def test_the_page_has_the_output_of_the_program(self):
        """core/decisions/operations.md: `jobqd --settings` prints the tables of the page, byte by byte."""
        page, program = settings_page.parts()[1], settings_page.printed(JOBQD)
        same = page == program  # in a variable, because pytest would explain the comparison at length
        lines = difflib.unified_diff(page.splitlines(True), program.splitlines(True), "etc/README.md", "jobqd", n=0)
        renewal = f"python3 tests/support/settings_page.py {os.path.relpath(JOBQD, ROOT)}"
        assert same, f"etc/README.md is not what jobqd --settings prints; renew it:\n{renewal}\n{''.join(lines)}"

    def test_the_rest_of_the_page_has_settings_of_plugins(self):
        before, between, behind = settings_page.parts()
        assert not settings_page.rows(before)
        assert [name for name in settings_page.rows(between) if settings_page.is_plugins(name)] == []
        assert [name for name in settings_page.rows(behind) if not settings_page.is_plugins(name)] == []
        assert len(settings_page.rows(between)) > 40

    def test_no_configuration_is_read(self, tmp_path):
        """core/decisions/operations.md: `--settings` needs no file, also beside other options."""
        done = jobqd("--config", str(tmp_path / "none.properties"), "--settings")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == settings_page.printed(JOBQD)


class SettingsPageTest(HttpTest):
    def check(self, file, *settings):
        return jobqd("--config", file, *(f"--set={setting}" for setting in settings), "--check")

    def test_bounds(self, own_server, subtests):
        """A value that is none is refused, and the refusal names the bounds of the page."""
        file = own_server().file
        for name, (kind, _, bounds, _) in settings_page.rows().items():
            if settings_page.is_plugins(name) or kind not in REFUSALS or not bounds:
                continue
            with subtests.test(setting=name):
                done = self.check(file, f"{key_of(name)}={NO_VALUE.get(kind, '?')}")
                assert done.returncode == 1
                assert refusal(kind, bounds) in done.stderr

    def test_defaults_are_accepted(self, own_server):
        """The defaults of the page, all at once, are values."""
        settings = []
        rows = settings_page.rows()
        for name, (kind, default, _, _) in rows.items():
            is_setting = default.strip("`") in rows or default.endswith("workersMax`")
            if kind in REFUSALS and kind != "text" and re.fullmatch(r"`[\w.]+`", default) and not is_setting:
                settings.append(f"{key_of(name)}={default.strip('`')}")
        assert len(settings) > 30
        done = self.check(own_server().file, *settings)
        assert done.returncode == 0, done.stderr

    def test_settings_of_plugins(self):
        """Name, type, default and bounds are those that plugins declare."""
        answer = self.server.request("GET", "/v1/plugins")
        assert answer.status == 200, answer.body
        declared = {}
        for plugin in answer.json():
            for entry in plugin["entries"]:
                for option in entry["options"]:
                    kind = option["type"].replace("path", "text")
                    declared[option["key"]] = (kind, option["default"] or "none", option["range"])
        page = {}
        for name, (kind, default, bounds, _) in settings_page.rows().items():
            if settings_page.is_plugins(name):
                page[name] = (kind.replace("path", "text"), default.strip("`"), bounds)
        assert page == declared
