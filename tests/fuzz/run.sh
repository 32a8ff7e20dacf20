#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each target. The last line is `N passed, N failed`.
#
#   tests/fuzz/run.sh [--seconds N | --runs N] [target…]
#
# Without an option each target runs for JOBQ_FUZZ_SECONDS (15); --runs 100000000 makes a long run.
#
# Findings are kept in build/fuzz/findings, and the command to repeat a finding is printed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
limit=("-max_total_time=${JOBQ_FUZZ_SECONDS:-15}")
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) limit=("-max_total_time=$2") && shift 2 ;;
    --runs) limit=("-runs=$2") && shift 2 ;;
    *) targets+=("$1") && shift ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || targets=(request_head chunk_reader target json_scan submission policy webhook_url net_guard
  lua_pattern lua_bridge)
out="$root/build/fuzz"
mkdir -p "$out/findings"

# RapidJSON adds offsets to null pointers, so the check of pointer overflow is off.
flags=(-std=c++20 -O2 -g1 -Wall -Wextra -fsanitize=fuzzer,address,undefined -fno-sanitize=pointer-overflow
  -fno-sanitize-recover=all "-I$root" "-I$root/sdk/include")
needs() {  # needs <target>: sources and libraries of the target, one per line
  local core="$root/core"
  case $1 in
    request_head) printf '%s\n' "$core/http/transport/request_head.cpp" "$core/http/api/target.cpp" ;;
    chunk_reader) printf '%s\n' "$core/http/transport/chunk_reader.cpp" "$core/http/transport/request_head.cpp" ;;
    target) printf '%s\n' "$core/http/api/target.cpp" ;;
    submission | policy)
      printf '%s\n' "$core/jobs/submission.cpp" "$core/jobs/webhook_url.cpp" "$core/base/curl_url.cpp" "$core/config/units.cpp" "$core/config/policy_fields.cpp" "$core/config/form.cpp" "$core/base/secret_box.cpp" \
        "$core/base/ids.cpp" "$core/base/data_dir.cpp" "$core/model/job_policy.cpp" -lcurl -lPocoCrypto -lPocoFoundation -lcrypto ;;
    lua_pattern)
      printf '%s\n' "-I$root/plugins/lua" "$root"/plugins/lua/stdlib/pattern_*.cpp \
        "$root"/plugins/lua/sandbox/{step_meter,execution_limiter}.cpp
      pkg-config --cflags --libs lua5.4-c++ | tr ' ' '\n' | grep . ;;
    webhook_url) printf '%s\n' "$core/jobs/webhook_url.cpp" "$core/base/curl_url.cpp" -lcurl -lPocoFoundation ;;
    lua_bridge)
      printf '%s\n' "-I$root/plugins/lua" "$root"/plugins/lua/{script_folder,script_file}.cpp
      for source in "$root"/plugins/lua/{sandbox,stdlib,json}/*.cpp; do
        [[ $source =~ /http_[a-z]*\.cpp$ ]] || echo "$source"
      done
      pkg-config --cflags --libs lua5.4-c++ | tr ' ' '\n' | grep . ;;
  esac
}

fuzz() {  # fuzz <target>
  local target=$1 log="$out/$1.log" corpus="$out/corpus/$1"
  local needed need options=()
  mapfile -t needed < <(needs "$target")
  mkdir -p "$corpus"
  # One unit of all sources: the headers are read once.
  {
    echo "#include \"$root/tests/fuzz/fuzz_$target.cpp\""
    for need in "${needed[@]}"; do
      [[ $need == *.cpp ]] && echo "#include \"$need\"" || options+=("$need")
    done
  } >"$out/unit_$target.cpp"
  clang++-14 "${flags[@]}" "$out/unit_$target.cpp" "${options[@]}" -o "$out/fuzz_$target" >"$log" 2>&1 ||
    { cat "$log"; return 1; }
  "$out/fuzz_$target" "${limit[@]}" -max_len=8192 -len_control=20 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$out/findings/$target-" -dict="$root/tests/fuzz/$target.dict" \
    "$corpus" "$root/tests/fuzz/corpus/$target" >>"$log" 2>&1
  local status=$? runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ $status -eq 0 ]; then
    echo "$target: ${runs:-0} runs without a finding"
  else
    tail -30 "$log"
    echo "$target: a finding; repeat it with $out/fuzz_$target $out/findings/$target-*"
  fi
  return $status
}

# Runs two targets at a time. The output of each target is printed whole and in order.
for target in "${targets[@]}"; do rm -f "$out/$target.said" "$out/$target.status"; done
for target in "${targets[@]}"; do
  while running=($(jobs -rp)) && [ ${#running[@]} -ge 2 ]; do wait -n; done
  { fuzz "$target"; echo $? >"$out/$target.status"; } >"$out/$target.said" 2>&1 &
done
wait
passed=0
failed=0
for target in "${targets[@]}"; do
  cat "$out/$target.said"
  [ "$(cat "$out/$target.status")" = 0 ] && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
