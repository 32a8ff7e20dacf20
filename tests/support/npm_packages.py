"""The npm packages of public clients, pinned in tests/clients/package-lock.json."""

import fcntl
import hashlib
import pathlib
import shutil
import subprocess

from jobq_server import BUILD, ROOT

CLIENTS = pathlib.Path(ROOT) / "tests" / "clients"
LONGEST = 240  # seconds on a busy machine


def installed(*scripts):
    """Returns the folder <build>/clients with the packages and the scripts. The first call installs the packages, and
    so does the first call after a change of the lock file."""
    folder = pathlib.Path(BUILD) / "clients"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may begin at once
        for name in ("package.json", "package-lock.json", *scripts):
            shutil.copy(CLIENTS / name, folder)
        wanted = hashlib.sha256((CLIENTS / "package-lock.json").read_bytes()).hexdigest()
        mark = folder / "installed"
        if not mark.exists() or mark.read_text(encoding="ascii") != wanted:
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder,
                           check=True, timeout=LONGEST)
            mark.write_text(wanted, encoding="ascii")
    return folder
