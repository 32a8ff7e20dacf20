"""nginx and HAProxy in front of a server, with the defaults of the packages and only the settings needed for the start.

    with ReverseProxy("nginx", server) as proxy:
        ...                                  # clients call proxy.port.address
    with ReverseProxy("nginx", server, example=nginx_example()) as proxy:
        ...                                  # the same with etc/nginx.conf
"""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile

from jobq_server import ROOT, die_with_parent, until
from pace import HANG
from reserved_port import ReservedPort

FOLDERS = "/usr/sbin:/usr/bin:/usr/local/sbin"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # folders made by nginx
NGINX = """
events { }
http {
  server { listen 127.0.0.1:8080; location / { proxy_pass http://127.0.0.1:8000; } }
}
"""
HAPROXY = """defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
listen jobq
  bind 127.0.0.1:{port}
  server jobq {server}
"""


def program(name):
    return shutil.which(name, path=FOLDERS)


def missing(*names):
    """Returns the names of missing programs; an empty text if all are installed."""
    absent = [name for name in names if program(name) is None]
    return f"{' and '.join(absent)}: not installed, `scripts/setup.sh test` installs it" if absent else ""


def nginx_example():
    return (pathlib.Path(ROOT) / "etc" / "nginx.conf").read_text(encoding="utf-8")


def nginx_text(configuration, folder, port, server):
    """Returns the configuration for a single process, with the files in the folder and the given addresses."""
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in TEMPORARY)
    for example, own in (("127.0.0.1:8080", f"127.0.0.1:{port}"), ("127.0.0.1:8000", server),
                         ("\nhttp {\n", f"\nhttp {{\n  access_log off; {temporary}\n")):
        assert example in configuration, f"{example} is in the configuration"
        configuration = configuration.replace(example, own)
    return f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n{configuration}"


class ReverseProxy:
    def __init__(self, name, server, example=NGINX):
        self.port = ReservedPort()
        self._folder = tempfile.mkdtemp(prefix="jobq-proxy-")
        address = "{}:{}".format(*server.address)
        file = pathlib.Path(self._folder) / "configuration"
        if name == "nginx":
            file.write_text(nginx_text(example, self._folder, self.port.number, address), encoding="utf-8")
            call = ["-c", str(file), "-e", "stderr"]
        else:
            file.write_text(HAPROXY.format(port=self.port.number, server=address), encoding="utf-8")
            call = ["-db", "-f", str(file)]
        with open(file.with_name("log"), "wb") as log:
            self._process = subprocess.Popen([program(name), *call], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             preexec_fn=die_with_parent)
        try:
            until(self._listens, f"{name} listens")
        except BaseException:
            self.close()
            raise

    def _listens(self):
        if self._process.poll() is not None:
            raise AssertionError((pathlib.Path(self._folder) / "log").read_text(encoding="utf-8", errors="replace"))
        with contextlib.suppress(OSError), socket.create_connection(self.port.address, 1):
            return True
        return False

    def close(self):
        self._process.kill()
        self._process.wait(HANG)
        self.port.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
