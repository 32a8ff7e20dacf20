"""Knowledge of schemathesis about the server under test, and the calls to avoid. openapi_test.py starts both, and
JOBQ_STAGE, a JSON file, lists the prepared things of the server.

Invented names become names of existing things, because a 404 tests no code behind it; some invented names stay, and so
do impossible names. Waits are short, webhooks go to the test's own receiver, and the needs of other calls stay: the
key, and the endpoints' workers. Before the call of a remote worker, the queue gets a job to take, to stop or to report:
without a job, the call would wait for 20 seconds or more. The answers are counted in JOBQ_TALLY.
"""

import atexit
import collections
import itertools
import json
import os
import re
import urllib.parse
import urllib.request

import schemathesis

with open(os.environ["JOBQ_STAGE"], encoding="utf-8") as stage:
    STAGE = json.load(stage)

IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,128}")
MADE_BY_THE_SERVER = re.compile(r"(sync-)?[0-9a-f-]{36}-u1(\.\d+)?|[a-z0-9]{10}|[a-z0-9]{14}")
KEPT = 8  # every eighth invented name
SHORT = 1000  # milliseconds, the least allowed wait
MANAGED = ("createTemplate", "changeTemplate", "updateTemplate", "createEndpoint", "changeEndpoint", "updateEndpoint",
           "createKey")
LONG = 3_600_000
FEW = 2  # workers
DEADLINE = 60  # seconds for a call by ask(): bounds a hang

turns = collections.defaultdict(itertools.count)
homes = {job: endpoint for endpoint, job in STAGE["jobs"]}
statuses = collections.defaultdict(collections.Counter)  # label of an operation -> status -> how often


def stand_in(operation, name, choices):
    """Returns the next of the choices in place of a valid but invented name."""
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name) or MADE_BY_THE_SERVER.fullmatch(name):
        return None
    return in_turn(operation, choices)


def in_turn(operation, choices):
    turn = next(turns[operation])
    return choices[turn % len(choices)] if turn % KEPT != KEPT - 1 else None


@schemathesis.hook
def before_call(_context, case, _kwargs):
    operation = case.operation.definition.raw["operationId"]
    if isinstance(case.query, dict):
        case.query = without_fractions(case.query)
    if operation in MANAGED:
        schema = case.operation.definition.raw["requestBody"]["content"]["application/json"]["schema"]
        fill_unknown_members(case.body, schema, case.operation.schema.raw_schema["components"]["schemas"])
    if operation == "createEndpoint" and isinstance(case.body, dict) and IDENTIFIER.fullmatch(str(case.body.get("id", ""))):
        # A short id would be guessed by a later call, whose job would wait for a worker of an invented image.
        case.body["id"] = f"made-by-the-test-{next(turns['made'])}"
    path = case.path_parameters or {}
    for name, value in path.items():
        # Clients cut such a segment out of the path, and so call a different operation. An empty segment comes from the
        # `templateId` of an endpoint of the configuration file: a later call uses the value as the id of a template.
        if value in ("", ".", ".."):
            path[name] = "nobody"
    if "worker" in path:
        call_as_a_worker(operation, path, case.body)
    elif "endpoint" in path:
        ask_for_a_job(operation, case, path)
    elif operation in ("deleteTemplate", "deleteEndpoint", "revokeKey"):
        if path["id"] in STAGE["kept"]:
            path["id"] = "nobody"
    else:
        ask_for_a_record(operation, case, path)


def fill_unknown_members(members, schema, schemas):
    """The server ignores a null under an unknown name. Only the text of the description has the rule, because
    generators of clients understand no schema for the rule. Here a member with an unknown name gets a value, and the
    server has to refuse the call."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    known = schema.get("properties")
    if not isinstance(members, dict) or known is None:
        return
    for name, value in members.items():
        if name in known:
            fill_unknown_members(value, known[name], schemas)
        elif value is None:
            members[name] = 0


def ask_for_a_job(operation, case, path):
    waits = operation.startswith(("runsync", "statusSync", "stream"))
    known = IDENTIFIER.fullmatch(str(path["endpoint"])) is not None
    if "id" in path and known:
        job = stand_in(operation, path["id"], STAGE["jobsToWaitFor" if waits else "jobs"])
        if job:
            path["endpoint"], path["id"] = job
        elif path["id"] in homes and next(turns[operation]) % KEPT != KEPT - 1:
            path["endpoint"] = homes[path["id"]]
        keep_alive(case, path["id"])
    elif known:
        path["endpoint"] = stand_in(operation, path["endpoint"], STAGE["endpoints"]) or path["endpoint"]
    if waits:
        shorten(case, lenient="ForSdk" in operation)
    if operation.startswith(("run", "openAiPost")):
        use_once(case.headers or {})
        if isinstance(case.body, dict):
            submit(case.body)


def call_as_a_worker(operation, path, body):
    """Replaces an invented endpoint in a waiting call: the refusal would come three seconds late."""
    turn = next(turns[operation])
    is_report = operation.startswith("report")
    if is_report and turn % KEPT == KEPT - 1:
        return
    path["endpoint"] = STAGE["remote"]
    queue = "/v2/" + STAGE["remote"]
    ask("POST", queue + "/run", {"input": {}})
    # A new worker for each call: a report may ask for a replacement of the worker, and a disconnected worker gets no
    # job that may still run there.
    path["worker"] = f"{operation}-{turn}"
    if operation.startswith("take"):
        return
    job = ask("GET", f"{queue}/job-take/{path['worker']}")["id"]
    if operation.startswith("awaitStops"):
        ask("POST", f"{queue}/cancel/{job}")
    if is_report and "job" in path:
        path["job"] = job
    elif is_report and isinstance(body, list) and body and isinstance(body[0], dict):
        body[0]["id"] = job


def ask(method, path, body=None):
    """Calls the server beside schemathesis, and returns the answer."""
    request = urllib.request.Request(STAGE["url"] + path, method=method, headers={"Authorization": STAGE["key"]},
                                     data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.load(answer)


def submit(body):
    for name in ("webhook", "webhookV2"):
        if leads_somewhere(body.get(name)):
            body[name] = STAGE["receiver"]
    if isinstance(body.get("policy"), dict):
        body["policy"] = without_fractions(body["policy"])


def ask_for_a_record(operation, case, path):
    if "id" in path:
        things = next(names for kind, names in STAGE["records"].items() if kind in operation)
        path["id"] = stand_in(operation, path["id"], things) or path["id"]
    if operation == "pauseEndpoint" and path["id"] in STAGE["endpoints"]:
        path["id"] = "nobody"
    if operation.endswith("Endpoint") and isinstance(case.body, dict):
        template = case.body.get("templateId")
        if isinstance(template, str) and IDENTIFIER.fullmatch(template):
            case.body["templateId"] = in_turn(operation, STAGE["records"]["Template"]) or template
        wanted = case.body.get("workersMin")
        if isinstance(wanted, int) and FEW < wanted <= 10_000:
            case.body["workersMin"] = FEW
    if operation.endswith("Template") and isinstance(case.body, dict):
        name = case.body.get("name")
        if isinstance(name, str) and 0 < len(name.encode(errors="replace")) <= 180:
            # The server refuses a used name before any other fault.
            case.body["name"] = f"{name}{next(turns['name'])}"


def without_fractions(values):
    """To a schema 5000.0 is an integer; a schema cannot forbid the fraction."""
    return {name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in values.items()}


def use_once(headers):
    """The server refuses a key used with a different body; a schema cannot express the rule."""
    key = headers.get("Idempotency-Key")
    if isinstance(key, str) and re.fullmatch("[!-~]{1,255}", key):
        headers["Idempotency-Key"] = f"{key[:247]}{next(turns['key']):08d}"


def keep_alive(case, job):
    """A short `ttl` would delete a job needed by the next calls."""
    ttl = (case.query or {}).get("ttl")
    if isinstance(ttl, int) and not isinstance(ttl, bool) and [job] in [staged[1:] for staged in STAGE["jobs"]]:
        case.query = {**case.query, "ttl": max(ttl, LONG)}


def shorten(case, lenient):
    query = case.query if isinstance(case.query, dict) else {}
    wait = query.get("wait", SHORT + 1)
    if isinstance(wait, (int, float)) and not isinstance(wait, bool) and wait > SHORT and (lenient or wait <= 300_000):
        case.query = {**query, "wait": SHORT}


def leads_somewhere(text):
    """Returns whether the value is the URL of a foreign host: the server must not call the host. Other values stay,
    because the server has to refuse a value other than a URL."""
    try:
        return isinstance(text, str) and text.isascii() and " " not in text and bool(urllib.parse.urlsplit(text).netloc)
    except ValueError:
        return False


@schemathesis.hook
def after_call(_context, case, response):
    statuses[case.operation.label][response.status_code] += 1
    if response.status_code == 200 and case.path.endswith(("/run", "/runsync")):
        homes[response.json()["id"]] = case.path_parameters["endpoint"]
    if response.status_code == 200 and case.path.endswith("/drain"):  # later calls need running jobs
        ask("POST", f"/v1/nodes/{response.json()['name']}/resume")


@atexit.register
def write_tally():
    with open(os.environ["JOBQ_TALLY"], "w", encoding="ascii") as file:
        json.dump(statuses, file)
