"""core/http/API.md, "Endpoint" and "Endpoint API": the fields of an endpoint and the refusals. The effect of the
fields: test_endpoint_rules.py; the removal: test_endpoint_removal.py."""

import concurrent.futures
import re

import pytest

from jobq_server import until
from management_api import ManagementTest

DEFAULTS = {
    "name": "", "workersMin": 0, "workersMax": 3, "idleTimeout": 5, "scalerType": "QUEUE_DELAY", "scalerValue": 4,
    "executionTimeoutMs": 600_000, "flashboot": False, "computeType": "GPU", "gpuCount": 1, "gpuTypeIds": [],
    "allowedCudaVersions": [], "minCudaVersion": "", "cpuFlavorIds": [], "vcpuCount": 2, "dataCenterIds": [],
    "networkVolumeId": "", "networkVolumeIds": [], "maxAttempts": 3, "stopGraceMs": 5_000, "maxStuck": None,
    "isolation": "thread", "maxQueued": None, "queuePolicy": "", "filters": None, "retention": {},
    "webhookRetries": {}, "rateLimits": {},
}
TOLD_ONLY = {"userId": "", "version": 1, "static": False, "paused": False, "env": {}, "instanceIds": []}
TOLD_TOO = {"id", "templateId", "createdAt", "image", "inForce", "release"}
EVERY_FIELD = {
    "name": "n" * 191, "workersMin": 1, "workersMax": 2, "idleTimeout": 3600, "scalerType": "REQUEST_COUNT",
    "scalerValue": 1, "executionTimeoutMs": 604_800_000, "flashboot": True, "computeType": "CPU", "gpuCount": 0,
    "gpuTypeIds": ["NVIDIA L4"], "allowedCudaVersions": ["12.4", "12.3"], "minCudaVersion": "12.1",
    "cpuFlavorIds": ["cpu3c"], "vcpuCount": 16, "dataCenterIds": ["EU-1"], "networkVolumeId": "v1",
    "networkVolumeIds": ["v1", "v2"], "maxAttempts": 1, "stopGraceMs": 0, "maxStuck": 0, "isolation": "thread",
    "maxQueued": 1, "queuePolicy": "priority", "retention": {"run": 604_800_000, "runsync": 1_000, "failed": 7_776_000_000},
    "webhookRetries": {"attempts": 20, "pause": 100, "factor": 10},
    "rateLimits": {"run": {"requests": 5, "windowMs": 1_000, "concurrent": 2, "perWorker": 1}, "statusSync": {
        "windowMs": 3_600_000}, "openai": {"requests": 0}},
}
FIXED = ("computeType",)
NUMBERS = {"workersMin": (0, None), "workersMax": (0, None), "idleTimeout": (1, 3_600), "scalerValue": (1, None),
           "executionTimeoutMs": (5_000, 604_800_000), "gpuCount": (0, None), "vcpuCount": (0, None),
           "maxAttempts": (1, None), "stopGraceMs": (0, None), "maxStuck": (0, None), "maxQueued": (1, None)}
LISTS = ("gpuTypeIds", "allowedCudaVersions", "cpuFlavorIds", "dataCenterIds", "networkVolumeIds")
WRONG = {
    "name": ["n" * 192, 1, []],
    "templateId": ["", 1, "nosuch", "x" * 100, ["x"]],
    **{name: [low - 1, "3", 2.5, True, [], 1e40, *([high + 1] if high else [])]
       for name, (low, high) in NUMBERS.items()},
    "scalerType": ["queue_delay", "", "QUEUE", 1],
    "flashboot": ["true", 1],
    "computeType": ["gpu", "", 1],
    **{name: ["x", [1], {}] for name in LISTS},
    "minCudaVersion": [12.1],
    "networkVolumeId": [1],
    "isolation": ["process", "container", "", True],
    "queuePolicy": ["nosuch", "sqlite", 1],
    "filters": ["a", {}, [1], [""], ["a b"], ["plugin/"], ["plugin/nosuch"], ["a"] * 17],
    "retention": [1, [], {"run": 999}, {"run": 604_800_001}, {"runsync": "5"}, {"runSync": 5000}, {"status": 5000},
                  {"failed": -1}, {"failed": 7_776_000_001}],
    "webhookRetries": [1, {"attempts": 0}, {"attempts": 21}, {"pause": 99}, {"factor": 11}, {"tries": 3}],
    "rateLimits": [1, [], {"run": 5}, {"nosuch": {}}, {"retry": {"requests": 1}}, {"run": {"requests": -1}},
                   {"run": {"windowMs": 0}}, {"run": {"window": 5}}, {"run": {"concurrent": "2"}},
                   {"run": {"perWorker": 1.5}}, {"run": {"requests": 1 << 40}}],
    "webhookSecret": [1, "whsec_!", "s" * 1025],
}


class EndpointTest(ManagementTest):
    def post(self, body, **more):
        return self.server.request("POST", "/v1/endpoints", body, **more)

    def refused(self, *fields, **body):
        """Refused with a fault for each of the fields; nothing was stored."""
        body = {"templateId": self.template["id"], "name": "never stored", **body}
        message = self.assert_faults(self.post(body), *fields)
        assert "never stored" not in [endpoint["name"] for endpoint in self.call("GET", "/endpoints")]
        return message

    @pytest.fixture(autouse=True)
    def one_template(self, remove_what_was_made):
        self.template = self.new_template(env={"A": "1"})


class CreateTest(EndpointTest):
    def test_defaults(self):
        """core/http/API.md, "Endpoint": `templateId` is enough; every other field has its default, and the answer shows
        all fields."""
        made = self.new_endpoint(self.template)
        assert set(made) == TOLD_TOO | set(DEFAULTS) | set(TOLD_ONLY)
        assert made == {**made, **DEFAULTS, **TOLD_ONLY, "templateId": self.template["id"], "env": {"A": "1"},
                        "image": "plugin/trial", "release": {"version": 1, "state": "complete"}}
        assert re.search(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z", made["createdAt"])
        assert re.search(r"\A[a-z0-9]{14}\Z", made["id"]), "14 lower-case letters and digits"
        assert self.call("GET", "/endpoints/" + made["id"]) == made

    def test_every_field(self):
        """core/http/API.md, "Endpoint": every field is taken and given back, the hardware fields too; `webhookSecret`
        is write-only."""
        made = self.new_endpoint(self.template, **EVERY_FIELD, webhookSecret="never-shown-71")
        assert made == {**made, **EVERY_FIELD}
        assert self.call("GET", "/endpoints/" + made["id"]) == {**made, "release": self.any_release(made)}
        answer = self.server.request("GET", "/v1/endpoints?includeWorkers=true&includeTemplate=true")
        for never in (b"never-shown-71", b"webhookSecret"):
            assert never not in answer.body

    def any_release(self, endpoint):
        """workersMin = 1 starts a worker: the release of the endpoint is rolling until the worker is ready."""
        return self.call("GET", "/endpoints/" + endpoint["id"])["release"]

    @pytest.mark.parametrize("name, value", EVERY_FIELD.items(), ids=EVERY_FIELD)
    def test_each_field_alone(self, name, value):
        """core/http/API.md, "Endpoint": each field is optional, and the rest keeps its default."""
        made = self.new_endpoint(self.template, **{name: value})
        assert {field: made[field] for field in DEFAULTS} == {**DEFAULTS, name: value}

    def test_both_ends(self, subtests):
        """core/http/API.md, "Endpoint": the ends of the ranges belong to them."""
        for name, ends in NUMBERS.items():
            for value in (end for end in ends if end is not None):
                with subtests.test(field=name, value=value):
                    assert self.new_endpoint(self.template, **{name: value})[name] == value
        for value in (1_000, 604_800_000):
            retention = {"run": value, "runsync": value}
            assert self.new_endpoint(self.template, retention=retention)["retention"] == retention

    def test_names_need_not_be_unique(self):
        """core/http/API.md, "Endpoint": names of endpoints may be used twice, and a template by any number of
        endpoints."""
        first, second = (self.new_endpoint(self.template, name="twins") for _ in range(2))
        assert first["id"] != second["id"]

    def test_serverless_or_not(self):
        """core/http/API.md, "Endpoint": any template serves, whatever the value of `isServerless`."""
        for serverless in (True, False):
            endpoint = self.new_endpoint(self.new_template(isServerless=serverless))
            assert self.server.runsync(endpoint["id"], {"output": 1})["output"] == 1

    def test_null_is_like_absent(self):
        """core/http/API.md, "Endpoint": a field with value null has its default."""
        made = self.new_endpoint(self.template, **{name: None for name in DEFAULTS})
        assert {name: made[name] for name in DEFAULTS} == DEFAULTS


class RefusalTest(EndpointTest):
    @pytest.mark.parametrize("field, value", [(field, value) for field, values in WRONG.items() for value in values])
    def test_wrong_values(self, field, value):
        """core/http/API.md, "Endpoint": each constraint of each field; a wrong one is 400 and named."""
        self.refused(field, **{field: value})

    def test_all_faults_in_one_answer(self):
        """core/http/API.md, "Endpoint API": a message for each wrong field, all in one answer, including rules known
        only to the server."""
        wrong = {field: values[0] for field, values in WRONG.items() if field not in ("templateId", "queuePolicy")}
        self.assert_faults(self.post(wrong), *wrong, "templateId")
        self.assert_faults(self.post({"gpuCount": -1, "templateId": "nosuch", "queuePolicy": "nosuch"}),
                           "gpuCount", "templateId", "queuePolicy")
        self.assert_faults(self.post({"workersMin": 9, "workersMax": "x", "templateId": 1}), "workersMax", "templateId")

    def test_template_required(self):
        """core/http/API.md, "Endpoint": `templateId` is required, and names a template."""
        self.assert_faults(self.post({}), "templateId")
        self.assert_faults(self.post({"templateId": None, "workersMin": 4}), "templateId", "workersMin")
        gone = self.new_template()
        self.remove("/templates/" + gone["id"])
        assert gone["id"] in self.refused("templateId", templateId=gone["id"])

    def test_min_above_max(self):
        """core/http/API.md, "Endpoint": between min and max: min cannot be above max."""
        self.refused("workersMin", workersMin=4)
        self.refused("workersMin", workersMin=1, workersMax=0)
        endpoint = self.new_endpoint(self.template, workersMax=1, workersMin=1)
        answer = self.server.request("PATCH", "/v1/endpoints/" + endpoint["id"], {"workersMax": 0})
        self.assert_faults(answer, "workersMin")

    def test_unknown_keys(self, subtests):
        """core/http/API.md, "Endpoint": unknown keys are 400, naming the nearest known key."""
        for key, nearest in (("templateID", "templateId"), ("workersmax", "workersMax"),
                             ("idleTimeoutS", "idleTimeout"), ("executionTimeout", "executionTimeoutMs"),
                             ("webhooksecret", "webhookSecret")):
            with subtests.test(key=key):
                assert f"nearest one is {nearest}" in self.refused(key, **{key: 1})
        assert "runsync" in self.refused("retention", retention={"runSync": 5000})
        assert "run.windowMs" in self.refused("rateLimits", rateLimits={"run": {"window": 5}})

    @pytest.mark.parametrize("field, value, key", [
        ("retention", '{"run":5000,"run":6000}', "run"), ("retention", '{"runsync":null,"runsync":6000}', "runsync"),
        ("rateLimits", '{"run":{},"run":{}}', "run"),
        ("rateLimits", '{"run":{"requests":1,"requests":2}}', "run.requests"),
        ("maxStuck", '1,"maxStuck":2', "maxStuck")])
    def test_a_repeated_key(self, field, value, key):
        """core/decisions/endpoints.md: 400 at any depth; the sentence names the key."""
        body = f'{{"templateId":"{self.template["id"]}","{field}":{value}}}'
        answer = self.server.request("POST", "/v1/endpoints", body)
        assert re.search(rf"\b{key} (appears )?twice: send it once", self.assert_faults(answer, field))

    @pytest.mark.parametrize("field", [
        "createdAt", *TOLD_ONLY, "release", "image", "workers", "template", "deleting", "sealed"])
    def test_fields_of_the_answer(self, field):
        """core/http/API.md, "Endpoint": fields of the output alone are no input."""
        self.refused(field, **{field: TOLD_ONLY.get(field, "x")})

    def test_malformed_bodies(self, subtests):
        """core/http/API.md, "Shape": malformed is 400, of `/v1` with a `message`."""
        for body in ("", "[]", "null", "{", '{"templateId":}', "{}x", b"\xff{}"):
            with subtests.test(body=body):
                self.assert_refused(self.post(body), 400, member="message")
        self.assert_faults(self.post(f'{{"templateId":"{self.template["id"]}","name":"a","name":"b"}}'), "name")
        self.assert_refused(self.post({"name": "n" * (2 << 20)}), 413, member="message")


class ImageTest(EndpointTest):
    def test_an_uninstalled_handler(self):
        """core/http/API.md, "Images": plugin/<handler> is an installed handler; otherwise the endpoint is refused with
        the reason."""
        message = self.refused("templateId", templateId=self.new_template(imageName="plugin/nosuch")["id"])
        assert "nosuch" in message
        self.refused("templateId", templateId=self.new_template(imageName="plugin/sqlite")["id"])

    def test_lua(self):
        """core/http/API.md, "Images": lua/<name> runs a script; a missing script is refused with the reason."""
        template = self.new_template(imageName="lua/a")
        assert re.search("lua/a cannot run: a.lua", self.refused("templateId", templateId=template["id"]))

    def test_a_change_to_such_a_template(self):
        """core/http/API.md, "Images": an endpoint cannot change to an image without a handler here; no part of the
        change is stored."""
        endpoint = self.new_endpoint(self.template)
        path = "/v1/endpoints/" + endpoint["id"]
        for image in ("lua/a", "plugin/nosuch"):
            other = self.new_template(imageName=image)["id"]
            self.assert_faults(self.server.request("PATCH", path, {"templateId": other, "workersMax": 1}), "templateId")
        self.assert_faults(self.server.request("PATCH", path, {"templateId": "nosuch"}), "templateId")
        assert self.call("GET", "/endpoints/" + endpoint["id"]) == endpoint

    def test_remote(self):
        """core/http/API.md, "Images": the jobs of any other name wait until a remote worker connects."""
        endpoint = self.new_endpoint(self.new_template(imageName="me/worker:1"))
        assert (endpoint["image"], endpoint["release"]["state"]) == ("me/worker:1", "complete")
        job = self.server.run(endpoint["id"], {})
        answer = self.server.status(endpoint["id"], job)
        assert (answer["status"], answer["queueReason"], answer["queuePosition"]) == ("IN_QUEUE", "no_workers", 1)
        assert self.workers(endpoint) == []


def without_force(endpoint):
    """The endpoint without what follows from its fields and the server's."""
    return {name: value for name, value in endpoint.items() if name != "inForce"}


class UpdateTest(EndpointTest):
    def ways(self, endpoint):
        return ("PATCH", f"/endpoints/{endpoint['id']}"), ("POST", f"/endpoints/{endpoint['id']}/update")

    def test_each_field(self, subtests):
        """core/http/API.md, "Endpoint API": every field but `computeType` can be changed, by PATCH and by POST; the
        others stay."""
        endpoint = without_force(self.new_endpoint(self.template))
        changes = {name: value for name, value in EVERY_FIELD.items() if name not in (*FIXED, "workersMin")}
        for method, path in self.ways(endpoint):
            now = dict(endpoint)
            for name, value in changes.items():
                with subtests.test(method=method, field=name):
                    now[name] = value
                    assert without_force(self.call(method, path, {name: value})) == now
                    assert without_force(self.call("GET", "/endpoints/" + endpoint["id"])) == now
            back = {name: endpoint[name] for name in changes}
            assert without_force(self.call(method, path, back)) == endpoint
            assert without_force(self.call(method, path, {})) == endpoint

    def test_wrong_values(self):
        """core/http/API.md, "Endpoint API": an update is judged like a creation, and stored whole or not at all."""
        endpoint = self.new_endpoint(self.template)
        for method, path in self.ways(endpoint):
            wrong = {field: values[0] for field, values in WRONG.items() if field != "queuePolicy"}
            answer = self.server.request(method, "/v1" + path, {"name": "changed", "x": 1} | wrong | {"version": 7})
            self.assert_faults(answer, *{"name": 1, "x": 1, **wrong, "version": 7})
            answer = self.server.request(method, "/v1" + path, {"workersMax": 1, "computeType": "GPU"})
            self.assert_faults(answer, "computeType")
            self.assert_refused(self.server.request(method, "/v1" + path, "[]"), 400, member="message")
        assert self.call("GET", "/endpoints/" + endpoint["id"]) == endpoint

    def test_whole_objects(self):
        """core/http/API.md, "Endpoint API": `retention` and `rateLimits` are one field each: an update replaces the
        whole field."""
        endpoint = self.new_endpoint(self.template, retention={"run": 5_000, "runsync": 6_000},
                                     rateLimits={"run": {"requests": 1}, "status": {"requests": 2}})
        now = self.call("PATCH", "/endpoints/" + endpoint["id"],
                        {"retention": {"runsync": 7_000}, "rateLimits": {"run": {"concurrent": 3}}})
        assert (now["retention"], now["rateLimits"]) == ({"runsync": 7_000}, {"run": {"concurrent": 3}})
        now = self.call("PATCH", "/endpoints/" + endpoint["id"], {"retention": {}, "rateLimits": {}})
        assert (now["retention"], now["rateLimits"]) == ({}, {})

    def test_null_is_a_value_where_it_is_told(self):
        """core/decisions/endpoints.md: null sets `maxStuck` and `filters` back to the server's; elsewhere like absent."""
        endpoint = self.new_endpoint(self.template, name="n", maxStuck=1, filters=[], retention={"run": 5_000})
        for method, path in self.ways(endpoint):
            assert self.call(method, path, {"name": None, "retention": None}) == endpoint
            now = self.call(method, path, {"maxStuck": None, "filters": None})
            assert without_force(now) == {**without_force(endpoint), "maxStuck": None, "filters": None}
            assert self.call("GET", "/endpoints/" + endpoint["id"]) == now
            assert self.call(method, path, {"maxStuck": 1, "filters": []}) == endpoint

    def test_several_at_once(self):
        """core/README.md: an update is one conditional step: updates of different fields at once are all kept."""
        endpoint = self.new_endpoint(self.template)
        changes = [{"name": "n"}, {"workersMax": 7}, {"idleTimeout": 9}, {"gpuCount": 4}, {"maxAttempts": 2}]
        with concurrent.futures.ThreadPoolExecutor(len(changes)) as callers:
            list(callers.map(lambda change: self.call("PATCH", "/endpoints/" + endpoint["id"], change), changes))
        now = self.call("GET", "/endpoints/" + endpoint["id"])
        for change in changes:
            assert now == now | change


class ReadTest(EndpointTest):
    def test_lists_and_queries(self, subtests):
        """core/http/API.md, "Endpoint API": a bare array; `includeTemplate` and `includeWorkers` add to each; other
        values are 400."""
        endpoint = self.new_endpoint(self.template)
        for path in ("/endpoints", "/endpoints/" + endpoint["id"]):
            for query, more in (("", {}), ("?includeTemplate=false&includeWorkers=false", {}),
                                ("?includeTemplate=true", {"template": self.template}),
                                ("?includeWorkers=true", {"workers": []}),
                                ("?includeTemplate=true&includeWorkers=true",
                                 {"template": self.template, "workers": []})):
                with subtests.test(path=path, query=query):
                    answer = self.call("GET", path + query)
                    if path == "/endpoints":
                        assert isinstance(answer, list)
                        answer = next(one for one in answer if one["id"] == endpoint["id"])
                    assert answer == {**endpoint, **more}
            response = self.server.request("GET", f"/v1{path}?includeTemplate=yes&includeWorkers=1")
            self.assert_faults(response, "includeTemplate", "includeWorkers")

    def test_workers(self):
        """core/http/API.md, "Endpoint API": workers have the keys of a Pod, their version, and their present work."""
        endpoint = self.new_endpoint(self.template, workersMax=1)
        job = self.server.run(endpoint["id"], {"sleepMs": 600_000})
        self.in_progress(endpoint, job)
        # The storage knows of a claim before the dispatcher has noted which worker has it.
        until(lambda: [each["state"] for each in self.workers(endpoint)] == ["running"], "the worker runs")
        worker, = self.workers(endpoint)
        assert re.search(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z", worker.pop("lastStartedAt"))
        self.server.request("POST", f"/v2/{endpoint['id']}/cancel/{job}")
        node, = self.server.request("GET", "/v1/nodes").json()
        assert worker == {"id": self.server.status(endpoint["id"], job)["workerId"], "desiredStatus": "RUNNING",
                          "node": node["name"],
                          "state": "running", "image": "plugin/trial", "env": {"A": "1"}, "slsVersion": 1,
                          "endpointId": endpoint["id"], "templateId": self.template["id"]}

    @pytest.mark.parametrize("endpoint_id", ["nosuch", "x" * 5000, "..%2f"])
    @pytest.mark.parametrize("method, more", [
        ("GET", ""), ("PATCH", ""), ("POST", "/update"), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")])
    def test_unknown_ids(self, method, more, endpoint_id):
        """core/http/API.md, "Statuses": 404 for an unknown endpoint on every call."""
        body = {"name": "x"} if method in ("PATCH", "POST") else None
        answer = self.server.request(method, f"/v1/endpoints/{endpoint_id}{more}", body)
        self.assert_refused(answer, 404, "endpoint", member="message")

    def test_only_admins(self, subtests):
        """core/http/API.md, "Scopes": changes are the admins': no key, a wrong one and every other scope are 401. A key
        of an endpoint that has every scope reads this endpoint alone."""
        endpoint = self.new_endpoint(self.template)
        other = self.new_endpoint(self.template)
        keys = [self.server.new_key("client", endpoints=[endpoint["id"]]), self.server.new_key("worker"),
                self.server.new_key("admin", endpoints=[endpoint["id"]])]
        for key in keys:
            self.at_end.callback(self.remove, "/keys/" + key["id"])
        path = "/v1/endpoints/" + endpoint["id"]
        reads = [("GET", "/v1/endpoints"), ("GET", path), ("GET", path + "nosuch"), ("GET", "/v1/endpoints/" + other["id"])]
        changes = [("POST", "/v1/endpoints"), ("PATCH", path), ("POST", path + "/update"), ("DELETE", path),
                   ("POST", path + "/pause"), ("POST", path + "/resume")]
        secrets = [None, "nonsense", *[key["key"] for key in keys]]
        for key in secrets:
            for method, target in changes + (reads if key != secrets[-1] else []):
                with subtests.test(key=str(key)[:5], method=method, path=target):
                    self.assert_refused(self.server.request(method, target, {}, key=key), 401, member="message")
        shown = [self.server.request(method, target, key=secrets[-1]) for method, target in reads]
        assert [answer.status for answer in shown] == [200, 200, 404, 404]
        hidden = dict.fromkeys(endpoint["env"], "(hidden)")
        assert shown[0].json() == [shown[1].json()] == [{**endpoint, "env": hidden}]
        assert self.call("GET", "/endpoints/" + endpoint["id"]) == endpoint


@pytest.mark.endpoints("echo", "trial", "parked")
class StaticTest(EndpointTest):
    def test_listed(self):
        """etc/README.md: endpoints from the properties file appear in lists, marked."""
        endpoint = self.new_endpoint(self.template)
        listed = {one["id"]: one for one in self.call("GET", "/endpoints")}
        for name in ("echo", "trial", "parked"):
            assert (listed[name]["static"], listed[name]["templateId"]) == (True, "")
            assert set(listed[name]) == set(endpoint), "with the same keys"
        assert (listed["parked"]["workersMax"], listed["echo"]["image"]) == (0, "plugin/echo")
        assert listed[endpoint["id"]]["static"] is False
        assert self.call("GET", "/endpoints/echo?includeTemplate=true")["template"] is None

    def test_no_changes(self):
        """etc/README.md: endpoints from the properties file refuse changes, with the remedy."""
        before = self.call("GET", "/endpoints/parked")
        for method, more in (("PATCH", ""), ("POST", "/update"), ("DELETE", "")):
            body = None if method == "DELETE" else {"workersMax": 1}
            answer = self.server.request(method, "/v1/endpoints/parked" + more, body)
            self.assert_refused(answer, 400, "parked", "configuration file", member="message")
        assert self.call("GET", "/endpoints/parked") == before
