#!/bin/sh
# A circuit of midnight-zk-stdlib over the unmodified midnight-proofs, over the drop-in without a session, and over the drop-in
# in one: seconds of each phase (and of all processors), resident peaks, ratios to the unmodified crate's. Keys of the three are
# compared byte for byte; so are the drop-in's proofs, which the unmodified crate verifies.
#
#   sh compare.sh sha|zswap|credential K MEMORY DIRECTORY
#
# Files go to the directory, scratch files to SPILLPROOF_DIR, which is the same directory unless it is set. With RUNS=5, each
# program runs five times, in turns; the figures are medians. UNDER="cgrun 320" runs the session's programs by that command. All
# runs are given the same entropy (../common/entropy.c), since circuits of foreign curves draw points of their own.
set -eu
[ $# -eq 4 ] || { sed -n '6s/^# *//p' "$0" >&2; exit 2; }
circuit=$1 k=$2 memory=$3 out=$4 runs=${RUNS:-1} under=${UNDER:-}
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-}
(cd "$here/unmodified" && cargo build --quiet --release --locked)
(cd "$here" && cargo build --quiet --release --locked)
ours=${target:-$here/target}/release/spillproof-consumer-midnight
stock=${target:-$here/unmodified/target}/release/midnight
mkdir -p "$out"
out=$(cd "$out" && pwd)
params=$out/params-$k
cc -O2 -shared -fPIC "$here/../common/entropy.c" -o "$out/entropy.so" -ldl
export SPILLPROOF_DIR="${SPILLPROOF_DIR:-$out}"
unset SPILLPROOF_MEMORY SPILLPROOF_REPRODUCIBLE
cd "$out"
rm -f unmodified-*.txt memory-*.txt session-*.txt

# run NAME PROGRAM: keys and a proof of them.
run() {
    echo "== $1, run $run of $runs"
    {
        $3 env LD_PRELOAD="$out/entropy.so" "$2" keys "$circuit" "$params" "$1.vk" "$1.pk"
        $3 env LD_PRELOAD="$out/entropy.so" "$2" prove "$circuit" "$params" "$1.pk" "$1.proof"
    } >"$1-$run.txt" 2>&1 || { cat "$1-$run.txt" >&2; exit 1; }
    cat "$1-$run.txt"
}

[ -f "$params" ] || "$stock" params "$k" "$params"
export SPILLPROOF_REPRODUCIBLE=1
(export SPILLPROOF_MEMORY="$memory" && "$ours" params "$k" params-session)
cmp "$params" params-session
rm params-session
run=1
while [ "$run" -le "$runs" ]; do
    run unmodified "$stock" ""
    [ "$run" -gt 1 ] || run memory "$ours" ""
    (export SPILLPROOF_MEMORY="$memory" && run session "$ours" "$under")
    run=$((run + 1))
done
grep -q '^spillproof session: true$' session-1.txt || { echo "the drop-in had no session" >&2; exit 1; }

# column NAME PHASE N: the median of a phase's N-th number.
column() {
    cat "$1"-*.txt | sed -n "s/^$2: //p" | tr -c '0-9.\n' ' ' | awk -v n="$3" '{ print $n }' | sort -n |
        awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}
echo "== $circuit, 2^$k rows, a session of $memory, medians of $runs: seconds, of processors, MiB at most"
printf '%-20s %8s %8s %6s   %8s %8s %6s   %6s %6s\n' phase stock cpu MiB session cpu MiB ratio cpu
for phase in 'reading parameters' 'verifying key' 'proving key' 'reading the key' proof; do
    printf '%-20s %8s %8s %6s   %8s %8s %6s   %6s %6s\n' "$phase" $(
        for name in unmodified session; do for n in 1 2 4; do column "$name" "$phase" "$n"; done; done |
            tr '\n' ' ' | awk '{ print $0, sprintf("%.2f %.2f", $4 / ($1 + 1e-9), $5 / ($2 + 1e-9)) }'
    )
done
for name in memory session; do
    cmp unmodified.vk "$name.vk"
    cmp unmodified.pk "$name.pk"
    "$stock" verify "$circuit" "$params" unmodified.vk "$name.proof" | tail -n 1
done
cmp memory.proof session.proof
echo "keys are those of the unmodified crate; the session's proof is the one from memory, and the unmodified crate verifies it"
