#!/usr/bin/env bash
# Starts three database servers (MariaDB Galera), three nodes of jobq and a load balancer (HAProxy) on this machine, and
# shows them in a table until Ctrl-C. Nothing is left behind. All addresses are on 127.0.0.1.
#
#   scripts/cluster.sh [--nodes N] [--databases 1|3] [--seconds S] [--load]
#
# In another terminal, `kill -9` a process of the table and watch the others. JOBQ_BUILD names a build folder to use as
# it is; without the variable the server is built first.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" cluster
if [ -z "${JOBQ_BUILD:-}" ]; then
  (cd "$root" && cmake --preset release >build-configure.log 2>&1) || { cat "$root/build-configure.log" >&2; exit 1; }
  rm -f "$root/build-configure.log"
  cmake --build "$root/build" --target jobq
fi
exec python3 -B "$root/scripts/cluster/cluster.py" "$@"
