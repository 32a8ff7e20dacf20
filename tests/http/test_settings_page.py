"""etc/README.md, "Settings": bounds as the program names them, settings of plugins as the plugins declare them."""
import re

import settings_page
from http_case import HttpTest
from jobq_server import jobqd

REFUSALS = {  # the message of `jobqd` about a wrong value, by the type of the setting
    "integer": "is not a whole number from {}", "duration": "is not a duration from {}, like",
    "size": "is not a size from {}, like", "flag": "is not {}", "choice": "is not one of {}",
}


def key_of(name):
    return name.replace("<operation>", "run").replace("<id>", "echo")


def refusal(kind, bounds):
    return REFUSALS[kind].format(bounds)


class SettingsPageTest(HttpTest):
    def check(self, file, *settings):
        return jobqd("--config", file, *(f"--set={setting}" for setting in settings), "--check")

    def test_bounds(self, own_server, subtests):
        """A value that is none is refused, and the refusal names the bounds of the page."""
        file = own_server().file
        for name, (kind, _, bounds, _) in settings_page.rows().items():
            if settings_page.is_plugins(name) or kind not in REFUSALS:
                continue
            with subtests.test(setting=name):
                done = self.check(file, f"{key_of(name)}=?")
                assert done.returncode == 1
                assert refusal(kind, bounds) in done.stderr

    def test_defaults_are_accepted(self, own_server):
        """The defaults of the page, all at once, are values."""
        settings = []
        for name, (kind, default, _, _) in settings_page.rows().items():
            if kind in REFUSALS and re.fullmatch(r"`[\w.]+`", default) and not default.endswith("workersMax`"):
                settings.append(f"{key_of(name)}={default.strip('`')}")
        assert len(settings) > 30
        done = self.check(own_server().file, *settings)
        assert done.returncode == 0, done.stderr

    def test_settings_of_plugins(self):
        """Name, type, default and bounds are those that plugins declare."""
        reply = self.server.request("GET", "/v1/plugins")
        assert reply.status == 200, reply.body
        declared = {}
        for plugin in reply.json():
            for entry in plugin["entries"]:
                for option in entry["options"]:
                    kind = option["type"].replace("path", "text")
                    declared[option["key"]] = (kind, option["default"] or "none", option["range"])
        page = {}
        for name, (kind, default, bounds, _) in settings_page.rows().items():
            if settings_page.is_plugins(name):
                page[name] = (kind.replace("path", "text"), default.strip("`"), bounds)
        assert page == declared
