"""etc/cluster.md: jobqctl storage probe: the checks of a database server without a start of jobqd."""

import json
import os
import subprocess

import pytest

import mariadb
from jobq_server import JOBQCTL, ROOT
from jobqctl_case import NOWHERE, OK, REFUSED, USAGE

CHECKS = ["connection", "version", "writable", "packet", "durability", "binlog", "isolation", "clock", "servers",
          "schema", "changes", "locks"]


@pytest.fixture(scope="module")
def database():
    if not os.path.exists(mariadb.SERVER):
        pytest.skip("the program mariadbd is missing; scripts/setup.sh test installs it")
    with mariadb.Mariadb() as server:
        server.query("CREATE DATABASE jobs")
        yield server


def probe(*arguments, code):
    """Runs the command with the address of no server: the command needs none."""
    done = subprocess.run([JOBQCTL, "storage", "probe", *arguments], env={**os.environ, "JOBQ_URL": NOWHERE},
                          capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def results(done):
    """Returns {check: (result, text)} of a table."""
    lines = [line.split(None, 2) for line in done.stdout.partition("\n\n")[0].splitlines()]
    assert lines[0] == ["CHECK", "RESULT", "TEXT"]
    return {check: (result, text) for check, result, text in lines[1:]}


def settings_of(database, tmp_path):
    file = tmp_path / "jobq.properties"
    file.write_text(f"storage = mysql\nstorage.mysql.socket = {database.socket}\nstorage.mysql.user = root\n"
                    f"storage.mysql.database = jobs\ndata.dir = {tmp_path}/data\n")
    return str(file)


def test_each_check_of_a_good_database_passes_and_no_trace_is_left(database, tmp_path):
    found = results(probe("--config", settings_of(database, tmp_path), code=OK))
    assert list(found) == CHECKS
    assert {result for result, _ in found.values()} == {"ok"}
    assert database.query("SHOW TABLES FROM jobs") == []
    assert not (tmp_path / "data").exists()


def test_a_warning_is_no_refusal(database, tmp_path):
    database.query("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    found = results(probe("--config", settings_of(database, tmp_path), code=OK))
    database.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    assert found["durability"][0] == "warning"
    assert "innodb_flush_log_at_trx_commit" in found["durability"][1]


def test_a_refusal_has_the_code_1_and_a_remedy(database, tmp_path):
    config = settings_of(database, tmp_path)
    database.query("SET GLOBAL read_only = 1")
    done = probe("--config", config, "--json", code=REFUSED)
    database.query("SET GLOBAL read_only = 0")
    failed = [one for one in json.loads(done.stdout) if one["result"] == "failed"]
    assert [one["check"] for one in failed] == ["writable"]
    assert "storage.mysql.host" in failed[0]["text"]
    found = results(probe("--config", config, "--set", "storage.mysql.database=absent", code=REFUSED))
    assert list(found) == ["connection"]
    assert "create the database" in found["connection"][1]


def test_six_lines_of_sql_make_the_database(tmp_path):
    """etc/cluster.md, "Set up": the statements for a new server. The password is the administrator's choice."""
    config = tmp_path / "jobq.properties"
    password = tmp_path / "password"
    password.write_text("it's a secret\n")
    with mariadb.Mariadb("--max-allowed-packet=16M", "--innodb-flush-log-at-trx-commit=2") as server:
        config.write_text(f"storage = mysql\nstorage.mysql.socket = {server.socket}\nstorage.mysql.user = new-user\n"
                          f"storage.mysql.database = new-jobs\nstorage.mysql.passwordFile = {password}\n")
        head, lines = probe("--config", str(config), code=REFUSED).stdout.strip().split("\n\n")
        assert "connection" in head
        comment, *statements = lines.splitlines()
        assert comment.startswith("-- ")
        assert len(statements) == 6
        for statement in statements:
            server.query(statement.replace("the password of storage.mysql.passwordFile", "it\\'s a secret"))
        found = results(probe("--config", str(config), code=OK))
        assert {result for result, _ in found.values()} == {"ok"}


def test_an_absent_server_is_named(tmp_path):
    file = tmp_path / "jobq.properties"
    file.write_text("storage = mysql\n")
    found = results(probe("--config", str(file), "--set", f"storage.mysql.socket={tmp_path}/none.sock", code=REFUSED))
    assert found["connection"][0] == "failed"
    assert "none.sock" in found["connection"][1]


@pytest.mark.parametrize("storage", ["sqlite", "memory"])
def test_a_storage_without_a_server_has_nothing_to_check(storage):
    config = ["--config", "etc/jobq.properties", "--set", f"storage={storage}"]
    assert probe(*config, code=OK).stdout == f"The storage {storage} needs no server, so there is nothing to check.\n"
    assert json.loads(probe(*config, "--json", code=OK).stdout) == []


@pytest.mark.parametrize("arguments, code, named", [
    (["--set", "storage"], USAGE, "KEY=VALUE"),
    (["--set", "storage.mysql.hots=x"], REFUSED, "storage.mysql.host"),
    (["--set", "storage=oracle"], REFUSED, "oracle"),
    (["--config", "etc/none.properties"], REFUSED, "none.properties"),
])
def test_a_wrong_setting_is_one_sentence(arguments, code, named):
    done = probe(*arguments, code=code)
    assert done.stdout == ""
    assert done.stderr.startswith("jobqctl: ") and done.stderr.count("\n") == 1
    assert named in done.stderr
