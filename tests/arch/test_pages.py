"""Documents that repeat the code: the events of the log in etc/events.md, the tests of decisions in core/decisions."""
import pathlib
import re

import settings_page

ROOT = pathlib.Path(__file__).resolve().parents[2]


EVENTS = ROOT / "etc/events.md"
LEVELS = {"Errors": "error", "Warnings": "warning", "Information": "information", "Debug": "debug"}  # by heading
COMPOSED = {"storage.mysql.storage.binlog", "storage.mysql.storage.durability"}  # plugins/storage_mysql/connection/probe.cpp


def assert_none(faults):
    assert not faults, "\n".join(faults)


def event_rows():
    """Returns a pair for each event of the page: the table, such as `error` or `error of jobq-worker`, and the name of
    the event."""
    rows, table = [], ""
    for line in EVENTS.read_text().splitlines():
        if line.startswith("## "):
            level, _, program = line[3:].partition(" ")
            table = f"{LEVELS[level]} {program}".strip()
        elif line.startswith(("| `", "- `")):
            rows += [(table, name) for name in re.findall(r"`([^`]+)`", re.split(r" \| |: ", line)[0])]
    return rows


def events_of(text):
    """Yields the events of a source with a fixed name and level. The errors of a periodic service have the name of the
    service."""
    for level, name in re.findall(r'LogLevel::(\w+),\s*"([\w.-]+)"', text):
        yield name, level
    for name in re.findall(r'\w+_\("([\w-]+)", [\w.]*clock, [\w.]*log,', text):
        yield name, "error"
    for name in re.findall(r'\bwarn\(\w+, "([\w.]+)"', text):
        yield name, "warning"
    for name in re.findall(r'\bwarned\("(\w+)"', text):  # plugins/storage_mysql/connection/probe.cpp
        yield "storage." + name, "warning"


def written_events():
    """Returns the events of all sources, as pairs of a pattern and a level. The pattern matches the name of the event
    with the prefix of the plugin."""
    found = set()
    for path in (ROOT / "core").rglob("*.cpp"):
        found |= {(re.escape(name), level) for name, level in events_of(path.read_text())}
    for path in (ROOT / "plugins").rglob("*.cpp"):
        prefix = prefix_of(path)
        found |= {(prefix + re.escape(name), level) for name, level in events_of(path.read_text())}
    return found


def prefix_of(path):
    """Returns a pattern for the prefix that the host adds to the events of a plugin. The plugin lua has two kinds."""
    kind, _, name = path.relative_to(ROOT / "plugins").parts[0].partition("_")
    return rf"{kind}\.{name}\." if name else rf"(?:filter|handler)\.{kind}\."


def event_in_source(path, row):
    """Returns the name of the event in a source: without the prefix in a source of a plugin, the whole row
    otherwise."""
    return re.sub("^" + prefix_of(path), "", row) if path.is_relative_to(ROOT / "plugins") else row


class EventsTest:
    """etc/events.md has the rows of core/config/log_events.cpp (tests/http/test_events_page.py)."""

    def test_each_event_has_a_row(self):
        """Each event of the sources is in a row with the same level. An event of a plugin begins with kind and name of
        the plugin."""
        page = event_rows()
        assert len(page) > 90, "the page is not read as it is written"
        written = written_events()
        assert len(written) > 80, "the log is not written as it was"
        assert_none([f"etc/events.md does not have {name} with the level {level}" for name, level in sorted(written)
                     if not any(re.fullmatch(name, row) and level == title.split()[0] for title, row in page)])

    def test_each_row_is_an_event(self):
        """The sources write the event of each row, and no row is there twice."""
        page = event_rows()
        sources = {path: path.read_text() for folder in ("core", "plugins") for path in (ROOT / folder).rglob("*.cpp")
                   if path.name != "log_events.cpp"}
        assert_none([f"etc/events.md has {row}, which no source writes" for _, row in page
                     if not any(f'"{row}"' in text or f'"{event_in_source(path, row)}"' in text
                                for path, text in sources.items()) and row not in COMPOSED])
        assert len(page) == len(set(page)), "an event is in two rows of one table"

    def test_the_events_of_a_source(self):
        text = """log.write(LogLevel::error, "a.b", text); log_->write(jobq::LogLevel::debug,
            "c", text); , periodic_("d-e", deps.clock, deps.log, kPause, *this) {} warn(last_, "f.g", text); warned("h", text)"""
        assert set(events_of(text)) == {("a.b", "error"), ("c", "debug"), ("d-e", "error"), ("f.g", "warning"),
                                        ("storage.h", "warning")}


MOST_OF_A_HEADING = 20  # words
MOST_OF_A_BODY = 60  # words


def decisions_of(page):
    """Yields each decision of a page: the heading, and the lines up to the next heading."""
    for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        yield heading, re.split(r"^##? ", body, flags=re.MULTILINE)[0].strip().splitlines()


def faults_of(heading, lines):
    """Yields the faults in the form of a decision."""
    *body, last = lines or [""]
    words = len(" ".join(body).split())
    paths = re.findall(r"`([\w./-]+)`", last)
    if len(heading.split()) > MOST_OF_A_HEADING:
        yield f"the heading has more than {MOST_OF_A_HEADING} words"
    if words == 0:
        yield "the reason is missing"
    if words > MOST_OF_A_BODY:
        yield f"the text has {words} words, at most {MOST_OF_A_BODY}"
    if last != "Test: none" and not (last.startswith("Test: ") and paths):
        yield "the last line is `Test: ` with the paths of the tests in backquotes, or `Test: none`"
    for path in paths:
        if not (ROOT / path).exists():
            yield f"there is no {path}"


class FiguresTest:
    # A page, the row of a table with the figure, and the words of README.md around the figure.
    FIGURES = (("tests/fault/README.md", r"\| crash loop, 1,000 cycles \| (0 of [\d,]+) acknowledged jobs lost", "lost {} acknowledged jobs"),
               ("tests/bench/README.md", r"\| /run sqlite \| 64 \| ([\d,]+) \|", "{} jobs a second"),
               ("tests/bench/README.md", r"\| `/run` SQLite / beanstalkd `-f 0` put \| [^|]+\| ([\d.]+) \|", "{} times as many as by beanstalkd"))

    def test_the_figures_of_the_first_page_stand_in_tables(self):
        """The figures of README.md are equal to the figures of the newest tables."""
        readme = (ROOT / "README.md").read_text()
        text = " ".join(readme.split("## Two commands")[0].split())
        for page, row, words in self.FIGURES:
            found = re.search(row, (ROOT / page).read_text())
            assert found, f"{page} has no row like {row}"
            assert words.format(found[1]) in text, f"README.md does not say {words.format(found[1])!r}, as {page} does"
            text = text.replace(words.format(found[1]), "")
        assert re.findall(r"\b[\d,.]*\d{2}[\d,.]*\b", text.replace("1,000 times", "")) == [], "a figure without a table"

    def test_the_first_page_is_short(self):
        assert len((ROOT / "README.md").read_text().splitlines()) <= 75


class DecisionsTest:
    def test_form(self):
        """Each decision has a short heading, a reason in few words, and a last line with existing tests."""
        faults, counted = [], 0
        for page in sorted((ROOT / "core/decisions").glob("*.md")):
            decisions = list(decisions_of(page.read_text()))
            counted += len(decisions)
            if not decisions:
                faults.append(f"{page.name} has no decision: a decision begins with `### `")
            faults += [f"{page.name}: {heading[:60]}: {fault}" for heading, lines in decisions
                       for fault in faults_of(heading, lines)]
        assert_none(faults)
        assert counted >= 200, f"the pages have {counted} decisions: the form is read wrongly, or decisions were lost"

    def test_the_check_reads_a_good_decision(self):
        page = "# Decisions: x\n\n## Jobs\n\n### Jobs are stored\nA crash loses no job.\nTest: `tests/arch`\n\n## Next\ntext\n"
        assert list(decisions_of(page)) == [("Jobs are stored", ["A crash loses no job.", "Test: `tests/arch`"])]
        assert [fault for decision in decisions_of(page) for fault in faults_of(*decision)] == []
        assert list(faults_of("Jobs are stored", ["A crash loses no job.", "", "Test: none"])) == []

    def test_the_check_finds_each_fault(self):
        def faults(heading="Jobs are stored", body="A crash loses no job.", last="Test: none"):
            return " ".join(faults_of(heading, [body, last]))

        assert "the heading" in faults(heading="word " * 21)
        assert "the reason" in faults(body="")
        assert "61 words" in faults(body="word " * 61)
        assert "the last line" in faults(last="no test")
        assert "the last line" in faults(last="Test: the whole suite")
        assert "there is no tests/absent.py" in faults(last="Test: `tests/arch`, `tests/absent.py`")
        assert "the last line" in " ".join(faults_of("Jobs are stored", []))


class UnitTest:
    def test_the_unit_waits_for_a_stop(self):
        """The unit for systemd has a TimeoutStopSec beyond the rule of the page with the defaults of the settings, and
        leaves the end of jobs to the server."""
        page = (ROOT / "etc/operation.md").read_text()
        unit = (ROOT / "etc/jobqd.service").read_text()
        settings = settings_page.PAGE.read_text()

        def seconds(pattern, text=page):
            return int(re.search(pattern, text, re.DOTALL)[1])

        rule = (seconds(r"`server\.drain` \| duration \| `(\d+)s`", settings) +
                seconds(r"`endpoint\.<id>\.stopGrace` \| duration \| `(\d+)s`", settings) +
                seconds(r"`server\.drain`, the longest `stopGrace` and (\d+) s\s+together"))
        assert seconds(r"TimeoutStopSec=(\d+)", unit) > rule
        assert {"KillMode=mixed", "StartLimitIntervalSec=0", "RestartSec=2"} <= set(unit.splitlines())
