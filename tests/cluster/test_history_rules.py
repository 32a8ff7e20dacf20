"""Each rule of tests/support/cluster_history.py can fail: a history without fault passes, and a changed history does
not."""

from dataclasses import replace

import pytest
from cluster_history import RULES, Call, Interruption, Plan, Run, check, losses_of, histories, read_journal

JOB = "job-7"
OUTPUT = {"echo": 7, "square": 49, "attempt": 1}


def plan(kind="poll", **fields):
    return Plan(7, kind, **fields)


def call(action, asked, answered, status=200, **fields):
    return Call(7, action, asked, answered, status, **{"job": JOB, **fields} if status == 200 else fields)


def run(attempt, began, ended, end="output", node="node-1", job=JOB):
    return Run(7, job, attempt, node, began, ended, end)


SUBMITTED = call("run", 10, 20)
FIRST = run(1, 30, 40)
COMPLETED = call("status", 50, 60, state="COMPLETED", output=OUTPUT)
SECOND_OUTPUT = {**OUTPUT, "attempt": 2}
COMPLETED_SECOND = call("status", 90, 95, state="COMPLETED", output=SECOND_OUTPUT, retries=1)
SECOND = run(2, 70, 80, node="node-2")
KILLED = Interruption("killed", "node-1", 33, 36)
PAUSED = Interruption("paused", "node-1", 33, 75)

STREAM = plan("stream", chunks=2)
CHUNKS = tuple({"number": 7, "attempt": 1, "place": place} for place in range(2))
PAGE = call("stream", 50, 60, state="COMPLETED", attempt=1, chunks=CHUNKS)

RETRIED = [SUBMITTED, call("status", 50, 60, state="FAILED", error="as told"), call("retry", 62, 65), COMPLETED_SECOND]
RETRIED_RUNS = [run(1, 30, 40, "failed"), SECOND]


def names_of(plan_, calls, runs, webhooks=(), interruptions=()):
    """Returns the names of the violated rules."""
    verdict = check({7: plan_}, calls, runs, [(7, body) for body in webhooks], interruptions)
    return {fault.split(": ")[1] for fault in verdict.faults}


GOOD = {
    "a job": (plan(), [SUBMITTED, COMPLETED], [FIRST]),
    "a job that nobody acknowledged": (plan(), [call("run", 10, 20, 502)], []),
    "a killed run": (plan(), [SUBMITTED, COMPLETED_SECOND], [run(1, 30, None, None), SECOND], (), [KILLED]),
    "a run that was late after a pause": (plan(), [SUBMITTED, COMPLETED_SECOND], [run(1, 30, 76), SECOND], (), [PAUSED]),
    "a retried job": (plan("retry", fails=True), RETRIED, RETRIED_RUNS),
    "a cancelled job": (plan("cancel"), [SUBMITTED, call("cancel", 32, 35, state="CANCELLED")], [run(1, 30, 38, "stopped")]),
    "a cancelled job on its way": (plan("cancel"), [SUBMITTED, call("cancel", 22, 25, state="CANCELLED")],
                                   [run(1, 30, 31, "stopped")]),
    "a cancelled job on its way at another node": (
        plan("cancel"), [SUBMITTED, call("cancel", 22, 25, state="CANCELLED"), call("status", 50, 60, state="CANCELLED",
                                                                                   worker="w")], [FIRST]),
    "a stream": (STREAM, [SUBMITTED, PAGE], [FIRST]),
    "a webhook": (plan("webhook"), [SUBMITTED, COMPLETED], [FIRST], [{"status": "COMPLETED", "id": JOB, "webhookId": "w"}]),
}

BAD = {
    "two jobs of one submission": ("one_submission_is_one_job", plan(), [SUBMITTED, COMPLETED],
                                   [FIRST, run(1, 42, 43, job="job-8")]),
    "a lost job": ("acknowledged_jobs_end", plan(), [SUBMITTED], []),
    "a job without end": ("acknowledged_jobs_end", plan(), [SUBMITTED, call("status", 50, 60, state="IN_QUEUE")], []),
    "an absent job": ("jobs_are_there", plan(), [SUBMITTED, call("status", 22, 25, 404), COMPLETED], [FIRST]),
    "an end that goes back": ("ends_stay", plan(), [SUBMITTED, COMPLETED, call("status", 70, 80, state="IN_QUEUE")], [FIRST]),
    "an end with another output": ("ends_stay", plan(), [SUBMITTED, COMPLETED, replace(
        COMPLETED, asked=70, answered=80, output={**OUTPUT, "attempt": 2})], [FIRST]),
    "an end without a run": ("ends_are_earned", plan(), [SUBMITTED, COMPLETED], []),
    "an end before its run": ("ends_are_earned", plan(), [SUBMITTED, COMPLETED], [run(1, 30, 61)]),
    "a failure without a run": ("ends_are_earned", plan(), [SUBMITTED, call("status", 50, 60, state="FAILED")], [FIRST]),
    "a job that timed out": ("ends_are_earned", plan(), [SUBMITTED, call("status", 50, 60, state="TIMED_OUT")], [FIRST]),
    "a cancel of no caller": ("ends_are_earned", plan(), [SUBMITTED, call("status", 50, 60, state="CANCELLED")], []),
    "the output of another job": ("outputs_are_own", plan(), [SUBMITTED, replace(COMPLETED, output={"echo": 8, "square": 64})],
                                  [FIRST]),
    "a late result": ("late_results_stay_hidden", plan(), [SUBMITTED, replace(COMPLETED, asked=90, answered=95)],
                      [run(1, 30, 76), SECOND], (), [PAUSED]),
    "an attempt twice": ("attempts_grow", plan(), [SUBMITTED, COMPLETED], [FIRST, run(1, 42, 44, node="node-2")], (), [KILLED]),
    "a further run without reason": ("further_runs_are_earned", plan(), [SUBMITTED, COMPLETED_SECOND],
                                     [run(1, 30, 40, "stopped"), SECOND]),
    "a success twice": ("successes_are_single", plan(), [SUBMITTED, COMPLETED_SECOND], [FIRST, SECOND]),
    "two runs at once": ("runs_do_not_overlap", plan(), [SUBMITTED, COMPLETED_SECOND], [run(1, 30, 75, "stopped"), SECOND],
                         (), [Interruption("cut off", "node-1", 33, 75)]),
    "a run before the kill": ("runs_do_not_overlap", plan(), [SUBMITTED, COMPLETED_SECOND], [run(1, 30, None, None), SECOND],
                              (), [Interruption("killed", "node-1", 74, 75)]),
    "a run without end": ("runs_end", plan(), [SUBMITTED, COMPLETED], [FIRST, run(2, 45, None, None)], (), [PAUSED]),
    "a run after the end": ("nothing_runs_after_the_end", plan(), [SUBMITTED, COMPLETED], [FIRST, SECOND], (), [KILLED]),
    "a run of a job that was cancelled in the queue": (
        "nothing_runs_after_the_end", plan("cancel"), [SUBMITTED, call("cancel", 22, 25, state="CANCELLED"), call(
            "status", 50, 60, state="CANCELLED", worker="")], [FIRST]),
    "a loss without reason": ("losses_are_earned", plan(), [SUBMITTED, replace(COMPLETED, retries=1)], [FIRST]),
    "a webhook that never came": ("webhooks_come", plan("webhook"), [SUBMITTED, COMPLETED], [FIRST]),
    "a webhook with another end": ("webhooks_come", plan("webhook"), [SUBMITTED, COMPLETED], [FIRST],
                                   [{"status": "FAILED", "id": JOB, "webhookId": "w"}]),
    "a webhook with two ids": ("webhooks_come", plan("webhook"), [SUBMITTED, COMPLETED], [FIRST],
                               [{"status": "COMPLETED", "id": JOB, "webhookId": each} for each in "vw"]),
    "a stream with a gap": ("streams_are_whole", STREAM, [SUBMITTED, replace(PAGE, chunks=CHUNKS[1:])], [FIRST]),
    "a chunk twice": ("streams_are_whole", STREAM, [SUBMITTED, PAGE, replace(PAGE, asked=61, answered=62)], [FIRST]),
    "a chunk of another attempt": ("streams_are_whole", STREAM, [SUBMITTED, replace(PAGE, attempt=2)], [FIRST]),
}


class RuleTest:
    @pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
    def test_a_good_history_passes(self, history):
        assert names_of(*history) == set()

    @pytest.mark.parametrize("history", BAD.values(), ids=BAD)
    def test_a_fault_is_found(self, history):
        rule, *parts = history
        assert rule in names_of(*parts)

    def test_each_rule_can_fail(self):
        assert {history[0] for history in BAD.values()} == {rule.__name__ for rule in RULES}


class FigureTest:
    def test_figures(self):
        verdict = check({7: plan()}, [SUBMITTED], [FIRST, SECOND])
        assert verdict.figures["lost"] == 1
        assert verdict.figures["returned twice"] == 1

    def test_losses_are_retries_of_no_caller(self):
        for calls, losses in ((RETRIED, 0), ([SUBMITTED, COMPLETED_SECOND], 1)):
            assert losses_of(histories({7: plan()}, calls, [])[7]) == losses

    def test_a_journal_with_a_killed_run(self, tmp_path):
        file = tmp_path / "journal"
        file.write_text("begin 7 job-7 1 99 30   \nbegin 7 job-7 2 99 70   \noutput 7 job-7 2 99 80   \n")
        assert read_journal("node-1", file) == [run(1, 30, None, None), run(2, 70, 80)]
