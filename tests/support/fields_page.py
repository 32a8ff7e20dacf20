"""The tables of fields in core/http/API.md, for tests that compare the tables with the program.

    fields_page.py JOBQD      renews the tables printed by JOBQD --fields
"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "core/http/API.md"
TABLE = re.compile(r"<!-- (\w+): printed by jobqd --fields -->\n(?:\|.*\n)*")
DEADLINE = 60  # seconds for a program to print the tables


def printed(jobqd):
    """Returns a dict: name of the table -> comment and table, as the program prints them."""
    text = subprocess.run([jobqd, "--fields"], stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True,
                          timeout=DEADLINE).stdout
    return {table[1]: table[0] for table in TABLE.finditer(text)}


def on_page():
    """Returns the same dict for the page."""
    return {table[1]: table[0] for table in TABLE.finditer(PAGE.read_text(encoding="utf-8"))}


def renew(jobqd):
    tables = printed(jobqd)
    page = TABLE.sub(lambda table: tables[table[1]], PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    renew(*sys.argv[1:])
