# The binary `spillproof` in an image, `spillproof serve` included (docs/server.md). Its user is nobody special; scratch files go to the volume /scratch, which should be on NVMe:
#
#   docker build -t spillproof .
#   docker run --rm -v /nvme/scratch:/scratch spillproof prove --k 16 --memory 64MiB --out /scratch/chain.proof
#
# Docker's own seccomp profile forbids io_uring, and userfaultfd: then files are read with pread, and cells of advice are asked for by signals, both of which
# take more time. A profile that allows both has what the program takes outside of a container.
FROM rust:1.91.1-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package spillproof-cli --features serve --bin spillproof

FROM debian:bookworm-slim
COPY --from=build /source/target/release/spillproof /usr/local/bin/spillproof
COPY LICENSE-MIT LICENSE-APACHE /usr/local/share/doc/spillproof/
RUN useradd --system --uid 10001 --no-create-home spillproof && install -d -o spillproof -g spillproof -m 0700 /scratch
USER spillproof
ENV SPILLPROOF_DIR=/scratch
VOLUME /scratch
WORKDIR /scratch
ENTRYPOINT ["spillproof"]
