#!/usr/bin/env bash
# Runs a command as root in a user-mode Linux (Debian: user-mode-linux) on the files of this machine, where the limits of
# this machine do not count, such as the descriptors of a process. One processor; a system call takes 40 us and more, so
# its times say nothing of a real machine. The exit code is that of the command.
#
#   MEMORY=16G tests/bench/guest.sh python3 tests/bench/waiters.py --callers 100000
set -euo pipefail
command -v linux.uml >/dev/null || { echo "linux.uml is missing: apt-get install user-mode-linux" >&2 && exit 1; }
longest=3600 # seconds of a guest
folder=$(mktemp -d -p "$PWD")  # the guest has a /tmp of its own
trap 'rm -rf "$folder"' EXIT
cat >"$folder/init" <<EOF
#!/bin/bash
mount -t proc proc /proc
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm
ip link set lo up
ulimit -n 400000
sysctl -q net.core.somaxconn=65535 net.ipv4.tcp_max_syn_backlog=65535 net.ipv4.ip_local_port_range="2048 65001"
cd $(printf '%q' "$PWD")
export PATH=$(printf '%q' "$PATH")
$(printf '%q ' "$@")
echo \$? >$(printf '%q' "$folder/code")
echo o >/proc/sysrq-trigger
sleep 60
EOF
chmod +x "$folder/init"
TMPDIR=${GUEST_MEMORY_FILES:-/dev/shm} timeout --kill-after=5 "$longest" setpriv --pdeathsig KILL linux.uml mem="${MEMORY:-8G}" \
  rootfstype=hostfs rootflags=/ rw init="$folder/init" quiet con=null con0=fd:0,fd:1 </dev/null 2>"$folder/kernel" || true
[ -s "$folder/code" ] || { echo "the guest did not run the command:" >&2 && tail -5 "$folder/kernel" >&2 && exit 1; }
exit "$(cat "$folder/code")"
