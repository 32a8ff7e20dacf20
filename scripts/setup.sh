#!/usr/bin/env bash
# Installs the missing packages of jobq on this Debian 12 machine. Called by run.sh, test.sh and cluster.sh; safe to
# repeat. Usage: setup.sh [build|test|cluster]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages=(build-essential cmake ninja-build mold pkg-config curl ca-certificates python3
  libpoco-dev libboost-dev libboost-filesystem-dev libboost-system-dev libsqlite3-dev libmariadb-dev libssl-dev libelf-dev
  libgd-dev libgoogle-perftools-dev libcurl4-openssl-dev liblua5.4-dev libgtest-dev libgmock-dev)
if [ "${1:-build}" = test ]; then
  packages+=(clang-14 libclang-rt-14-dev clang-format-14 binutils git)
  packages+=(rapidjson-dev python3-venv openssl)
  # The S3 test runs a server from npm, and clients in other languages call the server; installed versions are used.
  command -v npm >/dev/null || packages+=(nodejs npm)
  command -v go >/dev/null || packages+=(golang-go)
  # The tests of launcher_docker start a Docker and a registry of their own.
  command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] || packages+=(docker.io)
  packages+=(docker-registry)
  # Workers and streams behind a reverse proxy.
  packages+=(nginx-light)
  # The tests of /docs look at the page in a browser.
  packages+=(chromium)
fi
case "${1:-build}" in
  test | cluster)
    # The tests and cluster.sh start servers of their own; the services of the packages must not run. Galera comes with
    # mariadb-server, and rsync copies the data of a server to another one.
    command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ] || packages+=(mariadb-server)
    packages+=(haproxy rsync)
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "These packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "Installing: ${missing[*]}" >&2
  # Debian asks this program before it starts the service of a package; 101 forbids the start.
  policy=/usr/sbin/policy-rc.d
  services=()
  if [[ " ${missing[*]} " = *" mariadb-server "* ]]; then services+=(mariadb.service); fi
  if [[ " ${missing[*]} " = *" haproxy "* ]]; then services+=(haproxy.service); fi
  if [[ " ${missing[*]} " = *" nginx-light "* ]]; then services+=(nginx.service); fi
  if [[ " ${missing[*]} " = *" rsync "* ]]; then services+=(rsync.service); fi
  if [[ " ${missing[*]} " = *" docker.io "* ]]; then services+=(docker.service docker.socket containerd.service); fi
  if [[ " ${missing[*]} " = *" docker-registry "* ]]; then services+=(docker-registry.service); fi
  if [ ${#services[@]} -gt 0 ] && [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
  fi
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
  # A policy of our own let no service start now; without the policy the services would start with the machine.
  if [ ${#services[@]} -gt 0 ] && command -v systemctl >/dev/null; then
    "${as_root[@]}" systemctl disable --quiet "${services[@]}" >&2 || true
  fi
fi
[ "${1:-build}" = test ] || exit 0

# make_environment <folder> <file with requirements> <description>
# Makes a virtual environment of Python, again when the file has changed.
make_environment() {
  local wanted
  wanted=$(sha256sum "$2" | cut -d' ' -f1)
  [ "$(cat "$1/requirements.sha256" 2>/dev/null)" != "$wanted" ] || return 0
  echo "Installing $3" >&2
  rm -rf "$1"
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2" >&2
  echo "$wanted" >"$1/requirements.sha256"
}

make_environment "$root/build/venv" "$root/tests/requirements.txt" "pytest and its plug-ins"
# The package of clients and workers needs other versions of packages than the tests do.
make_environment "$root/build/clients/venv" "$root/tests/clients/requirements.txt" "the Python package of clients and workers"
# A worker of 2025, with the packages of its time that newer ones do not replace.
make_environment "$root/build/clients/venv-1.7.13" "$root/tests/clients/requirements-1.7.13.txt" "an early version of this package"
