#!/usr/bin/env python3
"""Compares the headers with the recorded ABI, and names the version number to raise for a change.

    python3 sdk/abi/check.py            compare with sdk/abi/v<major>.<minor>.txt, and each minor with the one before it
    python3 sdk/abi/check.py --write    write the file of the version that the headers name

The script compiles the headers once. Interfaces (the order and the signatures of their virtuals) and the types of
fields come from the debugging information; sizes, offsets and values come from the manifest of a plugin
(sdk/include/jobq/abi_layout.h). A description is a list of blocks, each with a title and lines. The rule of
sdk/include/jobq/abi.h for a later minor means here: the lines of each older block are the first lines of the newer
block. The block of a closed type ends with the line "end", so the block cannot grow.

Exit codes: 0 equal, 1 different, 77 compiler other than GCC for x86-64, because the files exist for GCC on x86-64 only.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from dwarf import Types  # noqa: E402

PROBE = """
#include "jobq/abi.h"
namespace { constexpr jobq::abi::Entry kEntries[] = {%s}; }
JOBQ_PLUGIN(kEntries)
"""
KINDS = {"storage": ("storage", "Storage"), "queuePolicy": ("queue", "QueuePolicy"),
         "rateLimiter": ("limiter", "RateLimiter"), "admissionFilter": ("filter", "AdmissionFilterFactory"),
         "handler": ("handler", "HandlerFactory"), "webhookTransport": ("webhook", "WebhookTransport"),
         "workerLauncher": ("launcher", "WorkerLauncher")}
ROOTS = {"plugin": ["Plugin", "PluginEnv", "Log", "Error"], **{group: [root] for group, root in KINDS.values()}}
UNFIT = 77
LONGEST = 600  # seconds for a program: bounds a hang, and judges no pace


def compile_probe(sdk):
    """Compiles a library with a plugin of every kind. Returns the debugging information and the manifest."""
    with tempfile.TemporaryDirectory(prefix="jobq-abi-") as folder:
        return probe_in(pathlib.Path(folder), sdk)


def probe_in(folder, sdk):
    compiler = os.environ.get("CXX", "g++").split()
    entries = ", ".join(f'{{jobq::PluginKind::{kind}, "x", "1", nullptr, nullptr, nullptr}}' for kind in KINDS)
    (folder / "probe.cpp").write_text(PROBE % entries)
    subprocess.run([*compiler, "-std=c++20", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types",
                    "-femit-class-debug-always", "-c", f"-I{sdk / 'include'}", "probe.cpp", "-o", "probe.o"],
                   cwd=folder, check=True, timeout=LONGEST)
    subprocess.run(["objcopy", "-O", "binary", "--only-section=jobq_abi", "--set-section-flags", "jobq_abi=alloc",
                    "probe.o", "manifest"], cwd=folder, check=True, timeout=LONGEST)
    dump = subprocess.run(["readelf", "--debug-dump=info", "probe.o"], cwd=folder, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=LONGEST).stdout
    return Types(dump), (folder / "manifest").read_text().rstrip("\0")


def layout_lines(manifest):
    """Returns the manifest's `layout.` lines as {(group, type): text}."""
    found = re.findall(r"^layout\.(\w+)\.([\w:]+)=(.*)$", manifest, re.M)
    return {(group, name): text for group, name, text in found}


def describe_interface(types, name):
    """Returns title and lines of a block, with a line for each virtual: slot in the table and signature."""
    bases = ", ".join(types.bases(name))
    return f"interface {name}" + (f" : {bases}" if bases else ""), \
        [f"{slot} {signature}" for slot, signature in types.virtuals(name)]


def describe_type(types, group, name, text):
    """Returns title and lines of a block: the manifest's description, with a line for each field, including the
    type."""
    size, body = re.fullmatch(r"(?:(\d+/\d+) )?(.*)", text).groups()
    closed = body.endswith(";")
    parts = [part.strip() for part in body.rstrip(";").split(",") if part.strip()]
    lines = []
    for part in parts:
        field = re.fullmatch(r"(\w+)@\d+\+\d+", part)
        lines.append(part + (" " + types.field_type(name, field[1]) if field else ""))
    return f"type {group}.{name}" + (f" {size}" if size else ""), lines + (["end"] if closed else [])


def describe(types, manifest):
    """Returns all blocks as {title: lines}."""
    return dict([describe_interface(types, name) for name in sorted(types.interfaces())] +
                [describe_type(types, *key, text) for key, text in layout_lines(manifest).items()])


def incomplete(types, manifest):
    """Returns the types and fields that both sides access but abi_layout.h does not list, a sentence each."""
    lines = layout_lines(manifest)
    faults = []
    for group, roots in ROOTS.items():
        for name in sorted(types.reachable(roots)):
            if types.is_lent_interface(name) or (group, name) in lines or ("plugin", name) in lines:
                continue
            faults.append(f"abi_layout.h does not describe {name} for the group {group}")
    for (group, name), text in lines.items():
        listed = re.findall(r"(\w+)[@:]\d", text)
        there = types.members(name)
        if there is not None and listed != there:
            faults.append(f"abi_layout.h lists for {group}.{name} {listed}, the header has {there}")
    return faults


def read_blocks(path):
    blocks = {}
    for line in path.read_text().splitlines():
        if line.startswith("  "):
            blocks[title].append(line[2:])
        elif line and not line.startswith("#"):
            title = line
            blocks[title] = []
    return blocks


def write_blocks(path, version, blocks):
    text = f"# The plugin ABI {version} of jobq (gcc, x86-64), written by sdk/abi/check.py --write.\n"
    for title, lines in blocks.items():
        text += title + "\n" + "".join(f"  {line}\n" for line in lines)
    path.write_text(text)


def breaks(older, newer):
    """Returns the differences of `newer` from `older` except additions, a sentence each."""
    faults = []
    for title, lines in older.items():
        if title not in newer:
            faults.append(f"{title} is not there any more, or has another size or base")
        elif newer[title][:len(lines)] != lines:
            pairs = zip(lines, newer[title] + ["nothing"] * len(lines))
            was, now = next(pair for pair in pairs if pair[0] != pair[1])
            faults.append(f"{title}: \"{was}\" has become \"{now}\"")
    return faults


def unguarded(types, first):
    """Returns the virtuals of plugins' interfaces that are newer than the blocks `first` and not private, a sentence each."""
    faults = []
    for name in sorted(types.interfaces()):
        title, lines = describe_interface(types, name)
        if title not in first or not types.is_versioned(name):
            continue
        exposed = types.open_slots(name)
        faults += [f"{title}: \"{line}\" is new and not private: an older plugin does not have this virtual. Call it in a "
                   "public function that checks abiMinor() first (sdk/include/jobq/abi.h)"
                   for line in lines[len(first[title]):] if int(line.split()[0]) in exposed]
    return faults


BEFORE = " Before the first release, sdk/abi/check.py --write alone is right."
MAJOR = ("An old plugin does not survive this: raise kMajor (include/jobq/abi_version.h) and the symbol "
         "jobq_plugin_v<major> (abi.h), set kMinor to 0, and run sdk/abi/check.py --write." + BEFORE)
MINOR = ("Old plugins survive this addition: raise kMinor to {} (include/jobq/abi_version.h), let each new virtual ask for "
         "it (abi.h), and run sdk/abi/check.py --write." + BEFORE)


def check(sdk, blocks, major, minor):
    files = [sdk / "abi" / f"v{major}.{number}.txt" for number in range(minor + 1)]
    missing = [path.name for path in files if not path.exists()]
    if missing:
        return [f"sdk/abi has no {name}: run sdk/abi/check.py --write with the headers of that version"
                for name in missing]
    versions = [read_blocks(path) for path in files]
    for number in range(minor):
        broken = breaks(versions[number], versions[number + 1])
        if broken:
            return [f"v{major}.{number + 1} is not v{major}.{number} with additions.", *broken, MAJOR]
    if blocks == versions[minor]:
        return []
    broken = breaks(versions[minor], blocks)
    return [f"The headers differ from sdk/abi/{files[minor].name}.", *broken, MAJOR if broken else MINOR.format(minor + 1)]


def unfit():
    """Returns the reason why the compiler's description cannot be compared, or None if the compiler is fit."""
    compiler = os.environ.get("CXX", "g++").split()
    macros = subprocess.run([*compiler, "-dM", "-E", "-x", "c++", "/dev/null"], check=True, stdout=subprocess.PIPE,
                            text=True, timeout=LONGEST).stdout
    if "__clang__" in macros or "__x86_64__" not in macros:
        return f"{compiler[0]} is not a GCC for x86-64, and the files of sdk/abi are written for that one"
    return None


def version_of(sdk):
    text = (sdk / "include/jobq/abi_version.h").read_text()
    return tuple(int(re.search(rf"{name} = (\d+);", text)[1]) for name in ("kMajor", "kMinor"))


def run(sdk, write=False):
    """Returns the faults of the sdk, a sentence each."""
    major, minor = version_of(sdk)
    types, manifest = compile_probe(sdk.resolve())
    faults = incomplete(types, manifest)
    if faults:
        return faults
    blocks = describe(types, manifest)
    if write:
        write_blocks(sdk / "abi" / f"v{major}.{minor}.txt", f"{major}.{minor}", blocks)
    return check(sdk, blocks, major, minor) or unguarded(types, read_blocks(sdk / "abi" / f"v{major}.0.txt"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if reason := unfit():
        print(f"skipped: {reason}")
        return UNFIT
    sdk = pathlib.Path(__file__).resolve().parents[1]
    faults = run(sdk, options.write)
    print("\n".join(faults) or "the headers are the plugin ABI {}.{}".format(*version_of(sdk)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
