"""The table of the team service's API, from the routes themselves."""

from collections.abc import Iterator

from litestar import Litestar
from litestar.routes import HTTPRoute

from ragcontract.service.web.app import routes
from ragcontract.service.web.authentication import Access
from ragcontract.service.web.parameters import API

HEAD = "| route | role or scope | answer |\n| --- | --- | --- |\n"


def table() -> str:
    """Return a row for each route of the API: who may use it, and what it does."""
    return HEAD + "".join(_rows(routes()))


def _rows(app: Litestar) -> Iterator[str]:
    needs = {
        (route.path.replace(":str", "").replace(":int", ""), method): handler.opt.get("access")
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
    }
    paths = app.openapi_schema.to_schema()["paths"]
    for path in sorted(path for path in paths if path.startswith(API)):
        for method, operation in paths[path].items():
            access = needs[path, method.upper()]
            by = [access.role, access.scope and f"`{access.scope}`"] if isinstance(access, Access) else ["any"]
            does = operation["description"].partition("\n\n")[0].replace("\n", " ")
            yield f"| `{method.upper()} {path.removeprefix(API)}` | {', '.join(filter(None, by))} | {does} |\n"
