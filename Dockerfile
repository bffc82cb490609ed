# The action's image: Python, the package with what it runs on, nothing else. Runs as root, as actions must.
# The base is an argument, so that a build can do without a registry; requirements/base.Dockerfile says where it is
# updated. Slim, not Alpine: the C library under Python is then the one that all tests run on.
ARG BASE=python:3.13-slim@sha256:70729b46c69b4f1e97c4822c1af3df53a1476cf5ddc6c087c0c10bc3a5678c2f

FROM ${BASE} AS build
RUN python -m venv --without-pip /opt/venv && python -m venv --without-pip /opt/build
COPY requirements/image.txt requirements/build.txt /src/requirements/
# Everything that comes from the network is checked against its hash.
# Left out: PyYAML's C part, which loads with it and parses nothing here; of rapidfuzz, the compiled parts for fuzzy
# search and the second build of the distances, for AVX2, because a check compares one pair of texts at a time, which
# that build does not speed up; what packages ship of their tests and of types.
RUN pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --require-hashes --requirement /src/requirements/image.txt \
    && cd /opt/venv/lib/python3*/site-packages \
    && rm -rf yaml/_yaml*.so jsonschema/benchmarks jsonschema/tests referencing/tests \
        rapidfuzz/fuzz_cpp*.so rapidfuzz/process_cpp* rapidfuzz/utils_cpp*.so rapidfuzz/distance/*_avx2*.so \
        rapidfuzz/__pyinstaller \
    && find rapidfuzz re2 -name '*.pyi' -delete
RUN pip --python /opt/build/bin/python install --no-cache-dir --no-deps --require-hashes --requirement /src/requirements/build.txt
COPY pyproject.toml README.md LICENSE /src/
COPY ragcontract /src/ragcontract
# Without isolation: an isolated build would fetch its backend without hashes. Without an index, for the same reason.
# Left out: the bytecode of what no check loads, and the team service, whose packages are not here.
RUN pip --python /opt/build/bin/python wheel --no-cache-dir --no-deps --no-index --no-build-isolation --wheel-dir /wheel /src \
    && pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --no-index /wheel/*.whl \
    && cd /opt/venv/lib/python3*/site-packages/ragcontract \
    && find cli cluster convert judge labelling record -name __pycache__ -prune -exec rm -r {} + && rm -r service
COPY entrypoint.py /opt/venv/entrypoint.py

FROM ${BASE}
COPY --from=build /opt/venv /opt/venv
# Slim images ship the standard library without bytecode: importing once compiles just what the action uses.
RUN ["/opt/venv/bin/python", "-I", "-c", "import ragcontract.action, ragcontract.github.http, ragcontract.github.relay, ragcontract.report.html.page, ragcontract.report.junit, concurrent.futures, difflib, encodings.ascii, encodings.unicode_escape, encodings.utf_16_le, gzip, html, importlib.readers, jsonschema, traceback, yaml"]
# Isolated (-I), so that a json.py in the workspace is never imported; the exec form, since a shell would drop the
# inputs' variables, which have hyphens in their names.
ENTRYPOINT ["/opt/venv/bin/python", "-I", "-u", "/opt/venv/entrypoint.py"]
