"""The files of `cmake --install` work at the new place: the server with plugins, scripts and configuration, jobqctl,
jobq-worker, and the sdk. The project of a plugin's author outside of the tree finds the sdk with
find_package(jobq-sdk)."""

import os
import re
import shutil
import subprocess

import pytest
from jobq_server import BUILD, ROOT, Server
from jobq_worker import JobqWorker

TEMPLATE = os.path.join(ROOT, "sdk", "template")
LONGEST_BUILD = 200  # seconds


def run(*command, cwd=None, env=None):
    """Runs a program, expects success, and returns the output."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=LONGEST_BUILD)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder outside of the tree, removed at the end: pytest would keep the megabytes of three runs."""
    folder = str(tmp_path_factory.mktemp("install"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def prefix(outside):
    """jobq, installed."""
    folder = os.path.join(outside, "prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def build_template(outside, name, *options):
    """Builds a copy of the template and returns the plugins.path from the output of CMake."""
    source, binary = os.path.join(outside, name), os.path.join(outside, name + "-build")
    shutil.copytree(TEMPLATE, source)
    said = run("cmake", "-G", "Ninja", "-S", source, "-B", binary, *options)
    run("cmake", "--build", binary)
    assert os.path.exists(os.path.join(binary, "libjobq_handler_hello.so"))
    with open(os.path.join(binary, "build.ninja"), encoding="utf-8") as file:
        assert "-O2" in file.read(), "a plugin is optimised unless its author says otherwise"
    return re.search(r"--set plugins\.path=(\S+)", said)[1]


class InstalledTest:
    def test_the_server_with_a_plugin_of_the_installed_sdk(self, outside, prefix):
        """find_package(jobq-sdk): the plugin loads in the installed server, beside the installed plugins and scripts."""
        with open(os.path.join(ROOT, "sdk", "README.md"), encoding="utf-8") as page:
            option = re.search(r"^cmake -S tools -B tools/build (-D\w+=)/usr/local$", page.read(), re.M)[1]
        plugins = build_template(outside, "hello", option + prefix)
        programs = os.path.join(prefix, "bin")
        with Server(start=False, plugins__path=plugins, endpoint__hello__image="plugin/hello",
                    endpoint__words__image="lua/word_frequency", endpoint__far__image="docker.io/acme/worker:1",
                    limits__enabled="true") as server:
            server.program = os.path.join(programs, "jobqd")
            server.start()
            assert server.runsync("hello", {"name": "you"})["output"] == {"greeting": "Hello, you!"}
            words = server.runsync("words", {"text": "to be or not to be"})
            assert words["status"] == "COMPLETED", words
            env = {**os.environ, "JOBQ_URL": server.url, "JOBQ_KEY": server.key}
            assert "Hello, jobqctl!" in run(os.path.join(programs, "jobqctl"), "run", "hello", '{"name":"jobqctl"}',
                                            "--sync", env=env)
            worker = os.path.join(programs, "jobq-worker")
            with JobqWorker(server, "far", "lua/word_frequency", program=worker):
                assert server.runsync("far", {"text": "to be or not to be"})["output"] == words["output"]

    def test_the_installed_configuration(self, prefix, tmp_path):
        """The installed file is valid at the installed place: the server finds plugins and scripts beside the
        programs."""
        jobqd = os.path.join(prefix, "bin", "jobqd")
        file = os.path.join(prefix, "etc", "jobq", "jobq.properties")
        run(jobqd, "--config", file, "--check", "--set", f"data.dir={tmp_path}", cwd=tmp_path)
        script = os.path.join(prefix, "share", "jobq", "lua", "handlers", "reverse_text.lua")
        assert "hello" in run(os.path.join(prefix, "bin", "jobqctl"), "lua", "run", script, "--input",
                              '{"text":"olleh"}', cwd=tmp_path)


    def test_a_later_installation_keeps_the_settings(self, prefix):
        """etc/operation.md, "Install": a change of the administrator outlives the next installation."""
        file = os.path.join(prefix, "etc", "jobq", "jobq.properties")
        with open(file, "a", encoding="utf-8") as settings:
            settings.write("# mine\n")
        assert "Kept: " in run("cmake", "--install", BUILD, "--prefix", prefix)
        with open(file, encoding="utf-8") as settings:
            assert settings.read().endswith("# mine\n")

    def test_the_unit_runs_the_installed_server(self, prefix, tmp_path):
        """etc/operation.md, "Install": five commands; the unit names the installed program and settings, and the home of
        the user is the data directory."""
        with open(os.path.join(ROOT, "etc/operation.md"), encoding="utf-8") as page:
            block = re.search(r"## Install\n.*?```sh no-run[^\n]*\n(.*?)```", page.read(), re.DOTALL)[1]
        commands = block.splitlines()
        assert len(commands) == 5
        assert commands[0].split()[0] == "scripts/setup.sh"
        assert commands[4] == "sudo systemctl enable --now jobqd"
        with open(os.path.join(prefix, "lib/systemd/system/jobqd.service"), encoding="utf-8") as file:
            text = file.read().replace("/usr/local", prefix)
        unit = tmp_path / "jobqd.service"
        unit.write_text(text)
        start = re.search(r"^ExecStart=(.*)$", text, re.M)[1].split()
        said = run(*start, "--check")
        data = re.search(r"^data\.dir: (.*)$", said, re.M)[1]
        assert f"--home-dir {data.replace(prefix, '/usr/local')} " + re.search(r"^User=(\w+)$", text, re.M)[1] in block
        if shutil.which("systemd-analyze"):
            run("systemd-analyze", "verify", "--man=no", str(unit))


class SourceTest:
    def test_a_plugin_of_the_sdk_folder(self, outside):
        """Without an installation, a plugin's project needs only the sdk folder of the tree."""
        sdk = shutil.copytree(os.path.join(ROOT, "sdk"), os.path.join(outside, "sdk"))
        build_template(outside, "hello-of-sources", f"-DJOBQ_SDK={sdk}")

    def test_a_copy_of_the_smallest_handler(self, outside):
        """core/README.md, "Where do I add ...": a copied folder, named in plugins/CMakeLists.txt, is built too."""
        tree = os.path.join(outside, "tree")
        for folder in ("core", "plugins", "sdk", "etc", "scripts"):
            shutil.copytree(os.path.join(ROOT, folder), os.path.join(tree, folder),
                            ignore=shutil.ignore_patterns("*-data", "__pycache__"))
        shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), tree)
        folder = os.path.join(tree, "plugins")
        shutil.copytree(os.path.join(folder, "handler_echo"), os.path.join(folder, "handler_mine"))
        for name, old, new in (("handler_mine/plugin.cpp", '"echo"', '"mine"'),
                               ("CMakeLists.txt", "handler_echo", "handler_echo handler_mine")):
            source = os.path.join(folder, name)
            with open(source, encoding="utf-8") as file:
                text = file.read()
            assert old in text
            with open(source, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
        run("cmake", "-G", "Ninja", "-S", tree, "-B", os.path.join(tree, "build"), "-DJOBQ_TESTS=OFF")
        run("cmake", "--build", os.path.join(tree, "build"), "--target", "jobq_handler_mine")
        plugins = f"{BUILD}/plugins:{tree}/build/plugins"
        with Server(plugins__path=plugins, endpoint__mine__image="plugin/mine") as server:
            assert server.runsync("mine", {"a": 1})["output"] == {"a": 1}

    @pytest.mark.parametrize("left_out", [["IMAGE"], ["IMAGE", "LUA", "SQLITE", "WEBHOOK_HTTP"]], ids=len)
    def test_plugins_left_out(self, tmp_path, left_out):
        """core/decisions/build.md: JOBQ_PLUGIN_<NAME>=OFF leaves the plugin out, and the installed file needs no absent
        plugin."""
        build = str(tmp_path / "build")
        run("cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DJOBQ_TESTS=OFF",
            *(f"-DJOBQ_PLUGIN_{name}=OFF" for name in left_out))
        targets = run("ninja", "-C", build, "-t", "targets", "all")
        built = set(re.findall(r"^plugins/(libjobq_\w+[.]so): ", targets, re.M))
        every = {name for name in os.listdir(os.path.join(BUILD, "plugins")) if name.startswith("libjobq_")}
        assert len(every - built) == len(left_out), every - built
        plugins = tmp_path / "plugins"
        plugins.mkdir()
        for name in built:
            os.symlink(os.path.join(BUILD, "plugins", name), plugins / name)
        run(os.path.join(BUILD, "bin", "jobqd"), "--config", os.path.join(build, "installed", "jobq.properties"),
            "--check", "--set", f"plugins.path={plugins}", "--set", f"data.dir={tmp_path}/data",
            "--set", f"scripts.path={ROOT}/scripts/lua")
