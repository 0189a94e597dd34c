"""The read API under `/api/v1`: what a `ReadDesk` shows, as JSON.

The handlers are coroutines without an await on purpose: the desk reads state that belongs to the event loop.
Never: a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from extender.server.auth import Guard
from extender.server.faults import not_found
from extender.server.models import (
    Decision,
    Decisions,
    ExplainRequest,
    Explanation,
    Failure,
    Fleet,
    Gang,
    Gangs,
    Node,
)
from extender.verbs.ports import ReadDesk

_Limit = Annotated[int, Query(ge=1, le=1000, description="How many to answer at most.")]
_Name = Annotated[str, Path(max_length=253)]
_FAILURES: dict[int | str, dict[str, Any]] = {
    code: {"model": Failure} for code in (401, 403, 404, 413, 422, 503)
}
# The body is read by the handler, after the guard: FastAPI itself would parse it for anybody.
_EXPLAIN_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": ExplainRequest.model_json_schema()}},
    }
}


def read_router(desk: ReadDesk, guard: Guard | None) -> APIRouter:
    """The routes of the read API; without a guard they are open."""
    dependencies: Sequence[Any] = [Depends(guard)] if guard is not None else []
    router = APIRouter(prefix="/api/v1", dependencies=dependencies, responses=_FAILURES, tags=["read"])

    @router.get("/fleet", summary="Nodes and their devices, by name", response_model=Fleet)
    async def fleet(
        after: Annotated[str, Query(max_length=253, description="`next` of the page before.")] = "",
        limit: _Limit = 100,
    ) -> Response:
        # Written here: FastAPI would check thousands of rows a second time.
        page = Fleet.model_validate(desk.fleet(after, limit))
        return Response(page.model_dump_json(), media_type="application/json")

    @router.get("/nodes/{name}", summary="A node with every device and its holders")
    async def node(name: _Name) -> Node:
        found = desk.node(name)
        if found is None:
            raise not_found(f"node {name!r}")
        return Node.model_validate(found)

    @router.get("/decisions", summary="The newest decisions, and whether the predicted devices were granted")
    async def decisions(
        limit: _Limit = 100,
        pod: Annotated[str, Query(max_length=512, description="UID, name or namespace/name.")] = "",
    ) -> Decisions:
        found = desk.decisions(limit, pod)
        return Decisions(decisions=[Decision.model_validate(decision) for decision in found])

    @router.get("/gangs", summary="Gangs and how far they are")
    async def gangs() -> Gangs:
        return Gangs(gangs=[Gang.model_validate(gang) for gang in desk.gangs()])

    @router.post("/explain", summary="What filter and prioritize would say", openapi_extra=_EXPLAIN_BODY)
    async def explain(request: Request) -> Explanation:
        asked = ExplainRequest.model_validate_json(await request.body())
        if asked.pod is not None:
            return Explanation.model_validate(desk.explain(asked.pod, asked.nodes, asked.limit))
        found = desk.explain_existing(asked.namespace, asked.name, asked.nodes, asked.limit)
        if found is None:
            raise not_found(f"pod {asked.namespace}/{asked.name}")
        return Explanation.model_validate(found)

    return router
