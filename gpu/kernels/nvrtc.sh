#!/bin/sh
# Fetches what compiles and disassembles kernels (NVRTC 13.0 and nvdisasm, about 120 MB, from PyPI) into target/nvrtc, where
# `cargo test -p spillproof-gpu kernels_nvrtc` finds them. They are NVIDIA's, under its licence: nothing of them is kept in
# the tree or linked. Without pip, or without a network, says SKIPPED and succeeds.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=target/nvrtc

if [ -e "$folder/complete" ]; then
  exit 0
fi
pip="python3 -m pip"
if ! $pip --version > /dev/null 2>&1; then
  echo "SKIPPED: kernels are not compiled for devices: no pip to fetch NVRTC with" >&2
  exit 0
fi
# 13.0 on purpose: what later ones write older drivers refuse, and the test's table is of its code. Any nvdisasm reads that.
if $pip install --quiet --retries 1 --timeout 20 --disable-pip-version-check --no-deps --upgrade --target "$folder" \
  'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-nvdisasm>=13.2,<14'; then
  touch "$folder/complete"
else
  echo "SKIPPED: kernels are not compiled for devices: NVRTC could not be fetched" >&2
fi
