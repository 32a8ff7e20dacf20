"""Clients written by common generators from GET /openapi.json (tests/support/generated_clients.py): the clients can be
imported or compiled, and work. tests/clients/test_generated_clients.py tests the clients beside remote workers."""

import importlib
import json
import pathlib
import shutil
import subprocess

import pytest

from generated_clients import LONGEST, call_operation, described, python_client, typescript_program
from http_case import HttpTest


class GeneratedTest(HttpTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(storage="memory")


@pytest.mark.timeout(2 * LONGEST)
class PythonTest(GeneratedTest):
    @pytest.fixture
    def package(self, tmp_path):
        with python_client(described(self.server, tmp_path), tmp_path) as package:
            yield package

    def test_every_operation_is_there(self, package):
        """Each operation has a module: operations unknown to the generator would be left out with a warning."""
        modules = [path.stem for path in pathlib.Path(package.__path__[0], "api").glob("*/*.py")]
        document = self.server.request("GET", "/openapi.json", key=None).json()
        operations = [method for methods in document["paths"].values() for method in methods if method != "parameters"]
        assert len(modules) - modules.count("__init__") == len(operations)

    def test_a_day_of_work(self, package):
        """A template, an endpoint, a job, the job's chunks and log, with the types of the generated client."""
        models = importlib.import_module("generated_jobq.models")
        client = package.AuthenticatedClient(base_url=self.server.url, token=self.server.key,
                                             raise_on_unexpected_status=True)
        env = models.TemplateInputEnvType0.from_dict({"QUALITY": "85"})
        template = call_operation("templates.create_template", client=client,
                                  body=models.TemplateInput(name="generated", image_name="plugin/echo", env=env))
        assert template.env.to_dict() == {"QUALITY": "85"}
        endpoint = call_operation("endpoints.create_endpoint", client=client,
                                  body=models.EndpointInput(template_id=template.id)).id
        job = call_operation("jobs.runsync", endpoint=endpoint, client=client,
                             body=models.JobRequest.from_dict({"input": {"hello": "generated"}}))
        assert (job.status, job.output) == ("COMPLETED", {"hello": "generated"})
        stream = call_operation("jobs_for_sd_ks.stream_for_sdk", endpoint=endpoint, id=job.id, client=client)
        assert (stream.status, stream.stream) == ("COMPLETED", [])
        log = call_operation("jobs.logs", endpoint=endpoint, id=job.id, client=client)
        assert (log.status, log.lines) == ("COMPLETED", [])
        split = models.Chunk.from_dict({"output": "{", "partial": True})
        assert split.to_dict() == {"output": "{", "partial": True}


@pytest.mark.timeout(2 * LONGEST)
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
class TypeScriptTest(GeneratedTest):
    def test_the_generated_client_compiles_and_works(self, tmp_path):
        """The program compiles: the types of the requests and answers match the use in the program."""
        program = typescript_program(described(self.server, tmp_path), "generated.ts")
        told = subprocess.run(["node", program, self.server.url, self.server.key], capture_output=True, text=True,
                              check=False, timeout=LONGEST)
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout) == {
            "env": {"QUALITY": "85"}, "status": "COMPLETED", "output": {"hello": "typed"},
            "stream": {"status": "COMPLETED", "stream": []}, "lines": []}
