#!/bin/sh
# Builds the wheel, installs it into an environment of its own, and tests it. Prints SKIPPED where that is not possible.
set -eu
cd "$(dirname "$0")"

skip() {
  echo "SKIPPED: $1: the Python package is not tested"
  exit 0
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || skip "there is no Python 3.11 or later"
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/python
mkdir -p "$target"
python=$target/venv/bin/python
if ! [ -x "$python" ]; then
  python3 -m venv "$target/venv" || skip "python3 has no venv or no pip"
fi
"$python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' 'numpy>=1.24' || skip "maturin or numpy cannot be installed"
cargo fetch --quiet --locked || skip "the crate pyo3 cannot be fetched"

rm -rf "$target/wheels"
# Not for release: kernels are optimised, and it takes half the time.
CARGO_TARGET_DIR="$target" "$python" -m maturin build --quiet --profile dev --locked --offline --interpreter "$python" --out "$target/wheels"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels/spillproof-*.whl
# From another folder: the package that was installed, not its source.
export PYTHONDONTWRITEBYTECODE=1
tests=$PWD/tests
cd "$target"
"$python" -m unittest discover --start-directory "$tests" --verbose
