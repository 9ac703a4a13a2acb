"""Who the caller is, as far as the host is concerned."""

from fastapi import APIRouter
from starlette.responses import Response

from session_server.schemas.principals import Principal
from session_server.web.bodies import json_response
from session_server.web.caller import Caller
from session_server.web.openapi import described

router = APIRouter(prefix="/v1/me", tags=["access"])


@router.get("", **described(200, Principal))
async def read_me(who: Caller) -> Response:
    """Whom your credential proves, what that lets you do, and until when."""
    return json_response(who)
