# The action's image: Python, the package with what it runs on, nothing else. Runs as root, as actions must.
# The base is an argument, so that a build can pin a digest, or do without a registry.
# Slim, not Alpine: the C library under Python is then the one that all tests run on.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
RUN python -m venv --without-pip /opt/venv
COPY requirements/runtime.txt /src/requirements/runtime.txt
# Left out: PyYAML's C part, which loads with it and parses nothing here, and what packages ship of their tests.
RUN pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --requirement /src/requirements/runtime.txt \
    && cd /opt/venv/lib/python3*/site-packages \
    && rm -rf yaml/_yaml*.so jsonschema/benchmarks jsonschema/tests referencing/tests
COPY pyproject.toml README.md LICENSE /src/
COPY ragcontract /src/ragcontract
RUN pip --python /opt/venv/bin/python install --no-cache-dir --no-deps /src
COPY entrypoint.py /opt/venv/entrypoint.py

FROM ${BASE}
COPY --from=build /opt/venv /opt/venv
# Slim images ship the standard library without bytecode: importing once compiles just what the action uses.
RUN ["/opt/venv/bin/python", "-I", "-c", "import ragcontract.action, ragcontract.github.client, ragcontract.github.relay, ragcontract.reports.html.page, ragcontract.reports.junit, concurrent.futures, difflib, encodings.ascii, encodings.unicode_escape, gzip, importlib.readers, jsonschema, traceback, yaml"]
# Isolated (-I), so that a json.py in the workspace is never imported; the exec form, since a shell would drop the
# inputs' variables, which have hyphens in their names.
ENTRYPOINT ["/opt/venv/bin/python", "-I", "-u", "/opt/venv/entrypoint.py"]
