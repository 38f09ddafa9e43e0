#!/bin/sh
# Builds the wheel, installs it into an environment of its own, and tests it. Prints SKIPPED where that is not possible.
# (`cargo test -p spillproof-python` tests the library without a wheel.)
set -eu
cd "$(dirname "$0")"

sh environment.sh 'maturin>=1.9,<2'
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
python=$target/python/venv/bin/python
"$python" -m maturin --version > /dev/null 2>&1 || exit 0
wheels=$target/python/wheels
rm -rf "$wheels"
# Not for release: kernels are optimised, and it takes half the time.
CARGO_TARGET_DIR="$target" "$python" -m maturin build --quiet --profile dev --locked --interpreter "$python" --out "$wheels"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/spillproof-*.whl
# From another folder: the package that was installed, not its source.
export PYTHONDONTWRITEBYTECODE=1
tests=$PWD/tests
cd "$target/python"
"$python" -m unittest discover --start-directory "$tests" --verbose
