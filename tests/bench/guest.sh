#!/usr/bin/env bash
# Runs a command as root in a sandbox of gVisor, on the files and processors of this machine. gVisor is a kernel in a
# program, so the limits of this machine do not count there, such as the descriptors of a process. A system call takes
# about 1 us, and the network is gVisor's own: compare times inside of the sandbox with one another.
#
#   tests/bench/guest.sh python3 tests/bench/waiters.py --callers 100000
#
# Needs Go 1.26 or newer, with which the script builds gVisor once (a minute). The exit code is that of the command.
set -euo pipefail
version=v0.0.0-20260905035102-160fafc42237
longest=3600 # seconds
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/build/gvisor
runsc=$tools/runsc-$version
if [ ! -x "$runsc" ]; then
  command -v go >/dev/null || { echo "go is missing: install Go 1.26 or newer" >&2 && exit 1; }
  mkdir -p "$tools"
  # Statically linked, because the program starts itself in an empty root folder.
  (cd "$tools" && CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN="$tools" go install "gvisor.dev/gvisor/runsc@$version")
  mv "$tools/runsc" "$runsc"
fi
commands=$(
  cat <<EOF2
ulimit -n 400000
sysctl -q net.ipv4.ip_local_port_range="2048 65001"
cd $(printf '%q' "$PWD")
export PATH=$(printf '%q' "$PATH")
exec $(printf '%q ' "$@")
EOF2
)
# Through a pipe, because the sandbox would write to a file from the start of that file.
timeout --foreground --kill-after=5 "$longest" "$runsc" --platform=systrap --network=none --ignore-cgroups \
  --overlay2=none do bash -c "$commands" | cat
