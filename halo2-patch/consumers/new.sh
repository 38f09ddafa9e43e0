#!/bin/sh
# The programs that `spillproof new` writes, for both systems: built from vendored sources without a network, and run in memory, in a session of
# their own, and by variables with a page.
#
#   sh new.sh DIRECTORY
#
# The directory must not have programs of an earlier run. Getting the sources takes a network.
set -eu
[ $# -eq 1 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
repository=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
cd "$1"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
spillproof=${SPILLPROOF:-$repository/target/release/spillproof}
[ -x "$spillproof" ] || { echo "$spillproof is not there: cargo build --release, or name it in SPILLPROOF" >&2; exit 1; }
for system in axiom zcash; do
    case $system in
    axiom) crate=halo2-axiom release=0.5.3 variable=SPILLPROOF_HALO2_AXIOM_SRC ;;
    zcash) crate=halo2_proofs release=0.4.1 variable=SPILLPROOF_HALO2_PROOFS_SRC ;;
    esac
    echo "== $system"
    "$spillproof" new "$system" --system "$system" --path "$repository"
    cd "$system"
    mkdir .cargo
    cargo vendor > .cargo/config.toml 2> vendor.log
    curl -sSLO "https://static.crates.io/crates/$crate/$crate-$release.crate"
    printf '[env]\n%s = { value = "%s", relative = true }\n' "$variable" "$crate-$release.crate" >> .cargo/config.toml
    # An empty home: nothing comes from cargo's cache.
    CARGO_HOME=$PWD/home cargo build --release --offline
    cargo tree --offline -i "$crate" --depth 0 | grep "halo2-patch/$system"
    program=$CARGO_TARGET_DIR/release/$system
    "$program" 12
    "$program" 16 64MiB
    SPILLPROOF_MEMORY=64MiB SPILLPROOF_DIR=. SPILLPROOF_PROGRESS=1 SPILLPROOF_REPORT=run.html "$program" 18
    test -s run.html
    cd ..
done
echo "the programs of both systems were built without a network, and prove within their budgets"
