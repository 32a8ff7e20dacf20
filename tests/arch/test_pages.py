"""Documents that repeat the code: etc/README.md has its settings and events, core/decisions the test of each row."""
import pathlib
import re

import settings_page

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "core/config/config.cpp"
ENDPOINT = ROOT / "core/config/endpoint_spec.cpp"
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "B": 1, "KB": 1 << 10, "MB": 1 << 20,
         "GB": 1 << 30}
FIELDS = {  # a setting, and the member of the structs of config.h that has its default, where the names differ
    "endpoint.<id>.scalerType": None, "endpoint.<id>.scalerValue": None, "endpoint.<id>.isolation": None,
    "data.dir": "dataDir", "queue.policy": "queuePolicy", "net.allowPrivate": "allowPrivateAddresses",
    "limits.enabled": "enabled", "limits.queue": "queue", "log.level": "logLevel", "log.format": "logFormat",
    "webhook.transports": "webhookTransports", "limits.<operation>.window": None,
    "endpoint.<id>.queuePolicy": None,  # of the server unless set
}


def table(name):
    """The first words of the rows of a table in config.cpp."""
    text = CONFIG.read_text()
    body = re.search(rf"{name}\[\] = \{{\n(.*?)\n\}};", text, re.S)[1]
    return re.findall(r'^    \{"([\w.]+)",', body, re.M)


def endpoint_settings():
    """The names that rows of the table in endpoint_spec.cpp have in the file."""
    return re.findall(r'\.inFile\("(\w+)"', ENDPOINT.read_text())


def base(text):
    """A value of the page as the structs have it: milliseconds, bytes, words."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d|B|KB|MB|GB)?", text)
    return str(int(match[1]) * UNITS[match[2] or "B"]) if match else text


def member_default(text, member):
    """Returns the initial value of a member in the same form; None without an initial value."""
    match = re.search(rf"\b{member}(?: = |\{{)([^;]*?)\}}?;", text)
    if not match:
        return None
    value = match[1].replace("'", "").strip('"')
    shift = re.fullmatch(r"(\d+)UL << (\d+)", value)
    return str(int(shift[1]) << int(shift[2])) if shift else value.split("::")[-1]


def assert_none(faults):
    assert not faults, "\n".join(faults)


class SettingsPageTest:
    def test_names(self):
        """Each setting in the tables of core/config is a row of the page, and the page names no other setting."""
        known = set(table("kSettings"))
        known |= {f"limits.<operation>.{row}" for row in table("kLimitRows")}
        known |= {f"endpoint.<id>.{row}" for row in endpoint_settings()} | {"endpoint.<id>.env.NAME"}
        named = {name for name in settings_page.rows() if not settings_page.is_plugins(name)}
        assert len(known) > 40, "config.cpp is not read as it is written"
        assert_none([f"etc/README.md lacks {name}" for name in sorted(known - named)] +
                    [f"etc/README.md names {name}, which the code does not" for name in sorted(named - known)])

    def test_defaults(self):
        """A default of the page is the one of the structs."""
        headers = ("config.h", "server_config.h", "endpoint_spec.h", "limits.h")
        structs = "".join((ROOT / "core/config" / name).read_text() for name in headers)
        faults, compared = [], 0
        for name, (_, default, _, _) in settings_page.rows().items():
            member = FIELDS.get(name, name.split(".")[-1])
            value = re.fullmatch(r"`([^`]+)`", default)
            there = member_default(structs, member) if member else None
            if settings_page.is_plugins(name) or not value or there is None:
                continue
            compared += 1
            if base(value[1]) != there:
                faults.append(f"{name}: etc/README.md says {value[1]}, the code {there}")
        assert compared > 20, "config.h is not read as it is written"
        assert_none(faults)

    def test_limits(self):
        """The table of operations is the one of the code."""
        header = (ROOT / "core/config/limits.h").read_text()
        names = re.search(r"kOperationNames\{(.*?)\}", header, re.S)[1]
        source = next((ROOT / "core").rglob("rate_limits.cpp")).read_text()
        numbers = re.findall(r"\{(\d+), (\d+)\},\s*// (\w+)", source)
        assert [row[2] for row in numbers] == re.findall(r'"(\w+)"', names)
        code = {name: (int(requests), int(at_once)) for requests, at_once, name in numbers}
        assert code == settings_page.operations()

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
