# Two images: `service` (the default) serves; `clients` also draws reports and live views.
#   docker build -t lacuna .
#   docker build -t lacuna-clients --target clients .
# To pin the base by digest: --build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm


# What the service imports, by hash, and wheels only: nothing is compiled, so no compiler is needed.
# Byte code is marked as never to be checked: it does not depend on the time of a file, and a
# read-only start does not try to write it anew. The libraries' own tests, a tenth of the size, go.
FROM ${PYTHON_IMAGE} AS service-venv
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/runtime.lock /build/
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv/bin/python install --quiet --no-compile \
      --only-binary :all: --require-hashes --requirement /build/runtime.lock \
 && find /opt/venv/lib -type d -name tests -prune -exec rm -rf {} + \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib


FROM service-venv AS clients-venv
COPY requirements/clients.lock /build/
RUN python -m pip --python /opt/venv/bin/python install --quiet --no-compile \
      --only-binary :all: --require-hashes --requirement /build/clients.lock \
 && find /opt/venv/lib -type d -name tests -prune -exec rm -rf {} + \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib


# The code, and its kernels compiled. Numba files them under the CPU it compiled for: `generic` runs
# on every CPU of the architecture. A build for known machines may say, for instance, x86-64-v3.
FROM service-venv AS code
WORKDIR /opt/lacuna
COPY service ./service
COPY clients ./clients
COPY --chmod=0755 deploy/image/lacuna deploy/image/lacuna-healthy ./bin/
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash service clients
ARG KERNEL_CPU=generic
ENV NUMBA_CPU_NAME=${KERNEL_CPU} NUMBA_CPU_FEATURES=""
RUN NUMBA_CACHE_DIR=/opt/lacuna/kernels /opt/venv/bin/python -c \
      "from service.api.warmup import warm_up; warm_up()"


# What both images have. Nothing in them belongs to the user they run as, but for the two folders
# that volumes take their owner from.
FROM ${PYTHON_IMAGE} AS base
RUN mkdir -p /data /reports && chown 10001:10001 /data /reports
ARG KERNEL_CPU=generic
ENV PATH=/opt/lacuna/bin:/opt/venv/bin:${PATH} \
    PYTHONPATH=/opt/lacuna \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=${KERNEL_CPU} \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/tmp/lacuna-kernels
WORKDIR /tmp
USER 10001:10001
STOPSIGNAL SIGTERM
ENTRYPOINT ["lacuna"]


FROM base AS clients
COPY --from=clients-venv /opt/venv /opt/venv
COPY --from=code /opt/lacuna /opt/lacuna
ENV MPLCONFIGDIR=/tmp/matplotlib
CMD ["demo", "--help"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Lacuna clients" \
      org.opencontainers.image.description="Demo, load test and replay for Lacuna" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"


FROM base AS service
COPY --from=service-venv /opt/venv /opt/venv
COPY --from=code /opt/lacuna /opt/lacuna
ENV LACUNA_HOST=0.0.0.0 LACUNA_PORT=8080 LACUNA_DATA_DIR=/data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["lacuna-healthy"]
CMD ["serve"]
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Lacuna" \
      org.opencontainers.image.description="Online recommendation with noisy or missing features" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
