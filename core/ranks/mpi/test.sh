#!/bin/sh
# Builds the battery and runs it with 1 to 4 ranks. The last line says how it ended: `MPI: all N runs are
# good`, `MPI: FAILED ..`, or `SKIPPED: <reason>` where there is no MPI.
#
# Variables: MPIEXEC (default: mpiexec, else mpirun), MPICC (for the build, default: as ferrompi finds it),
# RANKS (default: 1 2 3 4), CARGO_TARGET_DIR.
set -u
cd "$(dirname "$0")" || exit 1

skip() {
    echo "SKIPPED: $1"
    exit 0
}

launcher=${MPIEXEC:-$(command -v mpiexec || command -v mpirun || true)}
[ -n "$launcher" ] || skip "no mpiexec and no mpirun is installed"
"$launcher" --version >/dev/null 2>&1 || skip "$launcher does not run"
mpicc=${MPICC:-$(command -v mpicc || true)}
[ -n "$mpicc" ] || skip "no mpicc is installed (a package like libmpich-dev has it)"

# A build that fails is a failure, not a reason to skip: an MPI was found.
cargo build --quiet --locked --package spillproof-mpi --features mpi --example battery || {
    echo "MPI: FAILED to build"
    exit 1
}
battery=${CARGO_TARGET_DIR:-../../../target}/debug/examples/battery

# The library of an MPI that is not installed in the system's folders.
LD_LIBRARY_PATH=$(dirname "$(dirname "$mpicc")")/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

options=
if "$launcher" --version 2>/dev/null | grep -q "Open MPI"; then
    options="--oversubscribe"
    # In a container all ranks are root's.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

runs=0
failed=0
# Launchers write bytes of 0 among their words: `grep -a` reads on.
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run RANKS CASE TIMEOUT: the status is in $status, the output in $log.
run() {
    runs=$((runs + 1))
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 "${LIMIT:-90}" "$launcher" $options -n "$1" "$battery" "$2" "$3" >"$log" 2>&1 </dev/null
    status=$?
}

# Whether the status is that of `timeout`: some rank hangs.
hangs() {
    [ "$status" -eq 124 ] || [ "$status" -eq 137 ]
}

bad() {
    failed=$((failed + 1))
    echo "FAILED: $1 (status $status)"
    sed 's/^/    /' "$log"
}

for ranks in ${RANKS:-1 2 3 4}; do
    run "$ranks" all 30
    if [ "$status" -eq 0 ] && grep -aq "good end of $ranks ranks" "$log"; then
        echo "ok: all collectives, $ranks ranks: $(grep -ah '^link' "$log" || echo 'one rank')"
        [ "$runs" -gt 1 ] || grep -ah "MPI" "$log"
    else
        bad "all collectives, $ranks ranks"
    fi
done

# No rank may hang, none may end with 0, and each rank that can has a typed error. A rank that ends without a
# word takes the others along: the launcher ends them.
for ranks in ${RANKS:-2 3 4}; do
    [ "$ranks" -gt 1 ] || continue
    for case in exit kill hang stopped give-up other-error half; do
        LIMIT=30 run "$ranks" "$case" 2
        errors=$(grep -ac "typed error" "$log")
        # At least one of them names the last rank, at which the trouble began; else no number is enough.
        named=$(grep -a "typed error" "$log" | grep -c "rank $((ranks - 1))")
        case $case in
            exit | kill) least=0 ;;
            hang | stopped | half) least=$((ranks - 1)) ;;
            *) least=$ranks ;;
        esac
        [ "$named" -ge "$((least > 0))" ] || least=$((ranks + 1))
        if [ "$status" -eq 0 ] || hangs || [ "$errors" -lt "$least" ]; then
            bad "$case, $ranks ranks: $errors typed errors, at least $least are due"
        else
            echo "ok: $case, $ranks ranks: status $status, $errors typed errors"
        fi
    done
done

# A message of the last rank is changed on its way: a typed error, or the right bytes on all ranks, and no
# hang.
for kind in lost late doubled swapped cut flipped stops; do
    good=0
    found=0
    for index in ${INDICES:-0 1 2 3 5 7}; do
        LIMIT=40 run 3 "$kind:$index" 1
        if hangs || grep -aq panicked "$log"; then
            bad "$kind message $index"
        elif [ "$status" -eq 0 ] && [ "$(grep -ac "right bytes" "$log")" -eq 3 ]; then
            good=$((good + 1))
        elif [ "$status" -ne 0 ] && grep -aq "typed error" "$log"; then
            found=$((found + 1))
        else
            bad "$kind message $index"
        fi
    done
    echo "$kind messages: $found runs with a typed error, $good with the right bytes"
done

if [ "$failed" -eq 0 ]; then
    echo "MPI: all $runs runs are good"
else
    echo "MPI: FAILED $failed of $runs runs"
    exit 1
fi
