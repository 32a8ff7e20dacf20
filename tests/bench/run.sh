#!/usr/bin/env bash
# Builds jobq and the bench programs if needed, and measures. See tests/bench/README.md.
#
#   tests/bench/run.sh [--quick] [--peers] [--million] [--rounds N] [--seconds S] [--workers N] [--out DIR] [--write-readme]
#   tests/bench/run.sh --speed        only the rows that the goals of speed compare, with gearmand
#   tests/bench/run.sh --perf NAME    a profile of one contestant, such as "finished sqlite"
#
# --peers also measures beanstalkd, gearmand, and BullMQ on Redis; with root rights, missing programs are installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Only BullMQ needs more than the build does: node and npm.
if [[ " $* " == *" --peers "* ]]; then "$root/scripts/setup.sh" test; else "$root/scripts/setup.sh" build; fi
packages=()
if [[ " $* " == *" --peers "* ]]; then
  packages=(beanstalkd gearman-job-server redis-server)
elif [[ " $* " == *" --speed "* ]]; then
  packages=(gearman-job-server)
fi
if [[ $(id -u) -eq 0 ]]; then
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$package" >&2 ||
      echo "$package cannot be installed: its rows are left out" >&2
  done
fi
(cd "$root" && cmake --preset release >/dev/null && cmake --build build --target jobq bench_load bench_bare bench_gearman_worker)
exec python3 "$root/tests/bench/bench.py" "$@"
