"""Figures that depend on how fast the machine is. A test prints each with its bound; it is judged only where
JOBQ_JUDGE_PACE=1 is set (tests/bench/pace.py, on a machine without other work). Everywhere else the test judges what
can be counted: answers, their order, processor time beside a twin, wake-ups, memory.

    judge_pace("the slowest p99 beside 2,000 waiting callers", seconds, 1.0)
    judge_pace("claims, of the pace without a backlog", ratio, 0.8, unit="", least=True)
"""

import os

HANG = 60.0  # seconds that any wait may take on a busy machine: bounds a hang, and judges no pace
HANG_MS = int(1000 * HANG)  # for the parameter `wait` of a call whose job has to end

JUDGED = os.environ.get("JOBQ_JUDGE_PACE") == "1"


def judge_pace(what, figure, bound, unit=" s", least=False):
    """Prints the figure; over its bound (`least`: below it) the test fails where paces are judged."""
    print(f"pace: {what}: {figure:.3f}{unit}, {'at least' if least else 'bound'} {bound:g}{unit}", flush=True)
    if JUDGED:
        assert figure >= bound if least else figure <= bound, f"{what}: {figure:.3f}{unit}, not {bound:g}{unit}"
