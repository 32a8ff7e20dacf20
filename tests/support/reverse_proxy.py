"""nginx and HAProxy in front of a server, as their packages come: nothing is set that is not needed to start them.

    with ReverseProxy("nginx", server) as proxy:
        ...                                  # clients call proxy.port.address
"""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile

from jobq_server import die_with_parent, until
from pace import HANG
from reserved_port import ReservedPort

FOLDERS = "/usr/sbin:/usr/bin:/usr/local/sbin"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # folders that nginx makes
NGINX = """daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{ }}
http {{
  access_log off;
  {temporary}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{server}; }} }}
}}
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
    """Says which of the programs are not installed; an empty text if all are."""
    absent = [name for name in names if program(name) is None]
    return f"{' and '.join(absent)}: not installed, `scripts/setup.sh test` installs it" if absent else ""


class ReverseProxy:
    def __init__(self, name, server):
        self.port = ReservedPort()
        self._folder = tempfile.mkdtemp(prefix="jobq-proxy-")
        temporary = " ".join(f"{kind}_temp_path {self._folder}/{kind};" for kind in TEMPORARY)
        fields = {"folder": self._folder, "port": self.port.number, "server": "{}:{}".format(*server.address)}
        file = pathlib.Path(self._folder) / "configuration"
        if name == "nginx":
            file.write_text(NGINX.format(temporary=temporary, **fields), encoding="utf-8")
            call = ["-c", str(file), "-e", "stderr"]
        else:
            file.write_text(HAPROXY.format(**fields), encoding="utf-8")
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
