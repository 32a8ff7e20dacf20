#!/usr/bin/env python3
"""Compiles each header of core, plugins, sdk and tests alone, two at a time, with the build's options for a source file
near the header. Usage: headers_alone.py <build folder> [header ...]; the build folder has been configured without unity
builds, and needs no built targets."""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("core", "plugins", "sdk/include", "sdk/testkit", "tests")
AT_ONCE = 2
LONGEST_COMPILATION = 300  # seconds: bounds a hang, and judges no pace


def options(entry):
    """The compiler and the options for a source file, without input, output and precompiled headers."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-o", "-c", "-include", "-MF", "-MT", "-MQ"):
            next(words)
        elif word not in ("-MD", "-MMD", "-Winvalid-pch"):
            kept.append(word)
    return kept


@functools.cache
def included(source):
    """The names, without folders, of the headers included by a source file."""
    return frozenset(re.findall(r'^#include "(?:.*/)?([^"/]+)"', source.read_text(), re.M))


def nearest(header, entries):
    """Returns the source file with options suited to a header: the header's own source, else a source including the
    header, else a source of a folder near the header."""
    def distance(entry):
        source = pathlib.Path(entry["file"])
        shared = len(pathlib.Path(os.path.commonpath([header, source])).parts)
        return source.with_suffix("") != header.with_suffix(""), header.name not in included(source), -shared
    return min(entries, key=distance)


def compile_alone(header, entry):
    """The compiler's complaints about a source file with two includes of the header and no other line."""
    for_tests = any(header.is_relative_to(ROOT / folder) for folder in ("tests", "sdk/testkit"))
    folders = [f"-I{ROOT}", f"-I{ROOT}/sdk"] if for_tests else []  # the source file may be of a different program
    done = subprocess.run([*options(entry), *folders, "-fsyntax-only", "-x", "c++", "-"], cwd=entry["directory"],
                          text=True, input=f'#include "{header}"\n' * 2, capture_output=True, check=False,
                          timeout=LONGEST_COMPILATION)
    return done.stderr if done.returncode else ""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    commands = pathlib.Path(sys.argv[1]) / "compile_commands.json"
    entries = [entry for entry in json.loads(commands.read_text())
               if entry["file"].startswith(f"{ROOT}/") and pathlib.Path(entry["file"]).is_file()]
    if any("/Unity/" in entry["file"] for entry in entries):
        sys.exit(f"{commands} is of a unity build: configure a folder with -DCMAKE_UNITY_BUILD=OFF")
    headers = [pathlib.Path(header).resolve() for header in sys.argv[2:]] or [
        header for folder in FOLDERS for header in sorted((ROOT / folder).rglob("*.h"))]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, nearest(header, entries)), headers))
    for header, complaint in zip(headers, complaints):
        if complaint:
            print(f"{header.relative_to(ROOT)} does not compile alone:\n{complaint}")
    failed = sum(map(bool, complaints))
    print(f"{len(headers) - failed} headers compile alone, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
