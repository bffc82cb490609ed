"""The description of the API, OpenAPI 3.1, from the code of the routes."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Reference, SecurityScheme

from ragcontract.core.version import __version__
from ragcontract.service.access import SIGNED_IN
from ragcontract.service.web.authentication import READING, SECURE_COOKIE
from ragcontract.service.web.problem_details import MEDIA_TYPE, Problem

EVERYWHERE = (400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
CHANGING = (409,)  # further ones of what is not only read


def config(api: str) -> OpenAPIConfig:
    """Return the settings of the description. Its own routes are for nobody: :func:`openapi` has it complete."""
    schemes: dict[str, SecurityScheme | Reference] = {
        "key": SecurityScheme(type="http", scheme="bearer", description="A key, such as rc_1a2b3c4d_…"),
        "session": SecurityScheme(
            type="apiKey", name=SECURE_COOKIE, security_scheme_in="cookie", description="The session of a browser."
        ),
    }
    return OpenAPIConfig(
        title="rag-contract",
        version=__version__,
        path=f"{api}/openapi",
        render_plugins=[JsonRenderPlugin()],
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _path: handler.handler_name,  # which clients name methods by
        security=[{"key": []}, {"session": []}],
        components=Components(security_schemes=schemes),
    )


@get("/openapi.json", access=SIGNED_IN, include_in_schema=False, sync_to_thread=True)
def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the description of all routes and answers."""
    return Response(
        msgspec.json.encode(described(request.app.openapi_schema.to_schema())), media_type="application/json"
    )


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Add the problems of every route to a description."""
    ((_, named),) = [msgspec.json.schema_components([Problem], ref_template="#/components/schemas/{name}")]
    components = {**schema["components"]}
    components["schemas"] = {**components.get("schemas", {}), **named}
    paths: dict[str, Any] = {}
    for path, item in schema["paths"].items():
        paths[path] = {
            method: {**operation, "responses": {**operation["responses"], **dict(_problems(method))}}
            for method, operation in item.items()
        }
    return {**schema, "paths": paths, "components": components}


def _problems(method: str) -> Iterator[tuple[str, Any]]:
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    for status in sorted(EVERYWHERE + (() if method.upper() in READING else CHANGING)):
        yield str(status), {"description": HTTPStatus(status).phrase, "content": content}


ROUTES = (openapi,)
