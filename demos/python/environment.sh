#!/bin/sh
# Makes an environment of Python's with what the package needs, and with the packages that are named: its tests take it.
# Prints SKIPPED where Python or an index of packages is missing.
set -eu
cd "$(dirname "$0")"

skip() {
  echo "SKIPPED: $1: the Python package is not tested"
  exit 0
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || skip "there is no Python 3.11 or later"
environment=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/python/venv
mkdir -p "$(dirname "$environment")"
[ -x "$environment/bin/python" ] || python3 -m venv "$environment" || skip "python3 has no venv or no pip"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check 'numpy>=1.24' "$@" || skip "packages cannot be installed: numpy $*"
