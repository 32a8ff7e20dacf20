"""The description of GET /openapi.json against the described server: schemathesis reads the description, makes every
described call with good and with bad data, follows the links, and judges each answer by the description.

    build/venv/bin/pytest tests/openapi [--examples N] [--seed N]

Each operation of the description is a subtest, and each target of the links, too. Each operation has to be answered
with success at least once, so a run without any success does not pass.
"""

import collections
import json
import os
import subprocess
import sys
import xml.etree.ElementTree

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from webhook_receiver import WebhookReceiver

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST_RUN = 400  # seconds, for the default number of examples
SETTINGS = {"server.drain": "200ms", "endpoint.remote.image": "registry.example.com/acme/worker:1"}

# This server has no launcher, because it would run invented commands. tests/http/test_worker_logs.py has the successes.
NEEDS_A_LAUNCHER = ("GET /v1/endpoints/{id}/workers/{worker}/logs",)

Run = collections.namedtuple("Run", "document code cases tally log")


@pytest.fixture(scope="class")
def run(request, class_server, tmp_path_factory):
    """The calls and findings of a run of schemathesis, for all tests."""
    folder = str(tmp_path_factory.mktemp("openapi"))
    server = class_server(**SETTINGS)
    document = server.request("GET", "/openapi.json", key=None).json()
    with WebhookReceiver() as receiver:
        code = call_everything(server, document, set_the_stage(server, receiver), request.config, folder)
    with open(os.path.join(folder, "tally.json"), encoding="ascii") as file:
        tally = json.load(file)
    with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
        cases = xml.etree.ElementTree.parse(os.path.join(folder, "junit.xml")).iter("testcase")
        return Run(document, code, list(cases), tally, log.read())


def set_the_stage(server, receiver):
    """Creates a thing of each kind, including a job in each state. Returns the names for hooks.py."""
    ended = [("echo", server.run("echo", {"a": 1}, webhook=receiver.url())),
             ("trial", server.run("trial", {"fail": "on purpose"})),
             ("trial", server.run("trial", {"fail": "on purpose too"})),
             ("trial", server.run("trial", {"chunks": 3}))]
    still_open = [("parked", server.run("parked", {})),
                  ("trial", server.run("trial", {"progress": [{"done": 1}], "sleepMs": 3_600_000}))]
    for job in ended:
        server.finished(*job)
    receiver.wait()
    template = server.request("POST", "/v1/templates", {"name": "stage", "imageName": "plugin/echo"}).json()["id"]
    endpoint = server.request("POST", "/v1/endpoints", {"templateId": template}).json()["id"]
    key = server.request("GET", "/v1/keys").json()[0]["id"]
    return {"url": server.url, "key": server.key, "remote": "remote", "endpoints": ["echo", "trial"],
            "jobs": ended + still_open, "jobsToWaitFor": ended * 4 + still_open, "receiver": receiver.url(),
            "kept": [template, endpoint, key],
            "records": {"Template": [template], "Endpoint": [endpoint, "parked"], "Delivery": [ended[0][1] + ".1"]}}


def call_everything(server, document, stage, config, folder):
    """Runs schemathesis and returns its exit code. The reports and the log of the run are in the folder."""
    stage_file = os.path.join(folder, "stage.json")
    with open(stage_file, "w", encoding="ascii") as file:
        json.dump(stage, file)
    # The description comes from a file, because schemathesis does not call the address of a downloaded description.
    with open(os.path.join(folder, "openapi.json"), "w", encoding="ascii") as file:
        json.dump(document, file)
    environment = {**os.environ, "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1", "JOBQ_STAGE": stage_file,
                   "JOBQ_TALLY": os.path.join(folder, "tally.json")}
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", os.path.join(HERE, "schemathesis.toml"),
               "run", os.path.join(folder, "openapi.json"), "--url", server.url, "--header",
               f"Authorization: Bearer {server.key}",
               "--seed", str(config.getoption("seed")), "--max-examples", str(config.getoption("examples")),
               "--no-color", "--report-junit-path", os.path.join(folder, "junit.xml")]
    with open(os.path.join(folder, "log"), "wb") as log:
        return subprocess.run(command, cwd=folder, env=environment, check=False, timeout=LONGEST_RUN, stdout=log,
                              stderr=subprocess.STDOUT).returncode


@pytest.mark.timeout(LONGEST_RUN + 60)
class DescriptionTest:
    def test_the_description_is_sound(self, run):
        """The description satisfies the rules of OpenAPI 3.1, and the examples satisfy the schemas of the
        description."""
        faults = [f"{fault.instance_path}: {fault.message[:300]}"
                  for fault in OPENAPI_31_VALIDATOR.iter_errors(run.document)]
        for name, schema in run.document["components"]["schemas"].items():
            judge = jsonschema_rs.Draft202012Validator({**schema, "components": run.document["components"]})
            faults += [f"an example of {name}: {fault.message}" for example in schema.get("examples", [])
                       for fault in judge.iter_errors(example)]
        assert not faults, "\n".join(faults)

    def test_each_answer_is_as_described(self, run, subtests):
        """Every check of schemathesis on every answer, operation by operation."""
        assert run.cases
        for case in run.cases:
            with subtests.test(case.get("name")):
                faults = [fault.get("message") or fault.text for kind in ("failure", "error")
                          for fault in case.iter(kind)]
                assert not faults, "\n".join(faults)
        assert run.code == 0, run.log

    def test_each_operation_succeeds_at_least_once(self, run, subtests):
        for path, methods in run.document["paths"].items():
            for method in methods:
                if method != "parameters":
                    label = f"{method.upper()} {path}"
                    if label in NEEDS_A_LAUNCHER:
                        continue
                    with subtests.test(label):
                        statuses = run.tally.get(label, {})
                        assert any(status.startswith("2") for status in statuses), statuses
