"""A cluster of MariaDB servers with Galera on one machine, with the database `jobq` and the user of the same name.

The servers start as after the loss of power of a whole cluster: all servers have equal data and remember the same last
view. The servers find each other within seconds, without a copy of data between servers.
"""
import os
import pathlib
import shutil
import subprocess
import uuid

import machine

PROVIDER = pathlib.Path("/usr/lib/galera/libgalera_smm.so")
LONGEST_QUERY = 60.0  # seconds
LONGEST_REPORT = 5.0  # seconds for a query to a server, because the server may hang
LONGEST_TAIL = 80  # lines of a server's log in the report of a failure
USERS = ("CREATE DATABASE jobq; CREATE USER jobq@'127.0.0.1'; GRANT ALL ON jobq.* TO jobq@'127.0.0.1'; "
         "CREATE USER haproxy@'127.0.0.1'")


def missing():
    """Returns the name of an absent program or library, or `None`."""
    for name in ("mariadbd", "mariadb-install-db", "mariadb", "rsync", "haproxy"):
        if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin"):
            return name
    return None if PROVIDER.exists() else str(PROVIDER)


class Database:
    """A server of the cluster, with a folder. The process runs between start() and stop() or kill()."""

    def __init__(self, number, folder, ports):
        self.number, self.name, self.folder = number, f"db-{number}", folder
        self.port, self.group, self.transfer, self.copy = (ports.reserve() for _ in range(4))
        self.id = str(uuid.UUID(int=number << 96 | 1 << 76))
        self.process = None

    @property
    def socket(self):
        return f"{self.folder}/{self.name}.socket"

    @property
    def data(self):
        return f"{self.folder}/{self.name}"

    @property
    def temporary(self):
        """The folder of temporary tables. On start, a server removes every #sql* file there, also files of other
        servers."""
        return f"{self.folder}/{self.name}.tmp"

    @property
    def log(self):
        return f"{self.folder}/{self.name}.log"

    def arguments(self, peers, donors):
        provider = (f"gmcast.listen_addr=tcp://127.0.0.1:{self.group};base_port={self.group};"
                    f"ist.recv_addr=127.0.0.1:{self.transfer};gcache.size=64M")
        return ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}",
                f"--pid-file={self.folder}/{self.name}.pid", f"--tmpdir={self.temporary}",
                f"--log-error={self.log}",
                "--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve",
                "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M", "--max-allowed-packet=64M",
                "--innodb-flush-log-at-trx-commit=1", "--performance-schema=OFF", "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", f"--wsrep-provider={PROVIDER}",
                "--wsrep-cluster-name=jobq", f"--wsrep-cluster-address=gcomm://{','.join(peers)}",
                f"--wsrep-node-name={self.name}", f"--wsrep-node-address=127.0.0.1:{self.group}",
                "--wsrep-sst-method=rsync", f"--wsrep-sst-receive-address=127.0.0.1:{self.copy}",
                f"--wsrep-sst-donor={','.join(donors)}", f"--wsrep-provider-options={provider}"]

    def kill(self):
        """Kills the process as `kill -9` does."""
        machine.end(self.process, 9)

    def query(self, sql, database="", deadline=LONGEST_QUERY):
        """Returns the rows as lists of texts. Raises ClusterError with the server's words if the query fails, or if no
        answer comes within `deadline` seconds."""
        try:
            done = subprocess.run(["mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch",
                                   "--skip-column-names", f"--execute={sql}", *([database] if database else [])],
                                  capture_output=True, text=True, timeout=deadline, check=False)
        except subprocess.TimeoutExpired:
            raise machine.ClusterError(f"{self.name}: no answer within {deadline:g} s") from None
        if done.returncode != 0:
            raise machine.ClusterError(f"{self.name}: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def status(self, deadline=LONGEST_QUERY):
        """Returns the variables of the state of replication, or an empty dict if the server does not answer."""
        try:
            return dict(self.query("SHOW GLOBAL STATUS LIKE 'wsrep%'", deadline=deadline))
        except machine.ClusterError:
            return {}

    def is_synced(self, size):
        """Returns whether the server works in a cluster of so many servers. Raises ClusterError if the process ended."""
        if self.process.poll() is not None:
            raise machine.ClusterError(f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}")
        status = self.status()
        return (status.get("wsrep_local_state_comment") == "Synced" and status.get("wsrep_ready") == "ON"
                and status.get("wsrep_cluster_size") == str(size))

    def state(self):
        """Returns the state of replication and the last error of the log, in a line for the report of a failure."""
        status = self.status(LONGEST_REPORT)
        names = ("cluster_status", "cluster_size", "local_state_comment", "ready", "last_committed")
        state = ", ".join(f"{name} {status[f'wsrep_{name}']}" for name in names if f"wsrep_{name}" in status)
        if self.process.poll() is not None:
            state = f"ended with {self.process.returncode}"
        errors = [line for line in self.log_tail(None).splitlines() if "[ERROR]" in line]
        return f"{self.name}: {state or 'no answer'}; last error: {errors[-1] if errors else 'none'}"

    def log_tail(self, lines=15):
        """Returns the last lines of the log. `None` returns all lines."""
        try:
            text = pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-(lines or 0):])


class Databases:
    """The cluster, in a separate folder. form() starts the cluster; remove() leaves no process and no file."""

    def __init__(self, folder, count, ports):
        self.folder = pathlib.Path(folder)
        self.user = "mysql" if os.geteuid() == 0 else None
        self.folder.mkdir(mode=0o711)
        self._own(self.folder)
        self.all = [Database(number, str(self.folder), ports) for number in range(1, count + 1)]
        for database in self.all:
            os.mkdir(database.temporary, mode=0o700)
            self._own(database.temporary)
        self.peers = [f"127.0.0.1:{database.group}" for database in self.all]

    def __getitem__(self, position):
        return self.all[position]

    def __len__(self):
        return len(self.all)

    def form(self):
        """Makes the data and starts all servers."""
        self._seed()
        if len(self.all) == 1:
            self.start(self.all[0], "--wsrep-new-cluster")
        else:
            for database in self.all:
                self.start(database)
        self._await_synced(f"a synced server of {len(self.all)}")

    def start(self, database, *more):
        """Starts a server and returns at once. The previous server is the first donor of data."""
        others = self.all[database.number:] + self.all[:database.number - 1]
        donors = [other.name for other in reversed(others)]
        arguments = database.arguments(self.peers, donors)
        database.process = machine.start([*arguments, *more], database.log, self.user, group_of_its_own=True)

    def restart(self, *killed):
        """Starts killed servers again and waits until all servers are synced. Each server first finds the last position
        of the local data, then gets the missed changes from another server."""
        for database in killed:
            self._start_at_position(database)
        self._await_synced("synced again")

    def _await_synced(self, awaited):
        """Waits until every server is synced. Raises ClusterError after the deadline, or as soon as the process of a
        server has ended. The first line of the error has the state of each server; the ends of all logs follow."""
        try:
            for database in self.all:
                machine.until(lambda asked=database: self._all_run() and asked.is_synced(len(self.all)),
                              f"{database.name} is {awaited}")
        except machine.ClusterError as error:
            states = "; ".join(each.state() for each in self.all)
            logs = "\n".join(f"--- {each.name}\n{each.log_tail(LONGEST_TAIL)}" for each in self.all)
            raise machine.ClusterError(f"{str(error).splitlines()[0]}; {states}\n{logs}") from None

    def _all_run(self):
        """Returns true. Raises ClusterError if the process of a server has ended."""
        for database in self.all:
            if database.process.poll() is not None:
                raise machine.ClusterError(f"{database.name} ended")
        return True

    def _start_at_position(self, database):
        former = os.path.getsize(database.log)
        recover = machine.start([*database.arguments(self.peers, []), "--wsrep-recover"], database.log, self.user)
        machine.until(lambda: recover.poll() is not None, f"{database.name} has found the position of its data")
        with open(database.log, encoding="utf-8", errors="replace") as file:
            file.seek(former)
            position = [line.rpartition("position: ")[2] for line in file if "Recovered position: " in line]
        if recover.returncode != 0 or not position:
            raise machine.ClusterError(f"{database.name} cannot find the position of its data:\n{database.log_tail()}")
        self.start(database, f"--wsrep-start-position={position[-1].strip()}")

    def remove(self):
        for database in self.all:
            if database.process is not None:
                machine.end(database.process, 9)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _own(self, path):
        if self.user:
            shutil.chown(path, self.user, self.user)

    def _seed(self):
        """Makes the data of the first server, stops the server, and copies the data to the other servers."""
        first = self.all[0]
        installed = machine.start(
            ["/usr/bin/mariadb-install-db", "--no-defaults", f"--datadir={first.data}", f"--tmpdir={first.temporary}",
             "--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=64M"],
            f"{self.folder}/install.log", self.user)
        machine.until(lambda: installed.poll() is not None, "mariadb-install-db has ended")
        arguments = first.arguments([], [])
        first.process = machine.start([*arguments, "--wsrep-new-cluster"], first.log, self.user)
        machine.until(lambda: first.is_synced(1), "the first server has made its data")
        first.query(USERS)
        machine.end(first.process)
        pathlib.Path(first.data, "galera.cache").unlink()
        for database in self.all[1:]:
            shutil.copytree(first.data, database.data)
        for database in self.all:
            if len(self.all) > 1:
                self._remember(database)
            for folder, _, files in os.walk(database.data):
                self._own(folder)
                for name in files:
                    self._own(f"{folder}/{name}")

    def _remember(self, database):
        """Writes the files for the servers to find each other after the loss of the whole cluster."""
        members = "".join(f"member: {other.id} 0\n" for other in self.all)
        pathlib.Path(database.data, "gvwstate.dat").write_text(
            f"my_uuid: {database.id}\n#vwbeg\nview_id: 3 {self.all[0].id} 3\nbootstrap: 0\n{members}#vwend\n",
            encoding="ascii")
        state = pathlib.Path(database.data, "grastate.dat")
        state.write_text(state.read_text(encoding="ascii").replace("bootstrap: 1", "bootstrap: 0"), encoding="ascii")
