"""The table, the JSON file and the chart of a bench run."""

import datetime
import json
import os
import sys

from machine import DISTURBED, machine
from servers import installed

KB = 1 << 10
README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def over(a, b):
    return a / b if a and b else None


def goals(m):
    """(work, goal, measured, met) of the table of goals in tests/bench/README.md. `met` is `None` where the run did not
    measure the works."""
    rows = []

    def value(row, connections, name="rate"):
        return m.get((row, connections), {}).get(name)

    def add(work, goal, figure, unit, digits, met):
        rows.append((work, goal, "not measured" if figure is None else f"{figure:.{digits}f}{unit}", met))

    def least(work, bound, figure, unit="", digits=2):
        add(work, f"≥ {bound:g}{unit}", figure, unit, digits, None if figure is None else figure >= bound)

    def most(work, bound, figure, unit="", digits=2):
        add(work, f"≤ {bound:g}{unit}", figure, unit, digits, None if figure is None else figure <= bound)

    def beside(work, bound, figure, peer, program):
        """Adds the ratio of a rate and a peer's rate."""
        if peer or installed(program):
            least(work, bound, over(figure, peer))
        else:
            rows.append((work, f"≥ {bound:g}", f"{program} is not installed", None))

    bare = value("bare", 64)
    least("`/run` memory, 64 connections / bare server", 1.0, over(value("/run memory", 64), bare))
    least("`/run` SQLite, 64 connections / bare server", 0.65, over(value("/run sqlite", 64), bare))
    beside("`/run` SQLite / beanstalkd `-f 0` put", 2.5, value("/run sqlite", 64), value("beanstalkd put -f 0", 64),
           "beanstalkd")
    least("finished jobs SQLite / bare server", 0.45, over(value("finished sqlite", 64), bare))
    beside("finished jobs SQLite / BullMQ, Redis fsync always", 1.5, value("finished sqlite", 64),
           value("BullMQ, Redis fsync always", 64), "redis-server")
    most("`/runsync` memory, 1 caller: p50 / bare server's", 3,
         over(value("/runsync memory", 1, "p50"), value("bare", 1, "p50")))
    beside("`/runsync` memory, 32 callers / gearmand foreground", 1.0, value("/runsync memory", 32),
           value("gearmand foreground", 32), "gearmand")
    beside("`/runsync` SQLite, 32 callers / gearmand foreground", 0.6, value("/runsync sqlite", 32),
           value("gearmand foreground", 32), "gearmand")
    most("`/runsync` SQLite, 1 caller: p50 / one fdatasync of 4 KB", 1.6,
         over(value("/runsync sqlite", 1, "p50"), value("fdatasync 4 KB", 1, "p50")))
    most("log of a finished job beyond its own bytes, SQLite, 64 connections", 1.5,
         over(value("log of finished sqlite", 64, "log"), KB), " KB")
    for connections in (1, 32):
        add(f"log of a `/runsync` beyond its own bytes, SQLite, {connections} caller{'s' * (connections > 1)}", "",
            over(value("log of /runsync sqlite", connections, "log"), KB), " KB", 2, None)
    most("a 20 MB body, received and judged", 40, over(value("20 MB judged memory", 1, "p50"), 1000), " ms", 0)
    least("20 MB echoed, SQLite", 12, value("20 MB echoed sqlite", 1), " a second", 1)
    for storage in ("memory", "sqlite"):
        copies = value(f"20 MB echoed {storage}", 1, "copies")
        rows.append((f"whole copies of a 20 MB body that the server's growth holds until it is queued, {storage}", "≤ 2",
                     "not measured" if copies is None else f"{int(copies)} (growth / body {copies:.2f})",
                     None if copies is None else int(copies) <= 2))
    most("a 429, 64 connections: time a reply / bare server's", 1.1, over(bare, value("429", 64)))
    million = m.get(("million", 0))
    if million:
        jobs = f"{million['jobs']:,.0f} jobs queued, SQLite"
        most(f"{jobs}: restart to ready", 10, million["ready"], " s")
        most(f"{jobs}: memory a job", 600, million["bytes"], " bytes", 0)
        least(f"{jobs}: claims ({million['deep']:,.0f} finished a second) / with a short queue, in turns", 0.95,
              million["pace"])
    else:
        rows.append(("1,000,000 jobs queued, SQLite", "", "only with --million", None))
    return rows


def table(medians):
    lines = ["| work | connections | per second | of the bare server | p50 µs | p99 µs |", "|---|---:|---:|---:|---:|---:|"]
    for (row, connections), m in medians.items():
        if "rate" not in m:
            continue
        bare = medians.get(("bare", connections), {}).get("rate")
        share = f"{m['rate'] / bare:.2f}" if bare and not row.startswith(("20 MB", "fdatasync")) else ""
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
