"""Clients written by common generators from GET /openapi.json.

Python: openapi-python-client, pinned in tests/requirements.txt. TypeScript: openapi-typescript and openapi-fetch, pinned in
tests/openapi/package-lock.json and installed under <build>/openapi on the first run.

    with python_client(described(server, folder), folder) as package:
        call_operation("jobs.runsync", client=package.AuthenticatedClient(...), ...)

    program = typescript_program(described(server, folder), "generated.ts")    # node runs it
"""

import contextlib
import fcntl
import importlib
import pathlib
import pkgutil
import shutil
import subprocess
import sys

from jobq_server import BUILD, ROOT

SOURCES = pathlib.Path(ROOT) / "tests" / "openapi"
PACKAGE = "generated_jobq"
LONGEST = 240  # seconds on a busy machine


def run(*command, cwd):
    """Runs a program, expects success, and returns the output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LONGEST)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def described(server, folder):
    """Returns the path of the server's description, a file in the folder."""
    path = folder / "openapi.json"
    path.write_bytes(server.request("GET", "/openapi.json", key=None).body)
    return path


@contextlib.contextmanager
def python_client(description, folder):
    """The package, written into the folder and imported whole."""
    told = run(sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--output-path",
               folder / PACKAGE, "--meta", "none", cwd=folder)
    assert "removal of" not in told, told
    assert "Unable to" not in told, told
    sys.path.insert(0, str(folder))
    try:
        package = importlib.import_module(PACKAGE)
        for module in pkgutil.walk_packages(package.__path__, PACKAGE + "."):
            importlib.import_module(module.name)
        yield package
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
            del sys.modules[name]


def call_operation(operation, **arguments):
    """Calls an operation by the name of the module, like templates.create_template, and returns the result."""
    return importlib.import_module(f"{PACKAGE}.api.{operation}").sync(**arguments)


def typescript_program(description, source):
    """Compiles a program of tests/openapi with the types made from the description. Returns the path of the compiled
    program."""
    packages = pathlib.Path(BUILD) / "openapi"
    packages.mkdir(parents=True, exist_ok=True)
    with open(packages / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may begin at once
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / name, packages)
        if not (packages / "node_modules/typescript").exists():
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=packages)
    folder = packages / pathlib.Path(source).stem
    folder.mkdir(exist_ok=True)
    shutil.copy(SOURCES / "tsconfig.json", folder)
    shutil.copy(SOURCES / source, folder / "program.ts")
    programs = packages / "node_modules/.bin"
    run(programs / "openapi-typescript", description, "-o", folder / "api.d.ts", "--default-non-nullable", "false",
        cwd=packages)
    run(programs / "tsc", "--project", folder, cwd=folder)
    return folder / "program.js"
