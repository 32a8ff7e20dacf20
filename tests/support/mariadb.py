"""A throw-away MariaDB server of a test, with a separate folder, port of 127.0.0.1 and socket, and without account or
service.

    with Mariadb() as database:
        server = Server(**database.settings())
        database.kill()
        database.start()

Start the server on the main thread: the kernel kills the server at the end of the starting thread.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from jobq_api import until
from jobq_server import die_with_parent
from reserved_port import ReservedPort

SERVER = "/usr/sbin/mariadbd"
USER = "jobq"
PASSWORD = "a password of the tests"
NAME = "jobq"

OPTIONS = ("--bind-address=127.0.0.1", "--skip-name-resolve", "--character-set-server=utf8mb4",
           "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M", "--innodb-flush-log-at-trx-commit=1",
           "--max-allowed-packet=64M", "--max-connections=500", "--skip-log-bin", "--performance-schema=OFF")
DEADLINE = 90.0  # seconds: bounds a hang, and judges no pace


class Mariadb:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="jobq-mariadb-")
        self.port = ReservedPort()
        self.socket = os.path.join(self.folder, "db.sock")
        self.log_file = os.path.join(self.folder, "log")
        self.options = options
        self.process = None
        try:
            self._install()
            self.start()
            self.query(f"CREATE DATABASE {NAME}; CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';"
                       f"GRANT ALL ON {NAME}.* TO '{USER}'@'127.0.0.1'")
        except BaseException:
            self.remove()
            raise

    def _install(self):
        # On start, mariadbd removes every #sql* file of the tmpdir, also the temporary tables of another server.
        done = subprocess.run(["mariadb-install-db", "--no-defaults", self._user(), f"--datadir={self._data()}",
                               f"--tmpdir={self.folder}", "--auth-root-authentication-method=normal",
                               "--skip-test-db", "--innodb-log-file-size=96M"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False, preexec_fn=die_with_parent)
        assert done.returncode == 0, done.stdout + done.stderr

    @staticmethod
    def _user():
        return f"--user={pwd.getpwuid(os.geteuid()).pw_name}"

    def _data(self):
        return os.path.join(self.folder, "data")

    def start(self):
        """Starts the server on the existing files. Returns when the server greets a client."""
        files = [f"--datadir={self._data()}", f"--socket={self.socket}", f"--port={self.port.number}",
                 f"--pid-file={self.folder}/pid", f"--log-error={self.log_file}", f"--tmpdir={self.folder}"]
        self.process = subprocess.Popen([SERVER, "--no-defaults", self._user(), *files, *OPTIONS, *self.options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        until(self._greets_or_died, "the database server greets a client", DEADLINE)
        assert self.process.poll() is None, f"the database server ended at its start:\n{self.log_tail()}"

    def _greets_or_died(self):
        if self.process.poll() is not None:
            return True
        try:
            with socket.create_connection(self.port.address, timeout=DEADLINE) as plain:
                return plain.recv(5)[4:] == b"\x0a"  # the version of the protocol
        except OSError:
            return False

    def kill(self):
        """Ends the server like a crash."""
        self.process.kill()
        self.process.wait(DEADLINE)

    def stop(self):
        """Ends the server cleanly."""
        self.process.terminate()
        self.process.wait(DEADLINE)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def query(self, statements, database=""):
        """Runs statements as the administrator. Returns the rows of the answer, each a list of texts."""
        done = subprocess.run(["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch",
                               "--skip-column-names", f"--execute={statements}", database],
                              capture_output=True, text=True, timeout=DEADLINE, check=False, preexec_fn=die_with_parent)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def settings(self, port=None):
        """Returns the settings of jobqd for this database; `port` is the port of a proxy in front of the database."""
        return {"storage": "mysql", "storage.mysql.host": "127.0.0.1", "storage.mysql.user": USER,
                "storage.mysql.port": port or self.port.number, "storage.mysql.password": PASSWORD,
                "storage.mysql.database": NAME}

    def log_tail(self, lines=40):
        try:
            with open(self.log_file, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except FileNotFoundError:
            return ""

    def remove(self):
        """Leaves no process and no file."""
        if self.running:
            self.kill()
        self.port.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
