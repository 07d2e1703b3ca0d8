#!/bin/sh
# Runs every fuzz target that is named, or all of them, one after the other: RUNS executions each, from the corpus in this folder.
# What is found on the way is kept in target/corpus; what fails lies in artifacts.
set -eu
cd "$(dirname "$0")/.."
RUNS=${RUNS:-10000000}
WORK=${CARGO_TARGET_DIR:-fuzz/target}/corpus

cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
[ $# -gt 0 ] || set -- column_decode column_round_trip column_reference
for target in "$@"; do
  # Six bytes of a step become up to a hundred elements.
  case $target in column_round_trip) length=64 ;; *) length=512 ;; esac
  mkdir -p "$WORK/$target"
  # The crate has no unsafe code, so that a sanitizer of memory would only slow it down.
  # There are no magic numbers to compare with, either.
  cargo +nightly fuzz run --release --sanitizer none --no-trace-compares "$target" "$WORK/$target" "fuzz/corpus/$target" -- \
    -runs="$RUNS" -max_len="$length" -entropic_scale_per_exec_time=1 -rss_limit_mb=512 -timeout=10 -print_final_stats=1
done
