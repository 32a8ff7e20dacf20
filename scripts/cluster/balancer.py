"""HAProxy with the addresses of a cluster on one machine in place of the addresses of etc/haproxy.cfg."""
import pathlib
import re
import shutil
import socket
import subprocess

import machine

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "etc/haproxy.cfg"
LONGEST_ANSWER = 20.0  # seconds


def program():
    return shutil.which("haproxy") or "/usr/sbin/haproxy"


def configuration(folder, binds, servers):
    """Returns the text of the example with other addresses. `binds` has the port of each section, and `servers` the
    ports of the servers in each section. The names of the servers keep the form of the example: node-1, node-2, and so
    on. Raises ClusterError if the example does not have a section as expected."""
    text = re.sub(r"stats socket \S+", f"stats socket {folder}/haproxy.socket", EXAMPLE.read_text(encoding="utf-8"))
    parts = re.split(r"(?m)^(?=listen )", text)
    for position, part in enumerate(parts[1:], 1):
        name = part.split()[1]
        lines = re.findall(r"(?m)^  server (\w+-)\d+ \S+( .*)$", part)
        if name not in binds or not lines or part.count("  bind ") != 1:
            raise machine.ClusterError(f"{EXAMPLE} has no section {name} with one address and with servers")
        part = re.sub(r"(?m)^  bind .*$", f"  bind 127.0.0.1:{binds[name]}", part)
        part = re.sub(r"(?m)^  server .*\n", "", part).rstrip("\n") + "\n"
        for number, port in enumerate(servers[name], 1):
            form, options = lines[min(number, len(lines)) - 1]
            part += f"  server {form}{number} 127.0.0.1:{port}{options}\n"
        parts[position] = part + "\n"
    return "".join(parts)


class Balancer:
    """HAProxy in the foreground. start() waits until HAProxy listens."""

    def __init__(self, folder, ports, nodes, databases):
        self.folder = pathlib.Path(folder)
        self.binds = {"jobq": ports.reserve(), "database": ports.reserve()}
        self.servers = {"jobq": nodes, "database": databases}
        self.file = self.folder / "haproxy.cfg"
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.binds['jobq']}"

    def start(self, change=lambda text: text):
        """Starts HAProxy with the example. `change` returns the changed text of the example."""
        self.file.write_text(change(configuration(self.folder, self.binds, self.servers)), encoding="utf-8")
        self.process = machine.start([program(), "-db", "-f", str(self.file)], str(self.folder / "haproxy.log"),
                                     group_of_its_own=True)
        machine.until(self._listens, "HAProxy listens")
        return self

    def stop(self):
        machine.end(self.process)

    def ask(self, command):
        """Sends a command to the socket of HAProxy, and returns the answer."""
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(LONGEST_ANSWER)
            plain.connect(str(self.folder / "haproxy.socket"))
            plain.sendall(command.encode() + b"\n")
            answer = b""
            while part := plain.recv(65536):
                answer += part
        return answer.decode()

    def states(self, section):
        """Returns the states of the servers of a section, such as UP or DOWN, by the names of the servers."""
        lines = [line.split(",") for line in self.ask("show stat -1 4 -1").lstrip("# ").splitlines() if line]
        columns = lines[0]
        rows = [dict(zip(columns, line)) for line in lines[1:]]
        return {row["svname"]: row["status"].split()[0] for row in rows if row["pxname"] == section}

    def writer(self):
        """Returns the name of the database server that gets the connections, or `None` if no server is up."""
        return next((name for name, state in self.states("database").items() if state == "UP"), None)

    def _listens(self):
        if self.process.poll() is not None:
            log = (self.folder / "haproxy.log").read_text(encoding="utf-8", errors="replace")
            raise machine.ClusterError(f"HAProxy ended with {self.process.returncode}:\n{log}")
        try:
            # HAProxy accepts connections a moment before the socket for commands has a name.
            with socket.create_connection(("127.0.0.1", self.binds["jobq"]), timeout=LONGEST_ANSWER):
                return bool(self.ask("show info"))
        except OSError:
            return False


def judge_example():
    """Returns the errors and warnings of HAProxy about the example in etc; an empty text if the example is right."""
    done = subprocess.run([program(), "-c", "-q", "-f", str(EXAMPLE)], capture_output=True, text=True, check=False,
                          timeout=machine.LONGEST_START)
    return (done.stdout + done.stderr).strip() if done.returncode != 0 or done.stderr else ""
