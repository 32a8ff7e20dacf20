"""core/http/API.md, "Template" and "Template API": the fields of a template, the refusals, and its removal. The effect
of a change on endpoints: test_releases.py."""

import concurrent.futures
import re

import pytest

from management_api import ManagementTest

DEFAULTS = {
    "category": "NVIDIA", "containerDiskInGb": 50, "containerRegistryAuthId": "", "dockerEntrypoint": [],
    "dockerStartCmd": [], "env": {}, "isPublic": False, "isServerless": False, "ports": ["8888/http", "22/tcp"],
    "readme": "", "volumeInGb": 20, "volumeMountPath": "/workspace", "earned": 0, "isRunpod": False, "runtimeInMin": 0,
}
EVERY_FIELD = {
    "category": "CPU", "containerDiskInGb": 7, "containerRegistryAuthId": "auth-1",
    "dockerEntrypoint": ["/bin/sh", "-c"], "dockerStartCmd": ["echo", "a b", ""],
    "env": {"KEY": "value", "EMPTY": "", "ZWÖLF": "boxkämpfer \"jagen\"\n"}, "isPublic": True, "isServerless": True,
    "ports": ["1/http", "65535/tcp", "00080/http"], "readme": "# Read *me*\n", "volumeInGb": 0,
    "volumeMountPath": "/data",
}
FIXED = ("category", "isServerless")  # not changeable later
TOLD_ONLY = ("id", "earned", "isRunpod", "runtimeInMin")
WRONG = {
    "name": ["", 1, True, [], {}, "n" * 192],
    "imageName": ["", 7, [], "i" * 513, "plugin/", "plugin/a b", "plugin/../x", "plugin/" + "n" * 65, "plugin/echo/",
                  "lua/", "lua/ä", "lua/a.lua"],
    "category": ["nvidia", "", "TPU", 1, ["CPU"]],
    "containerDiskInGb": [-1, 1.5, "50", True, 1e30],
    "containerRegistryAuthId": [1, {}],
    "dockerEntrypoint": ["sh", [1], [["sh"]], {}],
    "dockerStartCmd": ["sh", [None], {}],
    "env": [[], "A=1", {"A": 1}, {"A": None}, {"A": {}}, {"": "x"}, {"A=B": "x"}, {"A\0B": "x"}, {"A": "x\0"}],
    "isPublic": ["true", 1, 0],
    "isServerless": ["false", 0],
    "ports": ["80/http", ["80"], ["80/udp"], ["0/http"], ["65536/tcp"], ["/http"], ["80/HTTP"], ["80/http "],
              ["000080/tcp"], ["-1/tcp"], [80], ["80/http", "x"], ["80/tcp/tcp"], [" 80/tcp"], {}],
    "readme": [1, [], "r" * (512 * 1024 + 1)],
    "volumeInGb": [-1, 0.5, "20", []],
    "volumeMountPath": ["", "workspace", "./x", 1, "/" + "p" * 1024],
}


class TemplateTest(ManagementTest):
    def post(self, body, **more):
        return self.server.request("POST", "/v1/templates", body, **more)

    def refused(self, *fields, **body):
        """Refused with a fault for each of the fields; nothing was stored."""
        message = self.assert_faults(self.post({"name": "never stored", "imageName": "plugin/echo", **body}), *fields)
        assert "never stored" not in [template["name"] for template in self.call("GET", "/templates")]
        return message


class CreateTest(TemplateTest):
    def test_defaults(self):
        """core/http/API.md, "Template API": `imageName` and `name` are enough; every field of the table is in the
        answer."""
        made = self.new_template(name="just a name", imageName="plugin/echo")
        assert made == {"id": made["id"], "name": "just a name", "imageName": "plugin/echo", **DEFAULTS}
        assert self.call("GET", "/templates/" + made["id"]) == made

    def test_every_field(self):
        """core/http/API.md, "Template": every field is taken and given back unchanged."""
        made = self.new_template(**EVERY_FIELD)
        for name, value in EVERY_FIELD.items():
            assert made[name] == value, name
        assert set(made) == {"id", "name", "imageName", *DEFAULTS}
        assert self.call("GET", "/templates/" + made["id"]) == made

    @pytest.mark.parametrize("name, value", EVERY_FIELD.items(), ids=EVERY_FIELD)
    def test_each_field_alone(self, name, value):
        """core/http/API.md, "Template API": each other field is optional and has its default."""
        made = self.new_template(**{name: value})
        assert made == {"id": made["id"], "name": made["name"], "imageName": "plugin/trial", **DEFAULTS, name: value}

    def test_each_category(self):
        """core/http/API.md, "Template": `category` is one of three."""
        for category in ("NVIDIA", "AMD", "CPU"):
            assert self.new_template(category=category)["category"] == category

    def test_null_is_like_absent(self):
        """core/http/API.md, "Template API": a field with value null has its default, and an
        unknown one is ignored."""
        made = self.new_template(**{name: None for name in [*EVERY_FIELD, "unknown", ""]})
        assert {name: made[name] for name in DEFAULTS} == DEFAULTS

    def test_ids(self):
        """core/http/API.md, "Ids": template ids have 10 lower-case alphanumerics."""
        ids = {self.new_template()["id"] for _ in range(5)}
        assert len(ids) == 5
        for template_id in ids:
            assert re.search(r"\A[a-z0-9]{10}\Z", template_id)

    @pytest.mark.parametrize("image", [
        "plugin/nosuch", "plugin/" + "n" * 64, "plugin/A-Z_9", "lua/script", "busybox", "plugin",
        "a.io:5000/b/c@sha256:0123", "Plugin/echo", "xplugin/a b", "ä " * 20])
    def test_images(self, image):
        """core/http/API.md, "Images": names after plugin/ and lua/ match [A-Za-z0-9_-]{1,64}; others are remote
        workers'."""
        assert self.new_template(imageName=image)["imageName"] == image

    def test_large_readme(self):
        """core/http/API.md, "Template": `readme` is markdown, and may be long."""
        readme = "# r\n" * (128 * 1024)
        assert self.new_template(readme=readme)["readme"] == readme

    def test_form_content_type_is_read_as_json(self):
        """core/http/API.md, "Answers": the content type of a request has no effect."""
        answer = self.post({"name": "as a form", "imageName": "x"},
                           headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.remove("/templates/" + self.assert_job(answer)["id"])


class RefusalTest(TemplateTest):
    @pytest.mark.parametrize("field, value", [(field, value) for field, values in WRONG.items() for value in values])
    def test_wrong_values(self, field, value):
        """core/http/API.md, "Template": each constraint of each field; a wrong one is 400 and named."""
        self.refused(field, **{field: value})

    def test_all_faults_in_one_answer(self):
        """core/http/API.md, "Template API": a message for each wrong field, all in one answer, in the order of the
        request."""
        wrong = {field: values[-1] for field, values in WRONG.items()}
        self.assert_faults(self.post(wrong), *wrong)
        self.assert_faults(self.post({"ports": ["x"], "imageNam": "y", "isPublic": 1}),
                           "ports", "imageNam", "isPublic", "name", "imageName")

    def test_required_fields(self):
        """core/http/API.md, "Template API": `name` and `imageName` are required."""
        self.assert_faults(self.post({}), "name", "imageName")
        self.assert_faults(self.post({"name": "never stored", "imageName": None}), "imageName")
        self.assert_faults(self.post({"imageName": "x", "name": 1}), "name")

    def test_unknown_keys(self, subtests):
        """core/http/API.md, "Template": unknown keys are 400, naming the nearest known key."""
        for key, nearest in (("imagename", "imageName"), ("nam", "name"), ("volumeInGB", "volumeInGb"),
                             ("dockerStartCommand", "dockerStartCmd"), ("Env", "env"), ("port", "ports")):
            with subtests.test(key=key):
                assert f"nearest one is {nearest}" in self.refused(key, **{key: "x"})
        assert "nearest one is imageName" in self.refused("image", image="x"), "a shared word is preferred"
        assert "nearest" not in self.refused("k" * 64 + "...", **{"k" * 5000: 1})

    @pytest.mark.parametrize("field", TOLD_ONLY)
    def test_fields_of_the_answer(self, field):
        """core/http/API.md, "Template": `id`, `earned`, `isRunpod`, `runtimeInMin` are fields of the response only."""
        self.refused(field, **{field: DEFAULTS.get(field, "abcdefghij")})

    def test_a_key_twice(self):
        """core/http/API.md, "JSON": a duplicate key is 400, here in the fields of `env` too."""
        self.assert_faults(self.post('{"name":"a","imageName":"x","name":"b"}'), "name")
        self.assert_faults(self.post('{"name":"a","imageName":"x","env":{"A":"1","A":"2"}}'), "env")
        self.assert_faults(self.post('{"name":"a","imageName":"x","\\u006eame":"b"}'), "name")

    @pytest.mark.parametrize("body", [
        "", "[]", "null", '"x"', "{", '{"name":}', '{"name":"\\ud800","imageName":"x"}', "{}x", b"\xff{}"])
    def test_malformed_bodies(self, body):
        """core/http/API.md, "Shape": malformed is 400, of `/v1` with a `message`."""
        self.assert_refused(self.post(body), 400, member="message")

    def test_too_large(self):
        """core/http/API.md, "Statuses": a body over the limit is 413."""
        self.assert_refused(self.post({"readme": "r" * (2 << 20)}), 413, member="message")


class NameTest(TemplateTest):
    def test_taken(self):
        """core/http/API.md, "Template": names are unique; 400 names the other template's id."""
        made = self.new_template(name="the only one")
        assert made["id"] in self.refused("name", name="the only one")
        assert self.new_template(name="The only one")["id"] != made["id"], "another name"

    def test_taken_by_a_change(self):
        """core/http/API.md, "Template": names stay unique when a template is renamed."""
        first, second = self.new_template(name="first of two"), self.new_template(name="second of two")
        path = "/templates/" + second["id"]
        answer = self.server.request("PATCH", "/v1" + path, {"name": "first of two", "readme": "x"})
        assert first["id"] in self.assert_faults(answer, "name")
        assert self.call("GET", path) == second, "nothing of it was stored"
        assert self.call("PATCH", path, {"name": "second of two"}) == second, "its own name is its own"

    def test_free_again(self):
        """core/http/API.md, "Template": a name is taken as long as its template has the name."""
        first = self.new_template(name="comes and goes")
        self.call("PATCH", "/templates/" + first["id"], {"name": "has gone"})
        second = self.new_template(name="comes and goes")
        self.remove("/templates/" + second["id"])
        self.new_template(name="comes and goes")

    def test_eight_at_once(self):
        """core/http/API.md, "Template": of several callers with the same name at once, exactly one gets the name."""
        body = {"name": "wanted by all", "imageName": "plugin/echo"}
        with concurrent.futures.ThreadPoolExecutor(8) as callers:
            answers = list(callers.map(lambda _: self.post(body), range(8)))
        made = [answer.json()["id"] for answer in answers if answer.status == 200]
        assert len(made) == 1
        for answer in answers:
            if answer.status != 200:
                assert made[0] in self.assert_faults(answer, "name")
        self.remove("/templates/" + made[0])


class UpdateTest(TemplateTest):
    CHANGES = {**{name: value for name, value in EVERY_FIELD.items() if name not in FIXED},
               "name": "updated", "imageName": "plugin/echo"}

    def ways(self, template):
        return ("PATCH", f"/templates/{template['id']}"), ("POST", f"/templates/{template['id']}/update")

    def test_each_field(self, subtests):
        """core/http/API.md, "Template API": every field but two can be changed, by PATCH and by POST; the others
        stay."""
        template = self.new_template()
        for method, path in self.ways(template):
            now = dict(template)
            for name, value in self.CHANGES.items():
                with subtests.test(method=method, field=name):
                    now[name] = value
                    assert self.call(method, path, {name: value}) == now
                    assert self.call("GET", "/templates/" + template["id"]) == now
            back = {name: template[name] for name in self.CHANGES}
            assert self.call(method, path, back) == template

    def test_an_empty_update(self):
        """core/http/API.md, "Template API": every field of an update is optional."""
        template = self.new_template(**EVERY_FIELD)
        for method, path in self.ways(template):
            for body in ({}, {"readme": None, "category": None}):
                assert self.call(method, path, body) == template

    def test_fixed_fields(self, subtests):
        """core/http/API.md, "Template": `category` and `isServerless` are not changeable later."""
        template = self.new_template(**EVERY_FIELD)
        for method, path in self.ways(template):
            for field in FIXED:
                with subtests.test(method=method, field=field):
                    answer = self.server.request(method, "/v1" + path, {field: template[field], "readme": "changed"})
                    self.assert_faults(answer, field)
        assert self.call("GET", "/templates/" + template["id"]) == template

    def test_wrong_values(self):
        """core/http/API.md, "Template API": an update is judged like a creation, and stored whole or not."""
        template = self.new_template()
        wrong = {field: values[0] for field, values in WRONG.items() if field not in FIXED}
        for method, path in self.ways(template):
            body = {**wrong, "runtimeInMin": 1, "x": 1}
            self.assert_faults(self.server.request(method, "/v1" + path, body), *body)
            answer = self.server.request(method, "/v1" + path, {"readme": "changed", "volumeInGb": -1})
            self.assert_faults(answer, "volumeInGb")
            self.assert_refused(self.server.request(method, "/v1" + path, "[]"), 400, member="message")
            self.assert_refused(self.server.request(method, "/v1" + path, ""), 400, member="message")
        assert self.call("GET", "/templates/" + template["id"]) == template

    def test_env_is_replaced(self):
        """core/http/API.md, "Template": `env` is one field: an update replaces the whole field."""
        template = self.new_template(env={"A": "1", "B": "2"})
        now = self.call("PATCH", "/templates/" + template["id"], {"env": {"C": "3"}})
        assert now["env"] == {"C": "3"}
        assert self.call("PATCH", "/templates/" + template["id"], {"env": {}})["env"] == {}

    def test_two_at_once(self):
        """core/README.md: an update is one conditional step: updates of different fields at once are all kept."""
        template = self.new_template()
        path = "/templates/" + template["id"]
        changes = [{"readme": "r"}, {"volumeInGb": 3}, {"env": {"A": "1"}}, {"isPublic": True},
                   {"dockerStartCmd": ["x"]}, {"volumeMountPath": "/w"}]
        with concurrent.futures.ThreadPoolExecutor(len(changes)) as callers:
            list(callers.map(lambda change: self.call("PATCH", path, change), changes))
        now = self.call("GET", path)
        for change in changes:
            assert now == now | change


class ReadTest(TemplateTest):
    def test_the_list(self):
        """core/http/API.md, "Template API": the list is a bare array of all templates, each as GET of it."""
        made = [self.new_template(), self.new_template(**EVERY_FIELD)]
        listed = self.call("GET", "/templates")
        assert isinstance(listed, list)
        for template in made:
            assert template in listed

    def test_queries(self, subtests):
        """core/http/API.md, "Template API": the `include…` booleans are accepted, and show all; other values are
        400."""
        template = self.new_template()
        names = ("includeEndpointBoundTemplates", "includePublicTemplates", "includeRunpodTemplates")
        for path in ("/templates", "/templates/" + template["id"]):
            plain = self.call("GET", path)
            for name in names:
                for value in ("true", "false"):
                    assert self.call("GET", f"{path}?{name}={value}") == plain
                for value in ("1", "TRUE", "", "maybe"):
                    with subtests.test(path=path, name=name, value=value):
                        self.assert_faults(self.server.request("GET", f"/v1{path}?{name}={value}"), name)
            answer = self.server.request("GET", f"/v1{path}?" + "&".join(name + "=x" for name in names))
            self.assert_faults(answer, *names)

    @pytest.mark.parametrize("template_id", ["nosuch", "x" * 5000, "..%2f"])
    @pytest.mark.parametrize("method, more", [("GET", ""), ("PATCH", ""), ("POST", "/update"), ("DELETE", "")])
    def test_unknown_ids(self, method, more, template_id):
        """core/http/API.md, "Statuses": 404 for an unknown template on every call."""
        answer = self.server.request(method, f"/v1/templates/{template_id}{more}",
                                     None if method in ("GET", "DELETE") else {"readme": "x"})
        self.assert_refused(answer, 404, "template", member="message")

    @pytest.mark.parametrize("method, path, allowed", [
        ("PUT", "/v1/templates", {"GET", "POST"}), ("DELETE", "/v1/templates", {"GET", "POST"}),
        ("POST", "/v1/templates/x", {"GET", "PATCH", "DELETE"}), ("GET", "/v1/templates/x/update", {"POST"})])
    def test_methods(self, method, path, allowed):
        """core/http/API.md, "Statuses": a wrong method is 405 with `Allow`."""
        answer = self.server.request(method, path)
        self.assert_refused(answer, 405, member="message")
        assert allowed <= set(answer.headers["Allow"].replace(" ", "").split(","))


class DeleteTest(TemplateTest):
    def test_deleted(self):
        """core/http/API.md, "Template API": DELETE is 204 with an empty body; the template is gone."""
        template = self.new_template()
        self.remove("/templates/" + template["id"])
        for method in ("GET", "DELETE"):
            answer = self.server.request(method, "/v1/templates/" + template["id"])
            self.assert_refused(answer, 404, template["id"], member="message")
        assert template["id"] not in [one["id"] for one in self.call("GET", "/templates")]

    def test_in_use(self):
        """core/http/API.md, "Template API": DELETE of a template in use is 400, as long as it is in use."""
        template = self.new_template()
        endpoints = [self.new_endpoint(template), self.new_endpoint(template)]
        other = self.new_template()
        for _ in endpoints:
            answer = self.server.request("DELETE", "/v1/templates/" + template["id"])
            self.assert_refused(answer, 400, "used by endpoint", member="message")
            users = [one for one in endpoints if one["id"] in answer.json()["message"]]
            assert len(users) == 1, "it says by whom"
            assert self.call("GET", "/templates/" + template["id"]) == template
            if users[0] is endpoints[0]:
                self.remove("/endpoints/" + users[0]["id"])
            else:
                self.call("PATCH", "/endpoints/" + users[0]["id"], {"templateId": other["id"]})
        self.remove("/templates/" + template["id"])


class PermissionTest(TemplateTest):
    def test_only_admins(self, subtests):
        """core/http/API.md, "Scopes": `/v1` is the admins': no key, a wrong one and every other scope are 401."""
        template = self.new_template()
        keys = [self.server.new_key("client"), self.server.new_key("worker"),
                self.server.new_key("admin", endpoints=["echo"])]
        for key in keys:
            self.at_end.callback(self.remove, "/keys/" + key["id"])
        path = "/v1/templates/" + template["id"]
        for key in (None, "nonsense", *[key["key"] for key in keys]):
            for method, target in (("GET", "/v1/templates"), ("POST", "/v1/templates"), ("GET", path), ("PATCH", path),
                                   ("POST", path + "/update"), ("DELETE", path), ("GET", path + "nosuch")):
                with subtests.test(key=str(key)[:5], method=method, path=target):
                    body = {"name": "x", "imageName": "y"} if method in ("POST", "PATCH") else None
                    self.assert_refused(self.server.request(method, target, body, key=key), 401, member="message")
        assert self.call("GET", "/templates/" + template["id"]) == template
