#!/bin/sh
# Orchard actions over the unmodified halo2_proofs, over the drop-in without a session, and over the drop-in in one: seconds of
# proving, resident peaks, their ratios to the unmodified crate's, and whether the three proofs are the same bytes.
#
#   sh actions.sh ACTIONS MEMORY DIRECTORY
#
# Outputs and proofs go to the directory, scratch files to SPILLPROOF_DIR, which is the same directory unless it is set. With
# RUNS=5, each program runs five times, in turns; the figures are medians.
set -eu
[ $# -eq 3 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
actions=$1 memory=$2 out=$3 runs=${RUNS:-1}
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-}
(cd "$here" && cargo build --quiet --release --locked)
(cd "$here/unmodified" && cargo build --quiet --release --locked)
ours=${target:-$here/target}/release/spillproof-consumer-zcash
stock=${target:-$here/unmodified/target}/release/actions
mkdir -p "$out"
out=$(cd "$out" && pwd)
export SPILLPROOF_DIR="${SPILLPROOF_DIR:-$out}"
unset SPILLPROOF_MEMORY
rm -f "$out"/unmodified-*.txt "$out"/memory-*.txt "$out"/session-*.txt

# prove NAME PROGRAM: the program's output goes to NAME-RUN.txt, the proof to NAME.bin.
prove() {
    echo "== $1, run $run of $runs"
    if ! "$2" "$actions" "$out/$1.bin" >"$out/$1-$run.txt"; then
        echo "$1 has no proof of $actions actions" >&2
        exit 1
    fi
    cat "$out/$1-$run.txt"
}

run=1
while [ "$run" -le "$runs" ]; do
    prove unmodified "$stock"
    prove memory "$ours"
    (export SPILLPROOF_MEMORY="$memory" && prove session "$ours")
    run=$((run + 1))
done
if ! grep -q '^spillproof session: true$' "$out"/session-*.txt; then
    echo "the drop-in had no session" >&2
    exit 1
fi

# median NAME: of the numbers in a column, by sort.
median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }
# seconds NAME PHASE
seconds() { cat "$out/$1"-*.txt | sed -n "s/^$2: \([0-9.]*\) s .*/\1/p" | median; }
proving() { cat "$out/$1"-*.txt | sed -n 's/^proved in \([0-9.]*\) s:.*/\1/p' | median; }
# The highest peak of all phases and runs, in MiB.
peak() { cat "$out/$1"-*.txt | sed -n 's/.*, \([0-9]*\) MiB at most$/\1/p' | sort -n | tail -n 1; }
ratio() { awk -v ours="$1" -v stock="$2" 'BEGIN { printf "%.2f", ours / stock }'; }

echo "== $actions actions, a session of $memory, medians of $runs"
printf '%-12s %8s %9s %9s %8s %6s\n' program keys proving verifying peak ratio
stock_proving=$(proving unmodified) stock_peak=$(peak unmodified)
for name in unmodified memory session; do
    printf '%-12s %6s s %7s s %7s s %4s MiB %6s\n' "$name" "$(seconds "$name" keys)" "$(proving "$name")" \
        "$(seconds "$name" verification)" "$(peak "$name")" "$(ratio "$(proving "$name")" "$stock_proving")"
done
echo "the session's resident peak is $(ratio "$(peak session)" "$stock_peak") of the unmodified crate's"
for name in memory session; do
    cmp "$out/unmodified.bin" "$out/$name.bin"
done
echo "the three proofs are the same bytes, and orchard accepts them"
