#!/usr/bin/env bash
# Installs missing packages, builds, and tests. The last line is `N passed, N failed`, with `, N skipped` behind it.
#
#   scripts/test.sh            the release build, and all behaviour
#   scripts/test.sh --poco     the release build, and the HTTP tests over Poco's HTTP server
#   scripts/test.sh --ci       also the sanitizers, clang's analysis, the format, and fuzzing
#   scripts/test.sh --nightly  also every proof at full length, each source compiled alone, and the paces of tests/bench
#
# tests/README.md has the tests of each tier with the reasons, and the way to run a few: `ctest --preset quick -R NAME`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
case ${1:-} in
  "") tier=release ;;
  --ci | --nightly | --poco) tier=${1#--} ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac

presets=()
summarise() { echo "== $SECONDS s with set-up and builds" && python3 tests/support/summary.py "${presets[@]}"; }

build() {  # build <preset>: the tests need the build, so a failure ends the script
  echo "== build $1"
  local began=$SECONDS log=build-$1.log
  local settings=(-DJOBQ_WERROR=ON -DJOBQ_ALL_CHECKS=OFF -DJOBQ_TEST_TIME=1)
  [ "$tier" = nightly ] && settings=(-DJOBQ_WERROR=ON -DJOBQ_ALL_CHECKS=ON -DJOBQ_TEST_TIME=100)
  # CI compiles each source once: large units take 0.7 of the time. Other tiers serve edits, which compile a unit again.
  [ "$1" = release ] && settings+=(-DCMAKE_UNITY_BUILD_BATCH_SIZE=$([ "$tier" = ci ] && echo 24 || echo 8))
  if ! { cmake --preset "$1" "${settings[@]}" && cmake --build --preset "$1"; } >"$log" 2>&1; then
    grep -E -A12 'error|FAILED' "$log" | head -80
    summarise
    echo "0 passed, 1 failed"
    exit 1
  fi
  mv "$log" build/test-results/
  echo "   $((SECONDS - began)) s"
}

run() {  # run <test preset>: the output of a test that failed is in build/test-results/<test preset>.log
  echo "== test $1"
  presets+=("$1")
  local began=$SECONDS
  ctest --preset "$1" --output-log "build/test-results/$1.log" --output-junit "$PWD/build/test-results/$1.xml" >/dev/null
  echo "   $((SECONDS - began)) s"
}

# The verdicts of CI do not depend on the speed of syncs of this disk; the nightly proofs and paces do.
memory=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)
[ "$tier" != nightly ] && [ "${memory:-0}" -gt 4000000 ] && export TMPDIR=/dev/shm

scripts/setup.sh test || { echo "0 passed, 1 failed" && exit 1; }
rm -rf build/test-results build/*/test-results && mkdir -p build/test-results
build release
[ "$tier" = nightly ] && build plain
case $tier in nightly | poco) run "$tier" ;; *) run release ;; esac
if [ "$tier" = ci ] || [ "$tier" = nightly ]; then
  whole=$([ "$tier" = nightly ] && echo -nightly)
  build asan && run "asan$whole"
  build tsan && run "tsan$whole"
  run analysis
fi
[ "$tier" = nightly ] && run pace
summarise
