"""Figures that depend on the speed of the machine. A test prints each figure with the bound, and judges the figure only
if JOBQ_JUDGE_PACE=1 is set (tests/bench/pace.py, on a machine without other work). Otherwise the test judges only
counts: answers, the order of answers, processor time beside a twin, wake-ups, memory.

    judge_pace("the slowest p99 beside 2,000 waiting callers", seconds, 1.0)
    judge_pace("claims, of the pace without a backlog", ratio, 0.8, unit="", least=True)
"""

import os

HANG = 60.0  # seconds for any wait on a busy machine: bounds a hang, and judges no pace
HANG_MS = int(1000 * HANG)  # the parameter `wait` of a call that awaits the end of a job

JUDGED = os.environ.get("JOBQ_JUDGE_PACE") == "1"


def judge_pace(what, figure, bound, unit=" s", least=False):
    """Prints the figure. If paces are judged, the test fails over the bound (with `least`: below the bound)."""
    print(f"pace: {what}: {figure:.3f}{unit}, {'at least' if least else 'bound'} {bound:g}{unit}", flush=True)
    if JUDGED:
        assert figure >= bound if least else figure <= bound, f"{what}: {figure:.3f}{unit}, not {bound:g}{unit}"
