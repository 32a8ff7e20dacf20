"""Documents that repeat the code: etc/README.md has its events, core/decisions the test of each row."""
import pathlib
import re

import settings_page

ROOT = pathlib.Path(__file__).resolve().parents[2]


def assert_none(faults):
    assert not faults, "\n".join(faults)


class EventsTest:
    def test_events(self):
        """Each event of the levels warning and error is a row of the page."""
        page = settings_page.PAGE.read_text()
        events = set()
        for folder in ("core", "plugins"):
            for path in (ROOT / folder).rglob("*.cpp"):
                text = path.read_text()
                events |= set(re.findall(r'LogLevel::(?:warning|error),\s*"([\w.]+)"', text))
                events |= set(re.findall(r'complain\(\w+, "([\w.]+)"', text))
        assert len(events) > 20, "the log is not written as it was"
        assert_none([f"etc/README.md does not say what {event} means" for event in sorted(events)
                     if not re.search(rf"`[\w.]*\b{re.escape(event)}`", page)])


class DecisionsTest:
    def test_rows(self):
        """Each row has a decision, a reason and a test; what is named as a path exists."""
        faults, counted = [], 0
        for page in sorted((ROOT / "core/decisions").glob("*.md")):
            for line in page.read_text().splitlines():
                if not line.startswith("| ") or line.startswith("| Decision |"):
                    continue
                counted += 1
                row = line[2:-2].split(" | ")
                name = f"{page.name}: {row[0][:60]}"
                paths = re.findall(r"`([\w./-]+)`", row[-1])
                if len(row) != 3:
                    faults.append(f"{name}: a row has a decision, a reason and a test")
                elif not paths and row[2] != "no test":
                    faults.append(f"{name}: name the test by its path, or write: no test")
                faults += [f"{name}: there is no {path}" for path in paths if not (ROOT / path).exists()]
        assert counted > 200, "the pages are not read as they are written"
        assert_none(faults)


class UnitTest:
    def test_the_unit_waits_for_a_stop(self):
        """The unit for systemd has a TimeoutStopSec beyond the rule of the page with the defaults of the settings, and lets the
        server end its jobs itself."""
        page = settings_page.PAGE.read_text()

        def seconds(pattern):
            return int(re.search(pattern, page, re.DOTALL)[1])

        rule = (seconds(r"`server\.drain` \| duration \| `(\d+)s`") + seconds(r"`endpoint\.<id>\.stopGrace` \| duration \| `(\d+)s`") +
                seconds(r"`server\.drain`, the longest `stopGrace` and (\d+) s\s+together"))
        assert seconds(r"TimeoutStopSec=(\d+)") > rule
        unit = re.search(r"```ini\n(.*?)```", page, re.DOTALL)[1]
        assert {"KillMode=mixed", "StartLimitIntervalSec=0", "RestartSec=2"} <= set(unit.splitlines())
