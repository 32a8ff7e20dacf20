"""clang's view of every source: its warnings, and its analysis of which mutex guards what (-Wthread-safety).

    build/venv/bin/python tests/arch/thread_safety.py

The build folder build/clang is configured for the commands of the compiler; nothing in it is built, because the analysis
needs no code. Two sources are looked at at a time. The exit code is 1 when clang has a complaint.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "clang"
AT_ONCE = 2


def configure():
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", FOLDER, "-DCMAKE_CXX_COMPILER=clang++-14",
                    "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=", "-DCMAKE_UNITY_BUILD=ON",
                    "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DJOBQ_WERROR=ON"], check=True, stdout=subprocess.DEVNULL)
    # These are made while the project is built, and some sources include them.
    subprocess.run(["cmake", "--build", FOLDER, "--target", "generated_sources"], check=True, stdout=subprocess.DEVNULL)


def complaints(entry):
    words = [word for word in shlex.split(entry["command"]) if not word.startswith("CCACHE_")]
    compiler = next(i for i, word in enumerate(words) if os.path.basename(word).startswith("clang"))
    done = subprocess.run([*words[compiler:], "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True,
                          errors="replace", check=False)
    return done.stderr if done.returncode or "warning:" in done.stderr else ""


def main():
    configure()
    entries = json.loads((FOLDER / "compile_commands.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = [text for text in pool.map(complaints, entries) if text]
    print("\n".join(found))
    print(f"{len(entries)} translation units, {len(found)} with complaints")
    return 1 if found or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
