# The daemon and the CLI. One file for both images, which differ in their bases only:
#
#   docker build -t warpline:cpu .
#   docker compose -f deploy/compose.yaml -f deploy/compose.gpu.yaml build warpline    (tags it warpline)
#
#   docker run --gpus all --stop-timeout 30 -p 127.0.0.1:50051:50051 -p 127.0.0.1:9400:9400 warpline
#
# Both bases of an image are of one distribution: the build links its glibc and libstdc++. With a newer gRPC
# than Debian 12's 1.51 (SECURITY.md says which to use), without CUDA:
#
#   docker build -t warpline:cpu --build-arg BUILD_BASE=debian:sid-slim --build-arg RUNTIME_BASE=debian:sid-slim \
#     --build-arg GRPC_SUITE=experimental .
ARG BUILD_BASE=debian:12-slim
ARG RUNTIME_BASE=debian:12-slim

FROM ${BUILD_BASE} AS build
# A suite of Debian with a newer gRPC than the base's own.
ARG GRPC_SUITE=
# Those of ./quickstart's packages that building needs; tests/deploy/files_test.py compares the two lists.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      g++ cmake ninja-build pkg-config git \
      libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev \
      libre2-dev libc-ares-dev libssl-dev zlib1g-dev libcli11-dev nlohmann-json3-dev \
      prometheus-cpp-dev libcivetweb-dev libeigen3-dev libopenblas-dev libgoogle-perftools-dev libtoml11-dev \
 && if [ -n "$GRPC_SUITE" ]; then \
      echo "deb http://deb.debian.org/debian $GRPC_SUITE main" >/etc/apt/sources.list.d/grpc.list && apt-get update \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -t "$GRPC_SUITE" \
           libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev; \
    fi \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# A compiler of gRPC code takes up to 1.5 GB.
ARG JOBS=2
# Without it what --version says is of the .git that was copied.
ARG REVISION=
# AUTO would build without CUDA, and say so only in its output, if the toolkit of the base did not work.
RUN if [ -d /usr/local/cuda ]; then cuda=ON; else cuda=OFF; fi \
 && cmake --preset release -DBUILD_TESTING=OFF -DWARPLINE_CUDA=$cuda -DWARPLINE_REVISION="$REVISION" \
 && cmake --build build/release -j "$JOBS" --target warplined warpline \
 && cmake --install build/release --component runtime --prefix /opt/warpline

FROM ${RUNTIME_BASE}
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="warpline" \
      org.opencontainers.image.description="A GPU kernel server: transpose, gemm, reduce and chains of them over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# cuBLASLt, of the base's own CUDA version. The daemon looks in /usr/local/cuda by itself.
RUN if [ -d /usr/local/cuda ]; then \
      apt-get update \
      && apt-get install -y --no-install-recommends "libcublas-$(echo "${CUDA_VERSION:?}" | cut -d. -f1,2 | tr . -)" \
      && rm -rf /var/lib/apt/lists/* \
      && ls /usr/local/cuda/targets/*/lib/libcublasLt.so.13; \
    fi
COPY --from=build /opt/warpline /usr/local
# A number, so that Kubernetes can tell that it is not root.
USER 10001:10001
EXPOSE 50051 9400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/usr/local/bin/warpline", "health", "--quiet", "--deadline=3s"]
# CUDA's bases bring an entry point that prints a banner.
ENTRYPOINT []
# Whoever stops it must wait for the grace before killing it, which an image cannot say: `docker run --stop-timeout 30`
# (else 10 seconds), stop_grace_period in compose.yaml, terminationGracePeriodSeconds: 30 in Kubernetes (its default).
# Whoever publishes the ports beyond this host wants TLS: deploy/compose.tls.yaml.
CMD ["/usr/local/bin/warplined", "--listen=0.0.0.0:50051", "--metrics-listen=0.0.0.0:9400", "--insecure", \
     "--grace=25s", "--drain-delay=3s"]
