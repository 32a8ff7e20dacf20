"""GET /openapi.json against the server that it describes: schemathesis reads it, calls all that it promises with good
and with bad data, follows its links, and judges each answer by it.

    python3 tests/openapi/openapi_test.py [--examples N] [--seed N]

schemathesis (PyPI, pinned with all it needs in requirements.txt) is installed under <build>/python on the first run.
A test is an operation of the description, or what its links lead to; and each operation has to be answered with success
at least once, so that a run in which nothing works does not pass. The last line is `N passed, N failed`.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "support"))

from jobq_server import BUILD, Server  # noqa: E402
from webhook_receiver import WebhookReceiver  # noqa: E402

REQUIREMENTS = os.path.join(HERE, "requirements.txt")
LONGEST_RUN = 400  # seconds
SETTINGS = {"storage": "memory", "server.drain": "200ms", "endpoint.echo.image": "plugin/echo",
            "endpoint.trial.image": "plugin/trial", "endpoint.parked.image": "plugin/echo",
            "endpoint.parked.workersMax": "0"}


def install():
    """The folder that has schemathesis; whole or not there."""
    with open(REQUIREMENTS, "rb") as file:
        folder = os.path.join(BUILD, "python", "schemathesis-" + hashlib.sha256(file.read()).hexdigest()[:12])
    if os.path.isdir(folder):
        return folder
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    part = tempfile.mkdtemp(prefix="part-", dir=os.path.dirname(folder))
    try:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        "--target", part, "--requirement", REQUIREMENTS], check=True, timeout=LONGEST_RUN)
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def set_the_stage(server, receiver):
    """Puts a thing of each kind there, jobs in each state among them, and tells hooks.py their names."""
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
    return {"endpoints": ["echo", "trial"], "jobs": ended + still_open,
            "jobsToWaitFor": ended * 4 + still_open, "receiver": receiver.url(), "kept": [template, endpoint, key],
            "records": {"Template": [template], "Endpoint": [endpoint, "parked"], "Delivery": [ended[0][1] + ".1"]}}


def faults_of(library, document):
    """What is wrong with the description by the rules of OpenAPI 3.1, and with its examples by its own schemas."""
    sys.path.insert(0, library)
    import jsonschema_rs
    from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

    faults = [f"{fault.instance_path}: {fault.message[:300]}" for fault in OPENAPI_31_VALIDATOR.iter_errors(document)]
    for name, schema in document["components"]["schemas"].items():
        judge_of_it = jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})
        faults += [f"an example of {name}: {fault.message}" for example in schema.get("examples", [])
                   for fault in judge_of_it.iter_errors(example)]
    return faults


def run(library, server, document, stage, options, folder):
    """schemathesis' exit code. Its reports and its log are in the folder."""
    stage_file = os.path.join(folder, "stage.json")
    with open(stage_file, "w", encoding="ascii") as file:
        json.dump(stage, file)
    # From a file: schemathesis does not call the address that it reads a description from.
    with open(os.path.join(folder, "openapi.json"), "w", encoding="ascii") as file:
        json.dump(document, file)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([library, HERE]), "PYTHONDONTWRITEBYTECODE": "1",
                   "JOBQ_STAGE": stage_file, "JOBQ_TALLY": os.path.join(folder, "tally.json")}
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", os.path.join(HERE, "schemathesis.toml"),
               "run", os.path.join(folder, "openapi.json"), "--url", server.url, "--header",
               f"Authorization: Bearer {server.key}",
               "--seed", str(options.seed), "--max-examples", str(options.examples), "--no-color",
               "--report-junit-path", os.path.join(folder, "junit.xml")]
    with open(os.path.join(folder, "log"), "wb") as log:
        return subprocess.run(command, cwd=folder, env=environment, check=False, timeout=LONGEST_RUN, stdout=log,
                              stderr=subprocess.STDOUT).returncode


def judge(folder, code, operations, faults):
    """Prints each test, and returns how many passed and how many failed."""
    sound = "the description by itself"
    failed = {sound} if faults else set()
    tests = {*operations, sound}
    print("\n".join(faults))
    for case in xml.etree.ElementTree.parse(os.path.join(folder, "junit.xml")).iter("testcase"):
        tests.add(case.get("name"))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(case.get("name"))
    with open(os.path.join(folder, "tally.json"), encoding="ascii") as file:
        tally = json.load(file)
    for test in sorted(tests):
        statuses = tally.get(test, {})
        told = " " + ", ".join(f"{status} x {times}" for status, times in sorted(statuses.items()))
        if test in operations and not any(status.startswith("2") for status in statuses):
            failed.add(test)
            told += " (never a success)"
        print(f"{'FAIL' if test in failed else 'ok':4} {test}{told}")
    if code != 0 and not failed:
        failed.add("schemathesis ended with " + str(code))
    return len(tests - failed), len(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=15, help="for each operation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    library = install()
    with tempfile.TemporaryDirectory() as folder, Server(**SETTINGS) as server, WebhookReceiver() as receiver:
        document = server.request("GET", "/openapi.json", key=None).json()
        operations = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
                      if method != "parameters"}
        code = run(library, server, document, set_the_stage(server, receiver), options, folder)
        passed, failed = judge(folder, code, operations, faults_of(library, document))
        if failed:
            with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
                print(log.read())
            print(server.log_tail(40))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
