"""The tables of etc/README.md, read for tests that compare them with the code and with the program."""
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "etc/README.md"
SERVER_KINDS = ("storage.", "queue.", "limiter.", "filter.", "handler.", "webhook.")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows():
    """Setting -> its type, default, bounds and meaning, as the page has them."""
    found = {}
    for line in PAGE.read_text().splitlines():
        parts = cells(line)
        if line.startswith("| `") and len(parts) == 5:
            assert parts[0].strip("`") not in found, f"{parts[0]} is twice in {PAGE}"
            found[parts[0].strip("`")] = tuple(parts[1:])
    return found


def operations():
    """Operation of the rate limits -> its requests and its calls at once."""
    found = {}
    for line in PAGE.read_text().splitlines():
        parts = cells(line)
        if len(parts) == 4 and re.match(r"\| `\w+` \| \d+ \| \d+ \|", line):
            found[parts[0].strip("`")] = (int(parts[1]), int(parts[2]))
    return found


def is_plugins(name):
    """Returns whether a plugin declares the setting, and not the server."""
    return name.startswith("lua.") or name.count(".") >= 2 and name.startswith(SERVER_KINDS)
