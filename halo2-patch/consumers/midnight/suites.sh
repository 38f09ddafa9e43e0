#!/bin/sh
# The examples and tests of midnight-zk-stdlib, as they are published, over the drop-in: without a session, in one, and with a
# budget that is refused, which shows that they ask for a session. Each example makes keys, proves, and verifies.
#
#   sh suites.sh MEMORY DIRECTORY
#
# The library's source comes from cargo's cache of the registry, in the version of Cargo.lock, and goes to a temporary folder
# that is removed at the end. Outputs and scratch files go to the directory. Parameters are this consumer's, whose secret is
# known, in place of filecoin's, which no registry has: so the library's golden hashes of verifying keys can't be compared.
set -eu
[ $# -eq 2 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
memory=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
dropin=$(cd "$here/../../midnight" && pwd)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}" CARGO_PROFILE_RELEASE_DEBUG=false
mkdir -p "$out"
out=$(cd "$out" && pwd)
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
trap 'exit 1' HUP INT TERM
export SPILLPROOF_DIR="${SPILLPROOF_DIR:-$out}" SRS_DIR="$out"
unset SPILLPROOF_MEMORY
failed=0

(cd "$here" && cargo build --quiet --release --locked)
for k in 6 9 10 11 12 13 15 16 17; do
    params=$out/bls_filecoin_2p$k
    [ -f "$params" ] || SPILLPROOF_MEMORY=64MiB "$CARGO_TARGET_DIR/release/spillproof-consumer-midnight" params $k "$params" >"$out/params.txt"
done
release=midnight-zk-stdlib-$(sed -n '/^name = "midnight-zk-stdlib"$/,/^$/s/^version = "\(.*\)"$/\1/p' "$here/Cargo.lock")
for archive in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$release.crate"; do
    tar -xzf "$archive" -C "$sources"
done
cd "$sources/$release"
cat >>Cargo.toml <<MANIFEST

[workspace]

[patch.crates-io]
midnight-proofs = { path = "$dropin" }
MANIFEST
cp "$here/Cargo.lock" Cargo.lock
cargo fetch --quiet
cargo tree --quiet --depth 0 --invert midnight-proofs | grep -qF "($dropin)"
cargo build --quiet --release --locked --examples
cargo test --quiet --release --locked --no-run --test public_inputs --test serialization

# all RUN: every example and test; `passed` and `refused` count examples.
all() {
    passed=0 refused=0
    for example in ${EXAMPLES:-poseidon native_gadget ecc_ops schnorr_sig rsa_signature sha_preimage hybrid_mt membership \
        bitcoin_signature ethereum_signature cred_property bitcoin_ecdsa_threshold cardano_signature cred_enrollment cred_full}; do
        if "$CARGO_TARGET_DIR/release/examples/$example" >"$out/$example-$1.txt" 2>&1; then
            passed=$((passed + 1))
        else
            refused=$((refused + 1))
        fi
    done
    tests=passed
    cargo test --quiet --release --locked --test public_inputs --test serialization >"$out/tests-$1.txt" 2>&1 || tests=failed
    echo "$release, $1: $passed examples passed, $refused failed; its tests $tests"
}

all memory
[ "$refused" -eq 0 ] && [ "$tests" = passed ] || failed=1
export SPILLPROOF_MEMORY="$memory"
all session
[ "$refused" -eq 0 ] && [ "$tests" = passed ] || failed=1
export SPILLPROOF_MEMORY=none
all refused
[ "$passed" -eq 0 ] || failed=1
exit "$failed"
