#!/bin/sh
# The same program without a session, in one, and over the unmodified crate: keys and proofs are compared byte for byte, and
# the unmodified crate verifies what the session made.
#
#   sh compare.sh ecc   sum|pairing|ecdsa       K MEMORY DIRECTORY
#   sh compare.sh snark application|aggregation K MEMORY DIRECTORY
#
# An aggregation takes the application's snark that is in the directory already. Scratch files go to SPILLPROOF_DIR. All runs
# are given the same entropy (common/entropy.c), from which both libraries draw.
set -eu
[ $# -eq 5 ] || { sed -n '5,6s/^# *//p' "$0" >&2; exit 2; }
program=$1 circuit=$2 k=$3 memory=$4 out=$5
here=$(cd "$(dirname "$0")" && pwd)
case $program in
ecc) patched=$here/ecc bin=spillproof-consumer-ecc prefix= ;;
snark) patched=$here/snark-verifier bin=spillproof-consumer-snark-verifier prefix=$circuit- ;;
*) echo "there is no program \`$program\`" >&2; exit 2 ;;
esac
target=${CARGO_TARGET_DIR:-}
(cd "$patched" && cargo build --quiet --release --locked)
(cd "$here/unmodified" && cargo build --quiet --release --locked)
ours=${target:-$patched/target}/release/$bin
stock=${target:-$here/unmodified/target}/release/$program
mkdir -p "$out"
cc -O2 -shared -fPIC "$here/common/entropy.c" -o "$out/entropy.so" -ldl
out=$(cd "$out" && pwd)
export PARAMS_DIR="${PARAMS_DIR:-$out/params}" SPILLPROOF_REPRODUCIBLE=1
unset SPILLPROOF_MEMORY

echo "== unmodified"
LD_PRELOAD=$out/entropy.so "$stock" prove "$circuit" "$k" "$out/unmodified"
# An aggregation of the same snark everywhere.
for run in memory session; do
    mkdir -p "$out/$run"
    [ "$circuit" != aggregation ] || cp "$out/unmodified/application-snark.bin" "$out/$run/"
done
echo "== drop-in, no session"
LD_PRELOAD=$out/entropy.so "$ours" prove "$circuit" "$k" "$out/memory"
echo "== drop-in, a session of $memory"
SPILLPROOF_MEMORY=$memory LD_PRELOAD=$out/entropy.so "$ours" prove "$circuit" "$k" "$out/session"
echo "== compared"
"$stock" verify "$circuit" "$k" "$out/session"
case $program in ecc) proof=proof.bin ;; snark) proof=snark.bin ;; esac
for file in vk.bin pk.bin; do
    cmp "$out/unmodified/$prefix$file" "$out/memory/$prefix$file"
    cmp "$out/unmodified/$prefix$file" "$out/session/$prefix$file"
done
cmp "$out/memory/$prefix$proof" "$out/session/$prefix$proof"
echo "keys are those of the unmodified crate, and the session's proof is the one from memory"
