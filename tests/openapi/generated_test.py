"""Clients written by common generators from GET /openapi.json: the clients can be imported or compiled, and work.

Python: openapi-python-client, pinned in tests/requirements.txt. TypeScript: openapi-typescript and openapi-fetch, pinned in
package-lock.json and installed under <build>/openapi on the first run.
"""

import importlib
import json
import pathlib
import pkgutil
import shutil
import subprocess
import sys

import pytest

from http_case import HttpTest
from jobq_server import BUILD

HERE = pathlib.Path(__file__).resolve().parent
LONGEST = 240  # seconds on a busy machine


def run(*command, cwd):
    """Returns the output of a program that has to succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LONGEST)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class GeneratedTest(HttpTest):
    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, class_server):
        return class_server(storage="memory")

    def description(self, folder):
        path = folder / "openapi.json"
        path.write_bytes(self.server.request("GET", "/openapi.json", key=None).body)
        return path


@pytest.mark.timeout(2 * LONGEST)
class PythonTest(GeneratedTest):
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """The package, written and imported whole."""
        described = self.description(tmp_path)
        told = run(sys.executable, "-m", "openapi_python_client", "generate", "--path", described, "--output-path",
                   tmp_path / "generated_jobq", "--meta", "none", cwd=tmp_path)
        assert "removal of" not in told, told
        assert "Unable to" not in told, told
        monkeypatch.syspath_prepend(str(tmp_path))
        package = importlib.import_module("generated_jobq")
        for module in pkgutil.walk_packages(package.__path__, "generated_jobq."):
            importlib.import_module(module.name)
        yield package
        for name in [name for name in sys.modules if name.startswith("generated_jobq")]:
            del sys.modules[name]

    @staticmethod
    def call(operation, **arguments):
        """Calls an operation by its module, like templates.create_template, and returns the result."""
        return importlib.import_module(f"generated_jobq.api.{operation}").sync(**arguments)

    def test_every_operation_is_there(self, package):
        """Each operation has a module: operations unknown to the generator would be left out with a warning."""
        modules = [path.stem for path in pathlib.Path(package.__path__[0], "api").glob("*/*.py")]
        document = self.server.request("GET", "/openapi.json", key=None).json()
        operations = [method for methods in document["paths"].values() for method in methods if method != "parameters"]
        assert len(modules) - modules.count("__init__") == len(operations)

    def test_a_day_of_work(self, package):
        """A template, an endpoint, a job, its chunks and its log, with the types that were written."""
        models = importlib.import_module("generated_jobq.models")
        client = package.AuthenticatedClient(base_url=self.server.url, token=self.server.key,
                                             raise_on_unexpected_status=True)
        env = models.TemplateInputEnvType0.from_dict({"QUALITY": "85"})
        template = self.call("templates.create_template", client=client,
                             body=models.TemplateInput(name="generated", image_name="plugin/echo", env=env))
        assert template.env.to_dict() == {"QUALITY": "85"}
        endpoint = self.call("endpoints.create_endpoint", client=client,
                             body=models.EndpointInput(template_id=template.id)).id
        job = self.call("jobs.runsync", endpoint=endpoint, client=client,
                        body=models.JobRequest.from_dict({"input": {"hello": "generated"}}))
        assert (job.status, job.output) == ("COMPLETED", {"hello": "generated"})
        stream = self.call("jobs_for_sd_ks.stream_for_sdk", endpoint=endpoint, id=job.id, client=client)
        assert (stream.status, stream.stream) == ("COMPLETED", [])
        log = self.call("jobs.logs", endpoint=endpoint, id=job.id, client=client)
        assert (log.status, log.lines) == ("COMPLETED", [])
        split = models.Chunk.from_dict({"output": "{", "partial": True})
        assert split.to_dict() == {"output": "{", "partial": True}


@pytest.mark.timeout(2 * LONGEST)
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
class TypeScriptTest(GeneratedTest):
    def test_it_compiles_and_works(self):
        """The types of the request and the answer of each call are what the program takes them for."""
        folder = pathlib.Path(BUILD) / "openapi"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", "tsconfig.json", "generated.ts"):
            shutil.copy(HERE / name, folder)
        if not (folder / "node_modules/typescript").exists():
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
        programs = folder / "node_modules/.bin"
        run(programs / "openapi-typescript", self.description(folder), "-o", folder / "api.d.ts",
            "--default-non-nullable", "false", cwd=folder)
        run(programs / "tsc", "--project", folder, cwd=folder)
        told = subprocess.run(["node", folder / "generated.js", self.server.url, self.server.key], capture_output=True,
                              text=True, check=False, timeout=LONGEST)
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout) == {
            "env": {"QUALITY": "85"}, "status": "COMPLETED", "output": {"hello": "typed"},
            "stream": {"status": "COMPLETED", "stream": []}, "lines": []}
