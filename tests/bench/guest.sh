#!/usr/bin/env bash
# Runs a command as root in a user-mode Linux (Debian: user-mode-linux) on the files of this machine, where the limits of
# this machine do not count, such as the descriptors of a process. One processor; a system call takes 40 us and more, so
# its times say nothing of a real machine.
#
#   MEMORY=16G tests/bench/guest.sh python3 tests/bench/waiters.py --callers 100000
set -euo pipefail
command -v linux.uml >/dev/null || { echo "linux.uml is missing: apt-get install user-mode-linux" >&2 && exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/init" <<EOF
#!/bin/bash
mount -t proc proc /proc
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm 2>/dev/null
ip link set lo up
ulimit -n 400000
sysctl -q net.core.somaxconn=65535 net.ipv4.tcp_max_syn_backlog=65535 net.ipv4.ip_local_port_range="2048 65000"
cd $PWD
export PATH=$PATH
$(printf '%q ' "$@") 2>&1
echo "guest: exit code \$?"
echo o >/proc/sysrq-trigger
sleep 60
EOF
chmod +x "$folder/init"
TMPDIR=${GUEST_MEMORY_FILES:-/dev/shm} linux.uml mem="${MEMORY:-8G}" rootfstype=hostfs rootflags=/ rw init="$folder/init" \
  quiet con=null con0=fd:0,fd:1 </dev/null 2>/dev/null
