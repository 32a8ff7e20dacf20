#!/usr/bin/env bash
# Installs, builds, and runs every test. The last line is `N passed, N failed`.
#
#   scripts/test.sh            everything: release, address and undefined, thread, clang's thread-safety analysis, format
#   scripts/test.sh --quick    the release build's tests only
#
# Long runs have commands of their own: tests/fuzz/run.sh --runs 100000000, tests/bench/run.sh, and those of
# tests/fault/README.md.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
quick=false
[ "${1:-}" = --quick ] && quick=true
passed=0
failed=0
logs="$root/build/test-logs"

noted=0
note() {  # note <name> <passed> <failed> <log>: and how long it took, for those who shorten it
  passed=$((passed + $2))
  failed=$((failed + $3))
  printf '%-34s %5d passed %3d failed %5d s\n' "$1" "$2" "$3" $((SECONDS - noted))
  noted=$SECONDS
  if [ "$3" -gt 0 ]; then
    echo "---- $1: the end of its log"
    grep -nE 'FAILED|Failure|ERROR|WARNING: ThreadSanitizer|runtime error|FAIL:' "$4" | head -40
    tail -60 "$4"
  fi
}

step() {  # step <name> <command…>: one check that passes or fails
  local name=$1 log="$logs/${1//[ \/]/-}.log"
  shift
  if "$@" >"$log" 2>&1; then note "$name" 1 0 "$log"; else note "$name" 0 1 "$log"; fi
}

gtest() {  # gtest <build folder> <label> <filter> <program>
  local folder=$1 label=$2 filter=$3 program=$4 log="$logs/$2-$4.log" good bad
  timeout 1200 "$folder/tests/$program" --gtest_filter="$filter" --gtest_color=no >"$log" 2>&1
  local status=$?
  good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log")
  bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*listed below.*/\1/p' "$log")
  grep -h '^\[  SKIPPED \].*ms)\|Skipped$' -A1 "$log" | grep -v '^--' | sort -u | sed 's/^/  /'
  if [ -z "$good" ] || { [ "$status" -ne 0 ] && [ -z "$bad" ]; }; then bad=$((${bad:-0} + 1)); fi
  note "$label $program" "${good:-0}" "${bad:-0}" "$log"
}

gtests() {  # gtests <build folder> <label> <filter> <programs…>: two at a time
  local folder=$1 label=$2 filter=$3 program lines=()
  shift 3
  for program in "$@"; do lines+=("gtest '$folder' '$label' '$filter' '$program'"); done
  in_pairs "${lines[@]}"
}

scripted() {  # scripted <label> <command…>: a program whose last line is `N passed, N failed`
  local label=$1 log="$logs/${1//[ \/]/-}.log" last
  shift
  timeout 1800 "$@" >"$log" 2>&1
  local status=$?
  last=$(tail -n 1 "$log")
  grep -hE '\bskipped\b|^SKIP' "$log" | head -20 | sed 's/^/  /'
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    local bad=${BASH_REMATCH[2]}
    [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
    note "$label" "${BASH_REMATCH[1]}" "$bad" "$log"
  else
    note "$label" 0 1 "$log"
  fi
}

black_box() {  # black_box <label> <build folder> <files of tests in Python…>
  local label=$1 folder=$2
  shift 2
  scripted "$label" env JOBQ_BUILD="$root/$folder" python3 tests/support/run_tests.py "$@"
}

# in_pairs <lines of this script…>: two at a time, each in a shell of its own; for what leaves a core idle and does not
# measure the machine. What a line says is printed whole, in the order given. One that does not come to its end failed.
in_pairs() {
  local folder="$logs/in-pairs" started=0 told=0 line running
  rm -rf "$folder" && mkdir -p "$folder"
  for line in "$@"; do
    while running=($(jobs -rp)) && [ ${#running[@]} -ge 2 ]; do wait -n; done
    tell_ended
    (
      passed=0 failed=0 noted=$SECONDS
      eval "$line"
      [ $((passed + failed)) -gt 0 ] && echo "$passed $failed" >"$folder/$started.counts"
    ) >"$folder/$started.said" 2>&1 &
    started=$((started + 1))
  done
  wait
  for ((line = told; line < started; line++)); do
    [ -s "$folder/$line.counts" ] && continue
    echo "---- it did not come to its end" >>"$folder/$line.said"
    echo "0 1" >"$folder/$line.counts"
  done
  tell_ended
  noted=$SECONDS
}

tell_ended() {  # of in_pairs: what those have said that have ended, up to the first that has not
  local good bad
  for (( ; told < started; told++)); do
    [ -s "$folder/$told.counts" ] || return
    cat "$folder/$told.said"
    read -r good bad <"$folder/$told.counts"
    passed=$((passed + good))
    failed=$((failed + bad))
  done
}

build() {  # build <preset> <folder> [targets…]
  local preset=$1 folder=$2
  shift 2
  cmake --preset "$preset" && cmake --build "$folder" ${1:+--target "$@"}
}

"$root/scripts/setup.sh" test || { echo "0 passed, 1 failed"; exit 1; }
mkdir -p "$logs"
fuzz_seconds=60
programs=(unit_test pattern_test plugin_host_test conformance_test jobq_sqlite_tests queue_policies_test limiter_test house_test
  webhooks_test jobq_handler_tests jobq_webhook_tests lua_test lua_http_test)
# The longest first.
proofs=(io_error_test storage_fault_test simulation_test record_fault_test storage_property_test power_loss_test
  record_property_test limiter_property_test history_test management_outage_test)
broken=build/tests/broken
crowd=tests/http/test_crowd.py
patient=(tests/http/test_door.py tests/http/test_lifecycle.py tests/http/test_too_large.py)  # as long as all the others
brisk=()
for file in tests/http/test_*.py; do
  [[ " $crowd ${patient[*]} " == *" $file "* ]] || brisk+=("$file")
done

step "build release" build release build
if [ "$failed" -eq 0 ]; then
  gtests build release '*' "${programs[@]}" "${proofs[@]}"
  scripted "crash loop" build/tests/crash_loop
  scripted "crash loop without claims" build/tests/crash_loop --plugins $broken/forget_claims --expect-violation
  step "scaling over a day" build/tests/scaler_day --check
  step "bench" python3 tests/bench/bench.py --quick
  step "pace of scripts" python3 tests/bench/lua_pace.py --rounds 1 --jobs 4000
  scripted "architecture" python3 tests/arch/arch_test.py
  black_box "http crowd" build $crowd
  # The last one is the way of a plugin author: a project of its own over the sdk alone.
  in_pairs "black_box 'http patient' build ${patient[*]}" "black_box http build ${brisk[*]}" \
    "black_box disk build tests/fault/test_disk.py" \
    "scripted s3 env JOBQ_BUILD='$root/build' python3 tests/s3/s3_test.py" "step demo scripts/run.sh --demo" \
    "step template bash -c 'cmake -G Ninja -S sdk/template -B build/template && cmake --build build/template'"
  black_box "load" build tests/fault/test_load.py
  black_box "limits" build tests/fault/test_limits_load.py
  black_box "waits" build tests/fault/test_waits.py
  black_box "storm" build tests/fault/test_storm.py
  black_box "releases" build tests/fault/test_release_load.py
  black_box "fair share" build tests/fault/test_fair_share.py
  black_box "backlog" build tests/fault/test_backlog.py
  scripted "soak" env JOBQ_BUILD="$root/build" python3 tests/fault/soak.py --minutes 1
  scripted "openapi" env JOBQ_BUILD="$root/build" python3 tests/openapi/openapi_test.py
fi
if ! $quick && [ "$failed" -eq 0 ]; then
  step "format" bash -c "git ls-files '*.h' '*.cpp' | xargs clang-format-14 --dry-run -Werror"
  step "clang thread-safety" bash -c 'cmake -G Ninja -S . -B build/clang -DCMAKE_CXX_COMPILER=clang++-14 \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= && cmake --build build/clang'
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
  step "build asan" build asan build/asan "${programs[@]}" "${proofs[@]}" jobq
  [ "$failed" -eq 0 ] && gtests build/asan asan '*' "${programs[@]}"
  # Instrumented, a seed takes several times as long: fewer of them, and every path is still met.
  [ "$failed" -eq 0 ] && JOBQ_SEEDS=60 gtests build/asan asan '*' "${proofs[@]}"
  [ "$failed" -eq 0 ] && in_pairs "black_box 'asan http patient' build/asan $crowd ${patient[*]}" \
    "black_box 'asan http' build/asan ${brisk[*]}"
  export TSAN_OPTIONS="suppressions=$root/tests/support/tsan.supp halt_on_error=0 exitcode=66"
  concurrent=(conformance_test jobq_sqlite_tests limiter_test house_test webhooks_test jobq_webhook_tests unit_test
    lua_test)
  step "build tsan" build tsan build/tsan "${concurrent[@]}" power_loss_test storage_fault_test jobq
  [ "$failed" -eq 0 ] && gtests build/tsan tsan '-*SandboxAttack*' "${concurrent[@]}"  # attacks are of one thread
  # A fault at every call takes eight minutes on SQLite here: its threads are met by the other tests of that storage.
  [ "$failed" -eq 0 ] && JOBQ_SEEDS=60 gtests build/tsan tsan '-*EveryCall*/sqlite' power_loss_test storage_fault_test
  [ "$failed" -eq 0 ] && in_pairs "black_box 'tsan http' build/tsan tests/http/test_door.py tests/http/test_tls.py" \
    "black_box 'tsan http lifecycle' build/tsan tests/http/test_framing.py tests/http/test_lifecycle.py \
      tests/http/test_run.py"
  scripted "fuzz" tests/fuzz/run.sh --seconds "$fuzz_seconds"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
