#!/bin/sh
# The test suites of halo2_gadgets and orchard, as they are published, over the drop-in: without a session, in one, and with a
# budget that is refused, which shows how many of their tests ask for a session.
#
#   sh suites.sh MEMORY DIRECTORY
#
# Their sources come from cargo's cache of the registry, in the versions of Cargo.lock, and go to a temporary folder that is
# removed at the end. Outputs and scratch files go to the directory. Features that need system packages are left out:
# halo2_gadgets' test-dev-graph and orchard's dev-graph, which draw with fontconfig.
set -eu
[ $# -eq 2 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
memory=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
dropin=$(cd "$here/../../zcash" && pwd)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$dropin/Cargo.toml" | head -n 1)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/target}" CARGO_PROFILE_RELEASE_DEBUG=false
mkdir -p "$out"
out=$(cd "$out" && pwd)
sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
trap 'exit 1' HUP INT TERM
export SPILLPROOF_DIR="${SPILLPROOF_DIR:-$out}"
unset SPILLPROOF_MEMORY
failed=0

# fail MESSAGE: says it, and goes on with the rest.
fail() {
    echo "$1" >&2
    failed=1
}

# unpack CRATE: the published source, over the drop-in. Called where `set -e` has no effect.
unpack() {
    locked=$(sed -n "/^name = \"$1\"\$/,/^\$/p" "$here/Cargo.lock")
    release=$1-$(echo "$locked" | sed -n 's/^version = "\(.*\)"$/\1/p')
    checksum=$(echo "$locked" | sed -n 's/^checksum = "\(.*\)"$/\1/p')
    archive=
    for found in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$release.crate"; do
        if [ -f "$found" ] && echo "$checksum  $found" | sha256sum --check --status; then
            archive=$found
        fi
    done
    if [ -z "$archive" ]; then
        echo "cargo's cache has no $release.crate with the digest in Cargo.lock" >&2
        return 1
    fi
    tar -xzf "$archive" -C "$sources" || return
    # The toolchain that orchard is developed with is older than the one that the drop-in needs.
    rm -f "$sources/$release/rust-toolchain.toml" || return
    cat >>"$sources/$release/Cargo.toml" <<MANIFEST || return

[workspace]

[patch.crates-io]
halo2_proofs = { path = "$dropin" }
MANIFEST
    # The published lock files name an older halo2_proofs, which a patch of this version does not replace, and older releases of
    # crates that the engine needs too. What only the tests need is the newest release.
    cp "$here/Cargo.lock" "$sources/$release/Cargo.lock" || return
    cd "$sources/$release" || return
    cargo fetch --quiet || return
    cargo tree --quiet --depth 0 --invert halo2_proofs | grep -qF "halo2_proofs v$version ($dropin)"
}

# run_tests RUN: the suite's output goes to CRATE-RUN.txt, cargo's exit status to `status`.
run_tests() {
    log=$out/$crate-$1.txt
    status=0
    cargo test --quiet --release --locked --no-fail-fast --features "$features" >"$log" 2>&1 || status=$?
}

# sum COLUMN: of the tests' results in the log: 4 passed, 6 failed, 8 ignored.
sum() { awk -v column="$1" '/^test result: / { sum += $column } END { print sum + 0 }' "$log"; }

# count RUN DESCRIPTION: runs the suite, which has to pass.
count() {
    run_tests "$1"
    echo "$crate $2: $(sum 4) passed, $(sum 6) failed, $(sum 8) ignored"
    [ "$status" -eq 0 ] || fail "$crate $2: cargo test ended with status $status: see $log"
}

# suite CRATE FEATURES
suite() {
    crate=$1 features=$2
    if ! (unpack "$crate"); then
        fail "$crate: the drop-in cannot take its halo2_proofs' place"
        return
    fi
    cd "$sources/$crate"-[0-9]*
    if ! cargo test --quiet --release --locked --no-run --features "$features" >"$out/$crate-build.txt" 2>&1; then
        fail "$crate: its suite does not build from the published crate: see $out/$crate-build.txt"
        return
    fi
    count memory "without a session"
    export SPILLPROOF_MEMORY="$memory"
    count session "in a session of $memory"
    # A passing suite proves nothing about sessions if none of its tests ever asks for one.
    export SPILLPROOF_MEMORY=none
    run_tests refused
    unset SPILLPROOF_MEMORY
    asking=$(sum 6)
    echo "$crate: $asking of its tests ask for a session, and fail with a budget of \`none\`"
    [ "$asking" -gt 0 ] || fail "$crate: no test asks for a session: see $log"
}

(cd "$here" && cargo fetch --quiet --locked)
suite halo2_gadgets test-dependencies
suite orchard test-dependencies,unstable-frost,unstable-voting-circuits,verifier-fingerprint
exit "$failed"
