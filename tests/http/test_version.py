"""All parts of a tree have one version, JOBQ_VERSION in CMakeLists.txt, and CHANGELOG.md begins with it."""
import os
import re
import subprocess

from jobq_server import BUILD, ROOT, Server
from pace import HANG


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def printed(program):
    """Returns what `program --version` prints."""
    return subprocess.run([os.path.join(BUILD, "bin", program), "--version"], capture_output=True, text=True, check=True,
                          timeout=HANG).stdout


def test_all_parts_have_the_version_of_the_changelog():
    version = re.search(r"^## \[(\d+\.\d+\.\d+(?:-dev)?)\]", text_of(ROOT, "CHANGELOG.md"), re.MULTILINE)[1]
    for program in ("jobqd", "jobqctl", "jobq-worker"):
        assert printed(program) == f"{program} {version}\n"
    with Server() as server:
        assert server.request("GET", "/openapi.json", key=None).json()["info"]["version"] == version
    assert f'set(PACKAGE_VERSION "{version}")' in text_of(BUILD, "sdk", "jobq-sdkConfigVersion.cmake")
