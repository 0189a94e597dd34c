# The image of Berth. Every package comes by its hash; the second stage has neither pip's cache nor a builder.
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/berth
RUN /opt/berth/bin/pip install --require-hashes --only-binary=:all: -r requirements.lock
RUN python -m venv /opt/builder
RUN /opt/builder/bin/pip install --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY extender extender
RUN /opt/builder/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels .
RUN /opt/berth/bin/pip install --no-index --no-deps /opt/wheels/berth-*.whl
RUN /opt/berth/bin/pip uninstall --yes pip
RUN /opt/berth/bin/python -m compileall -q /opt/berth/lib

FROM python:3.13-slim
# The root file system is read-only in the cluster: nothing is compiled at run time.
ENV PATH=/opt/berth/bin:$PATH PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/berth /opt/berth
WORKDIR /srv/berth
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["berth"]
CMD ["serve"]
