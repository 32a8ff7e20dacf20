"""GET /openapi.json: the description of the API is sound in itself, and what it says is so. tests/openapi has a fuzzer
that goes through all of it; house_openapi_test.cpp compares it with the server's own list of routes."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))

from jobq_server import JOBQD, HttpTest  # noqa: E402

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
    def setUp(self):
        super().setUp()
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

    def call(self, method, path, **more):
        return self.server.request(method, re.sub(r"\{\w+\}", NOBODY, path), **more)

    def defaults(self, schema):
        properties = self.document["components"]["schemas"][schema]["properties"]
        return {name: field["default"] for name, field in properties.items() if "default" in field}

    def test_it_is_told_without_a_key(self):
        """decisions.md, Addresses: `GET /openapi.json`; wire.md 4.1: without a key."""
        reply = self.server.request("GET", "/openapi.json", key=None)
        self.assertEqual(reply.status, 200)
        self.assert_json(reply)
        self.assertRegex(reply.json()["openapi"], r"\A3\.1\.\d+\Z")
        self.assertEqual(self.server.request("HEAD", "/openapi.json", key=None).status, 200)

    def test_its_version_is_the_servers(self):
        if self.server.process is None:
            self.skipTest("the server at JOBQ_URL has a version of its own")
        told = subprocess.run([JOBQD, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
        self.assertEqual(told.split(), ["jobqd", self.document["info"]["version"]])

    def test_it_hangs_together(self):
        """What it refers to is there, what is there is used, and each operation has a name of its own."""
        used = set(references(self.document))
        for reference in used:
            with self.subTest(reference):
                self.assertIsInstance(self.find(reference), dict)
        there = {f"#/components/{kind}/{name}" for kind, things in self.document["components"].items()
                 for name in things if kind != "securitySchemes"}
        # What any path may answer belongs to no operation.
        self.assertEqual(there - used, {"#/components/responses/MethodNotAllowed"})
        names = [operation["operationId"] for _, _, operation in self.operations()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_placeholder_is_a_parameter(self):
        for path, methods in self.document["paths"].items():
            with self.subTest(path):
                parameters = [self.find(parameter["$ref"]) for parameter in methods.get("parameters", [])]
                named = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
                self.assertEqual(named, set(re.findall(r"\{(\w+)\}", path)))

    def test_every_operation_is_there(self):
        """Another answer than 404 for the path and 405 for the method; and a status that is documented."""
        self.assertGreater(len(list(self.operations())), 40)
        for method, path, operation in self.operations():
            with self.subTest(f"{method} {path}"):
                reply = self.call(method, path)
                self.assertIn(str(reply.status), operation["responses"])
                self.assertNotIn(b"there is nothing at", reply.body)
                self.assertNotEqual(reply.status, 405)

    def test_what_needs_a_key_says_so(self):
        for method, path, operation in self.operations():
            with self.subTest(f"{method} {path}"):
                free = operation.get("security", self.document["security"]) == []
                self.assertEqual(self.call(method, path, key=None).status == 401, not free)
                self.assertEqual("401" in operation["responses"], not free)

    def test_another_method_is_405_with_allow(self):
        """Its components: MethodNotAllowed; `Allow` names the methods that it documents, and HEAD with GET."""
        for path, methods in self.document["paths"].items():
            with self.subTest(path):
                reply = self.call("PUT", path)
                self.assertEqual(reply.status, 405)
                documented = {method.upper() for method in methods if method != "parameters"}
                self.assertEqual(set(reply.headers["Allow"].split(", ")),
                                 documented | ({"HEAD"} if "GET" in documented else set()))

    def test_its_defaults_are_the_servers(self):
        template = self.server.request("POST", "/v1/templates", {"name": "openapi", "imageName": "plugin/echo"}).json()
        self.addCleanup(self.server.request, "DELETE", "/v1/templates/" + template["id"])
        endpoint = self.server.request("POST", "/v1/endpoints", {"templateId": template["id"]}).json()
        self.addCleanup(self.server.request, "DELETE", "/v1/endpoints/" + endpoint["id"])
        for thing, schema in ((template, "TemplateInput"), (endpoint, "EndpointInput")):
            with self.subTest(schema):
                defaults = self.defaults(schema)
                self.assertGreater(len(defaults), 10)
                self.assertEqual({name: thing[name] for name in defaults}, defaults)

    def test_a_broken_target_is_refused_in_the_shape_of_its_api(self):
        """decisions.md, Answers: `{"message"}` under /v1, else `{"error"}`, also when the query is not encoded."""
        for path, member in (("/v1/templates", "message"), ("/v2/echo/health", "error")):
            with self.subTest(path):
                self.assert_refused(self.server.request("GET", path + "?a=%00"), 400, member=member)


if __name__ == "__main__":
    unittest.main()
