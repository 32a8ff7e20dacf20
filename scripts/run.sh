#!/usr/bin/env bash
# Builds jobq if needed and starts jobqd with etc/jobq.properties in the foreground. In a clone that was moved or copied
# with its build, starts that build.
#
#   scripts/run.sh [jobqd options, such as --set server.port=9000]
#   scripts/run.sh --development   with etc/development.properties: private addresses, and a handler that crashes
#   scripts/run.sh --demo          sends a batch of real pictures through the server and checks every result
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

demo=false
config="$root/etc/jobq.properties"
options=()
for argument in "$@"; do
  case "$argument" in
    --demo) demo=true ;;
    --development) config="$root/etc/development.properties" ;;
    *) options+=("$argument") ;;
  esac
done

built_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$root/build/CMakeCache.txt" 2>/dev/null) || true
if [ -n "$built_for" ] && ! [ "$built_for" -ef "$root" ] && [ -x "$root/build/bin/jobqd" ]; then
  # CMake refuses the folder, and the programs find their files wherever the folder is.
  echo "run.sh: starting the build made at $built_for; after \`rm -r $root/build\` run.sh builds anew" >&2
else
  "$root/scripts/setup.sh" build
  (cd "$root" && cmake --preset release >build-configure.log 2>&1) || { cat "$root/build-configure.log" >&2; exit 1; }
  rm -f "$root/build-configure.log"
  cmake --build "$root/build" --target jobq
fi

if $demo; then
  # A separate server: any free port, a temporary data folder.
  data=$(mktemp -d)
  options+=(--set "data.dir=$data" --set server.port=0 --set log.level=warning)
else
  # `--set data.dir=` may have moved it.
  data=$("$root/build/bin/jobqd" --config "$config" "${options[@]}" --check 2>/dev/null | sed -n 's/^data.dir: //p') || true
  # jobqd itself reports options without a start of the server, and a wrong configuration.
  [ -n "$data" ] || exec "$root/build/bin/jobqd" --config "$config" "${options[@]}"
fi

server=
finish() {
  trap - EXIT INT TERM
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  if $demo; then rm -rf "$data"; fi
}
trap finish EXIT
trap 'finish; exit 0' INT TERM

# While another server has the folder, jobqd reports the conflict, and the address file belongs to the other server.
if [ -e "$data/lock" ] && ! flock -n "$data/lock" true; then exec "$root/build/bin/jobqd" --config "$config" "${options[@]}"; fi
rm -f "$data/address" 2>/dev/null || true
"$root/build/bin/jobqd" --config "$config" "${options[@]}" &
server=$!
pauses=0
until [ -s "$data/address" ]; do
  kill -0 "$server" 2>/dev/null || { wait "$server"; exit $?; }
  sleep 0.05
  pauses=$((pauses + 1))
  if [ "$pauses" -eq 1200 ]; then  # a minute; a large storage may need longer after a crash
    echo "run.sh: waited for $data/address for a minute; the server runs and does not listen yet" >&2
    if $demo; then exit 1; fi
  fi
done
url=$(cat "$data/address")

if $demo; then
  status=0
  python3 "$root/scripts/demo/demo.py" --url "$url" --key-file "$data/admin.key" --endpoint image \
    --out "$root/build/demo" || status=$?
  exit "$status"
fi

cat <<TEXT

jobq is at $url; the admin key is in $data/admin.key. Try:

  curl -H "Authorization: Bearer \$(cat $data/admin.key)" -d '{"input":{"hello":"world"}}' $url/v2/echo/runsync
  curl -H "Authorization: Bearer \$(cat $data/admin.key)" -d '{"input":{"to":5}}' $url/v2/count/run
  curl -H "Authorization: Bearer \$(cat $data/admin.key)" $url/v2/count/health

TEXT
wait "$server"
