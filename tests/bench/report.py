"""The table, the JSON file and the chart of a bench run."""

import datetime
import json
import os
import sys

from machine import DISTURBED, machine
from servers import installed

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def goals(m):
    """(work, goal, measured, met) of the table of goals in tests/bench/README.md, as far as the run measured the
    works."""
    def rate(row, connections):
        return m.get((row, connections), {}).get("rate")

    rows = []

    def ratio(work, goal, a, b, program=None):
        if program and not b:
            missing = "not measured" if installed(program) else f"{program} is not installed"
            rows.append((work, f"≥ {goal:g}", missing, None))
        elif a and b:
            rows.append((work, f"≥ {goal:g}", f"{a / b:.2f}", a / b >= goal))
        else:
            rows.append((work, f"≥ {goal:g}", "not measured", None))

    bare = rate("bare", 64)
    ratio("`/run` memory, 64 connections / bare server", 1.0, rate("/run memory", 64), bare)
    ratio("`/run` SQLite, 64 connections / bare server", 0.65, rate("/run sqlite", 64), bare)
    ratio("`/run` SQLite / beanstalkd `-f 0` put", 2.5, rate("/run sqlite", 64), rate("beanstalkd put -f 0", 64),
          "beanstalkd")
    ratio("finished jobs SQLite / bare server", 0.45, rate("finished sqlite", 64), bare)
    ratio("finished jobs SQLite / BullMQ, Redis fsync always", 1.5, rate("finished sqlite", 64),
          rate("BullMQ, Redis fsync always", 64), "redis-server")
    own, base = m[("/runsync memory", 1)]["p50"], m[("bare", 1)]["p50"]
    rows.append(("`/runsync` memory, 1 caller: p50 / bare server's", "≤ 3", f"{own / base:.2f}", own <= 3 * base))
    ratio("`/runsync` memory, 32 callers / gearmand foreground", 1.0, rate("/runsync memory", 32),
          rate("gearmand foreground", 32), "gearmand")
    ratio("`/runsync` SQLite, 32 callers / gearmand foreground", 0.6, rate("/runsync sqlite", 32),
          rate("gearmand foreground", 32), "gearmand")
    if ("fdatasync 4 KB", 1) in m and ("/runsync sqlite", 1) in m:
        own, sync = m[("/runsync sqlite", 1)]["p50"], m[("fdatasync 4 KB", 1)]["p50"]
        rows.append(("`/runsync` SQLite, 1 caller: p50 / one fdatasync of 4 KB", "≤ 1.6", f"{own / sync:.2f}",
                     own <= 1.6 * sync))
    judged = m[("20 MB judged memory", 1)]["p50"] / 1000
    rows.append(("a 20 MB body, received and judged", "≤ 40 ms", f"{judged:.0f} ms", judged <= 40))
    for storage in ("memory", "sqlite"):
        copies = m[(f"20 MB echoed {storage}", 1)]["copies"]
        rows.append((f"whole copies of a 20 MB body that the server's growth holds until it is in line, {storage}", "≤ 2",
                     f"{int(copies)} (growth / body {copies:.2f})", int(copies) <= 2))
    refused = rate("429", 64)
    rows.append(("a 429, 64 connections: time a reply / bare server's", "≤ 1.1", f"{bare / refused:.2f}",
                 bare <= 1.1 * refused))
    if ("million", 0) in m:
        million = m[("million", 0)]
        rows.append(("1 M jobs queued, SQLite: restart to ready", "≤ 10 s", f"{million['ready']:.2f} s",
                     million["ready"] <= 10))
        rows.append(("1 M jobs queued, SQLite: memory a job", "≤ 600 bytes", f"{million['bytes']:.0f} bytes",
                     million["bytes"] <= 600))
        flat = million["deep"] / million["shallow"]
        rows.append((f"finished jobs while 900,000 wait ({million['deep']:,.0f}/s) / while 200,000 wait", "≥ 0.9",
                     f"{flat:.2f}", flat >= 0.9))
    else:
        rows.append(("1 M jobs queued, SQLite", "", "only with --million", None))
    return rows


def table(medians):
    lines = ["| work | connections | per second | of the bare server | p50 µs | p99 µs |", "|---|---:|---:|---:|---:|---:|"]
    for (row, connections), m in medians.items():
        if row == "million":
            continue
        bare = medians.get(("bare", connections), {}).get("rate")
        share = f"{m['rate'] / bare:.2f}" if bare and not row.startswith("20 MB") else ""
        rate = f"{m['rate']:,.0f}" if m["rate"] > 100 else f"{m['rate']:.1f}"
        lines.append(f"| {row} | {connections} | {rate} | {share} | "
                     f"{m['p50']:.0f} | {m['p99']:.0f} |" if "p50" in m else
                     f"| {row} | {connections} | {rate} | {share} | | |")
    lines += ["", "| goal | wanted | measured | |", "|---|---|---|---|"]
    for work, goal, measured, met in goals(medians):
        lines.append(f"| {work} | {goal} | {measured} | {'' if met is None else 'met' if met else '**missed**'} |")
    return "\n".join(lines) + "\n"


COLOURS = {"bare": "#888888", "/run memory": "#2b6cb0", "/run sqlite": "#63a4e0", "/runsync memory": "#2f855a",
           "/runsync sqlite": "#7cc49a", "/status memory": "#b7791f", "/status sqlite": "#e6b450"}


def chart(medians):
    """Requests a second over the number of connections, a line for each row."""
    width, height, left, top, right, bottom = 860, 440, 80, 40, 190, 50
    counts = sorted({c for row, c in medians if row in COLOURS})
    most = max(m["rate"] for (row, _), m in medians.items() if row in COLOURS) * 1.08
    x = {c: left + i * (width - left - right) / max(1, len(counts) - 1) for i, c in enumerate(counts)}

    def y(rate):
        return height - bottom - rate / most * (height - top - bottom)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>',
             f'<text x="{left}" y="22" font-size="15">Requests a second by connections</text>']
    step = 10 ** (len(str(int(most))) - 1)
    step = step if most / step > 4 else step // 2
    for tick in range(0, int(most) + 1, step):
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#e2e2e2"/>'
                     f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,}</text>')
    for count in counts:
        parts.append(f'<text x="{x[count]:.1f}" y="{height - bottom + 18}" text-anchor="middle">{count}</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle">connections</text>'
                 f'<text transform="translate(18 {(top + height - bottom) / 2}) rotate(-90)" text-anchor="middle">'
                 'requests a second</text>')
    for i, (row, colour) in enumerate(COLOURS.items()):
        points = [(x[c], y(medians[(row, c)]["rate"])) for c in counts if (row, c) in medians]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in points]
        name = "bare Poco HTTPServer" if row == "bare" else row
        parts.append(f'<rect x="{width - right + 18}" y="{top + i * 22}" width="14" height="4" fill="{colour}"/>'
                     f'<text x="{width - right + 40}" y="{top + i * 22 + 6}">{name}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def write(options, rounds, medians, settings, other_work):
    os.makedirs(options.out, exist_ok=True)
    command = "tests/bench/run.sh " + " ".join(word for word in sys.argv[1:] if word != "--write-readme")
    about = (f"{datetime.date.today().isoformat()}, {machine()}; `{command.strip()}`: medians of {options.rounds} "
             f"interleaved rounds of {options.seconds:g} s; " + ", ".join(f"{k} {v}" for k, v in settings.items()) +
             f". Other work took {other_work:.0%} of the processors.\n\n")
    if other_work > DISTURBED:
        about += "**Disturbed: something else ran on this machine. The numbers are worth nothing; measure again.**\n\n"
    text = about + table(medians)
    for name, content in (("bench.md", text), ("bench.svg", chart(medians)),
                          ("bench.json", json.dumps({"about": about.strip(), "otherWork": other_work, "rounds": [
                              {"row": row, "connections": c, "rounds": each, "median": medians[(row, c)]}
                              for (row, c), each in rounds.items()]}, indent=1))):
        with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
            file.write(content)
    print("\n" + text + f"\nin {options.out}: bench.md bench.json bench.svg")
    if options.write_readme:
        with open(README, encoding="utf-8") as file:
            before, _, rest = file.read().partition(BEGIN)
        with open(README, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + text + END + rest.partition(END)[2])
