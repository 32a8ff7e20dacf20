"""Folds a record of perf: a .folded file with a line for each stack, and a .txt with the functions by share."""

import collections
import subprocess

TOP = 60


def stacks(data):
    """(frames from the outermost to the innermost, thread first) of each sample."""
    script = subprocess.Popen(["perf", "script", "--no-inline", "-F", "comm,ip,sym", "-i", data], text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    frames, thread = [], None
    for line in script.stdout:
        line = line.rstrip("\n")
        if not line:
            if thread:
                yield [thread, *reversed(frames)]
            frames, thread = [], None
        elif not line[0].isspace():
            thread = line.strip()
        else:
            frames.append(line.split(None, 1)[1].replace(";", ":") if len(line.split(None, 1)) > 1 else "[unknown]")
    if thread:
        yield [thread, *reversed(frames)]
    script.wait(60)


def write(data):
    folded = collections.Counter()
    own, inclusive = collections.Counter(), collections.Counter()
    for stack in stacks(data):
        folded[";".join(stack)] += 1
        own[stack[-1]] += 1
        inclusive.update(set(stack[1:]))
    total = sum(folded.values()) or 1
    base = data.removesuffix(".data")
    with open(base + ".folded", "w", encoding="utf-8") as file:
        file.writelines(f"{stack} {count}\n" for stack, count in folded.most_common())
    with open(base + ".txt", "w", encoding="utf-8") as file:
        for title, counter in (("itself", own), ("with what it calls", inclusive)):
            file.write(f"share of {total} samples, {title}\n")
            file.writelines(f"{count / total:7.2%}  {name}\n" for name, count in counter.most_common(TOP))
            file.write("\n")
    print(f"{total} samples: {base}.txt, and {base}.folded for a flame graph")
