# syntax=docker/dockerfile:1
# chokaq with Microsoft's ODBC driver. The driver stands under Microsoft's licence, which whoever builds the image accepts:
#
#   docker build --build-arg ACCEPT_EULA=Y --tag chokaq:0.2.0 .
#
# Your application goes on top of it: docs/deployment.md shows how.
#
# Targets: runtime (the default), trial (with the example shop, for deploy/compose), contract (the test suite, likewise).

# The interpreter that the tests run on.
ARG PYTHON=3.11-slim-bookworm

# ── what pip builds and installs, without a compiler or a cache in the result; Microsoft's driver 18 is among it ───────────
FROM python:${PYTHON} AS build
ARG EXTRAS=deck
ARG ACCEPT_EULA=""
RUN test "${ACCEPT_EULA}" = Y \
    || { echo "the ODBC driver stands under Microsoft's licence: accept it with --build-arg ACCEPT_EULA=Y" >&2; exit 1; }
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY chokaq chokaq
COPY sql sql
COPY examples examples
RUN python -m venv /opt/chokaq \
    && /opt/chokaq/bin/pip install --no-cache-dir ".[odbc]" ".[${EXTRAS}]"

# ── the system's part of the driver: unixODBC, Kerberos ───────────────────────────────────────────────────────────────────
FROM python:${PYTHON} AS system
# Debian keeps one version of a package at a time: a pinned one would fail to install after its next security fix.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates libgssapi-krb5-2 libodbc2 libodbcinst2 \
    && rm -rf /var/lib/apt/lists/*

# ── the program, as a user without rights ─────────────────────────────────────────────────────────────────────────────────
FROM system AS runtime
RUN groupadd --gid 10001 chokaq \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /app --shell /usr/sbin/nologin chokaq \
    && install --directory --owner=chokaq --group=chokaq --mode=0700 /run/chokaq \
    && install --directory /app /etc/chokaq
COPY --from=build /opt/chokaq /opt/chokaq
ENV PATH=/opt/chokaq/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    XDG_RUNTIME_DIR=/run/chokaq
WORKDIR /app
USER 10001:10001
EXPOSE 9090 8420
STOPSIGNAL SIGTERM
# For engines that have no probes of their own; asks the probe port of the configuration. Kubernetes asks by HTTP.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --retries=3 CMD ["chokaq", "health", "--live"]
ENTRYPOINT ["chokaq"]
CMD ["worker"]

# ── the shop of the demo, to try everything with ──────────────────────────────────────────────────────────────────────────
FROM runtime AS trial
USER 0
RUN --mount=type=bind,target=/src,rw \
    /opt/chokaq/bin/pip install --no-cache-dir "/src[demo]" \
    && cp -R /src/examples/shop /app/shop \
    && install --directory --owner=chokaq --group=chokaq /reports
USER 10001:10001

# ── the contract suite, for a SQL Server of its own ───────────────────────────────────────────────────────────────────────
FROM runtime AS contract
# It writes its proof into a mounted folder of whoever started it.
# hadolint ignore=DL3002
USER 0
WORKDIR /src
COPY . .
RUN /opt/chokaq/bin/pip install --no-cache-dir ".[test]"
HEALTHCHECK NONE
ENTRYPOINT ["python", "-m", "pytest"]
CMD ["tests/contract"]

# ── without --target ──────────────────────────────────────────────────────────────────────────────────────────────────────
FROM runtime
