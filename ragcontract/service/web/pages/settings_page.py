"""The page of settings, which says who may do what."""

from litestar import get
from litestar.response import Template

from ragcontract.service.web.authentication import SIGNED_IN
from ragcontract.service.web.pages.page_frame import shown_page
from ragcontract.service.web.parameters import Asker


@get("/settings", access=SIGNED_IN, page=True, include_in_schema=False, sync_to_thread=True)
def settings_page(principal: Asker) -> Template:
    """Show who is logged in, and to administrators users, keys and the audit log."""
    return shown_page("settings.html", principal)


ROUTES = (settings_page,)
