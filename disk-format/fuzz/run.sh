#!/bin/sh
# Runs every fuzz target for some seconds (60 unless told otherwise): fuzz/run.sh [seconds]
#
# With a nightly toolchain and cargo-fuzz: under AddressSanitizer. Else with the toolchain at hand, as the crates are
# free of unsafe code: coverage-guided all the same. Without a C++ compiler (libFuzzer is C++) it says so and runs the
# property tests with many more cases instead.
set -eu
cd "$(dirname "$0")"
seconds="${1:-60}"
targets="header params_kzg iden3"
options="-max_total_time=$seconds -max_len=8192 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1"

if ! { command -v "${CXX:-c++}" || command -v clang++ || command -v g++; } >/dev/null 2>&1; then
    echo "SKIPPED fuzzing: no C++ compiler for libFuzzer; running the property tests with more cases instead"
    cd .. && PROPTEST_CASES="${PROPTEST_CASES:-20000}" cargo test --release --test all -- --nocapture
    exit
fi

if cargo +nightly --version >/dev/null 2>&1 && cargo +nightly fuzz --version >/dev/null 2>&1; then
    for target in $targets; do
        echo "fuzzing $target for $seconds s (nightly, AddressSanitizer)"
        # shellcheck disable=SC2086
        cargo +nightly fuzz run --fuzz-dir . "$target" -- $options
    done
    exit
fi

echo "SKIPPED AddressSanitizer: no nightly toolchain with cargo-fuzz; fuzzing with $(rustc --version)"
host="$(rustc -vV | sed -n 's/^host: //p')"
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# --target keeps the flags away from build scripts.
cargo build --release --locked --bins --target "$host"
build="${CARGO_TARGET_DIR:-target}/$host/release"
# Side by side: each takes one core. What one has to say comes out when all have ended.
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
for target in $targets; do
    echo "fuzzing $target for $seconds s"
    mkdir -p "corpus/$target" "artifacts/$target"
    (
        status=0
        # shellcheck disable=SC2086
        "$build/$target" "corpus/$target" -artifact_prefix="artifacts/$target/" $options > "$logs/$target" 2>&1 || status=$?
        echo "$status" > "$logs/$target.status"
    ) &
done
wait
failed=0
for target in $targets; do
    echo "== $target"
    cat "$logs/$target"
    status="$(cat "$logs/$target.status")"
    [ "$status" = 0 ] || { echo "$target ended with status $status"; failed=1; }
done
exit "$failed"
