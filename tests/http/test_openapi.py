"""GET /openapi.json: the description of the API is sound in itself, and what it says is so. tests/openapi has a fuzzer
that goes through all of it; server_openapi_test.cpp compares it with the server's own list of routes."""

import concurrent.futures
import re
import urllib.parse

import pytest

from http_case import HttpTest

NOBODY = "nobody"


def references(node):
    """Every "$ref" below the node."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


class OpenapiTest(HttpTest):
    @pytest.fixture(autouse=True)
    def description(self, question):
        self.document = self.server.request("GET", "/openapi.json", key=None).json()

    def operations(self):
        """(method, path, operation) of each."""
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                if method != "parameters":
                    yield method.upper(), path, operation

    def find(self, reference):
        node = self.document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        return node

    def test_the_server_is_relative_to_the_document(self):
        """core/http/API.md: a client from a document below a path of a proxy calls below the same path."""
        (server,) = self.document["servers"]
        for base in ("http://h/", "https://h/jobq/"):
            assert urllib.parse.urljoin(base + "openapi.json", server["url"]) == base

    def call(self, method, path, **more):
        return self.server.request(method, re.sub(r"\{\w+\}", NOBODY, path), **more)

    def call_all(self, **more):
        """Returns (method, path, operation, answer) of each operation. The calls run at the same time, because a refused
        call of a remote worker is answered three seconds later."""
        operations = list(self.operations())
        with concurrent.futures.ThreadPoolExecutor(len(operations)) as pool:
            calls = [pool.submit(self.call, method, path, **more) for method, path, _ in operations]
            return [(*operation, call.result()) for operation, call in zip(operations, calls)]

    def defaults(self, schema):
        properties = self.document["components"]["schemas"][schema]["properties"]
        return {name: field["default"] for name, field in properties.items() if "default" in field}

    def test_the_description_needs_no_key(self):
        """core/http/API.md, "Addresses": `GET /openapi.json` needs no key."""
        answer = self.server.request("GET", "/openapi.json", key=None)
        assert answer.status == 200
        self.assert_json(answer)
        assert re.search(r"\A3\.1\.\d+\Z", answer.json()["openapi"])
        assert self.server.request("HEAD", "/openapi.json", key=None).status == 200

    def test_all_references_are_resolved_and_used(self, subtests):
        """Every reference leads to a component, every component is used, and each operation has a name of its own."""
        used = set(references(self.document))
        for reference in used:
            with subtests.test(reference):
                assert isinstance(self.find(reference), dict)
        there = {f"#/components/{kind}/{name}" for kind, things in self.document["components"].items()
                 for name in things if kind != "securitySchemes"}
        # Answers of any path belong to no operation.
        assert there - used == {"#/components/responses/MethodNotAllowed"}
        names = [operation["operationId"] for _, _, operation in self.operations()]
        assert len(names) == len(set(names))

    def test_every_placeholder_is_a_parameter(self, subtests):
        for path, methods in self.document["paths"].items():
            with subtests.test(path):
                parameters = [self.find(parameter["$ref"]) for parameter in methods.get("parameters", [])]
                named = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
                assert named == set(re.findall(r"\{(\w+)\}", path))

    def test_every_operation_is_there(self, subtests):
        """Another answer than 404 for the path and 405 for the method; and a status that is documented."""
        assert len(list(self.operations())) > 40
        for method, path, operation, answer in self.call_all():
            with subtests.test(f"{method} {path}"):
                assert str(answer.status) in operation["responses"]
                assert b"there is nothing at" not in answer.body
                assert answer.status != 405

    def test_operations_with_a_key_say_so(self, subtests):
        for method, path, operation, answer in self.call_all(key=None):
            with subtests.test(f"{method} {path}"):
                free = operation.get("security", self.document["security"]) == []
                assert (answer.status == 401) == (not free)
                assert ("401" in operation["responses"]) == (not free)

    def test_another_method_is_405_with_allow(self, subtests):
        """Its components: MethodNotAllowed; `Allow` names the methods that it documents, and HEAD with GET, but where HEAD
        would take or run a job (core/http/API.md, "Requests")."""
        for path, methods in self.document["paths"].items():
            with subtests.test(path):
                answer = self.call("PUT", path)
                assert answer.status == 405
                documented = {method.upper() for method in methods if method != "parameters"}
                if "GET" in documented and not re.search("/openai/|/job-take", path):
                    documented.add("HEAD")
                assert set(answer.headers["Allow"].split(", ")) == documented

    def test_the_defaults_are_the_servers(self, subtests):
        template = self.server.request("POST", "/v1/templates", {"name": "openapi", "imageName": "plugin/echo"}).json()
        self.at_end.callback(self.server.request, "DELETE", "/v1/templates/" + template["id"])
        endpoint = self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]}).json()
        self.at_end.callback(self.server.request, "DELETE", "/v1/endpoints/" + endpoint["id"])
        for thing, schema in ((template, "TemplateInput"), (endpoint, "EndpointInput")):
            with subtests.test(schema):
                defaults = self.defaults(schema)
                assert len(defaults) > 10
                assert {name: thing[name] for name in defaults} == defaults

    @pytest.mark.parametrize("path, member", [("/v1/templates", "message"), ("/v2/echo/health", "error")])
    def test_a_broken_target_is_refused_in_the_shape_of_the_api(self, path, member):
        """core/http/API.md, "Shape": `{"message"}` under /v1, else `{"error"}`, also when the query is not encoded."""
        self.assert_refused(self.server.request("GET", path + "?a=%00"), 400, member=member)
