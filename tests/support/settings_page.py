"""The tables of etc/README.md, for tests that compare the tables with the code and with the program.

    settings_page.py JOBQD      renews the part of the page printed by JOBQD --settings
"""
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "etc/README.md"
BEGIN = "<!-- settings: begin, printed by jobqd --settings -->\n"
END = "<!-- settings: end -->\n"
DEADLINE = 60  # seconds for a program to print the settings
SERVER_KINDS = ("storage.", "queue.", "limiter.", "filter.", "handler.", "webhook.", "launcher.")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def printed(jobqd):
    """Returns the tables printed by the program."""
    return subprocess.run([jobqd, "--settings"], stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True,
                          timeout=DEADLINE).stdout


def parts():
    """Returns the page before, between and after the two comments; the program prints the part between the comments."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    between, end, behind = rest.partition(END)
    assert begin and end and BEGIN not in rest and END not in behind, f"{PAGE} has {BEGIN} and {END} once each"
    return before, between, behind


def rows(text=None):
    """Returns a dict: setting -> type, default, bounds and meaning, from the page or a part of the page."""
    found = {}
    for line in (PAGE.read_text(encoding="utf-8") if text is None else text).splitlines():
        parts = cells(line)
        if line.startswith("| `") and len(parts) == 5:
            assert parts[0].strip("`") not in found, f"{parts[0]} is twice in {PAGE}"
            found[parts[0].strip("`")] = tuple(parts[1:])
    return found


def is_plugins(name):
    """Returns whether a plugin declares the setting, and not the server."""
    return name.startswith("lua.") or name.count(".") >= 2 and name.startswith(SERVER_KINDS)


def renew(jobqd):
    before, _, behind = parts()
    PAGE.write_text(before + BEGIN + printed(jobqd) + END + behind, encoding="utf-8")


if __name__ == "__main__":
    renew(*sys.argv[1:])
