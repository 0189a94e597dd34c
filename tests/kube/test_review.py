from __future__ import annotations

from typing import Any

import pytest

from extender.kube.client import ApiClient
from extender.kube.review import Reviewer
from extender.model.errors import KubeError
from extender.verbs.views import Identity
from tests.kube.recording import FakeTime
from tests.kube.scripted_api import ScriptedApi, answer, refuse

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def good(*audiences: str, name: str = "system:serviceaccount:n:agent") -> dict[str, Any]:
    user = {
        "username": name,
        "uid": "u",
        "groups": ["g"],
        "extra": {"authentication.kubernetes.io/node-name": ["n1"]},
    }
    return {"status": {"authenticated": True, "audiences": list(audiences), "user": user}}


async def test_a_good_token_names_its_owner(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", TOKENS, answer(201, good("berth")))
    identity = await Reviewer(client, clock=FakeTime().pace().clock).authenticate("t", "berth")
    assert identity is not None
    assert (identity.username, identity.groups) == ("system:serviceaccount:n:agent", ("g",))
    assert identity.extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert api.requests[0].json["spec"] == {"token": "t", "audiences": ["berth"]}


@pytest.mark.parametrize("said", [good("other"), good(), {"status": {"authenticated": False}}, {}])
async def test_a_token_that_is_not_for_us_names_nobody(
    api: ScriptedApi, client: ApiClient, said: dict[str, Any]
) -> None:
    api.on("POST", TOKENS, answer(201, said))
    assert await Reviewer(client, clock=FakeTime().pace().clock).authenticate("t", "berth") is None


async def test_answers_are_remembered_for_their_time_by_token_and_audience(
    api: ScriptedApi, client: ApiClient
) -> None:
    time = FakeTime()
    reviewer = Reviewer(client, clock=time.pace().clock, seconds=60, refusal_seconds=10)
    api.on("POST", TOKENS, answer(201, good("berth")), answer(201, {}))
    for _ in range(3):
        assert await reviewer.authenticate("t", "berth") is not None
    assert len(api.requests) == 1
    assert await reviewer.authenticate("t", "other") is None
    assert await reviewer.authenticate("t2", "berth") is None
    assert len(api.requests) == 3
    time.now += 10
    assert await reviewer.authenticate("t2", "berth") is None
    assert len(api.requests) == 4
    time.now += 50
    assert await reviewer.authenticate("t", "berth") is None
    assert len(api.requests) == 5


async def test_the_memory_holds_no_token_and_no_more_than_its_size(
    api: ScriptedApi, client: ApiClient
) -> None:
    reviewer = Reviewer(client, clock=FakeTime().pace().clock, size=10)
    api.on("POST", TOKENS, answer(201, good("berth")))
    for number in range(50):
        await reviewer.authenticate(f"very-secret-{number}", "berth")
    held = reviewer._identities._held
    assert len(held) == 10
    assert "very-secret" not in repr(held)


async def test_an_outage_is_a_fault_and_not_remembered(api: ScriptedApi, client: ApiClient) -> None:
    reviewer = Reviewer(client, clock=FakeTime().pace().clock)
    api.on("POST", TOKENS, refuse(503, message="later"), answer(201, good("berth")))
    with pytest.raises(KubeError) as caught:
        await reviewer.authenticate("very-secret", "berth")
    assert "very-secret" not in str(caught.value)
    assert await reviewer.authenticate("very-secret", "berth") is not None


async def test_rights_are_asked_for_the_path_and_remembered(api: ScriptedApi, client: ApiClient) -> None:
    time = FakeTime()
    reviewer = Reviewer(client, clock=time.pace().clock)
    api.on(
        "POST",
        RIGHTS,
        answer(201, {"status": {"allowed": True}}),
        answer(201, {"status": {"allowed": False}}),
    )
    who = Identity("ann", groups=("g",), extra={"scopes": ("a",)})
    assert await reviewer.allowed(who, "get", "/api/v1/fleet")
    assert await reviewer.allowed(who, "get", "/api/v1/fleet")
    assert not await reviewer.allowed(who, "post", "/api/v1/explain")
    assert not await reviewer.allowed(Identity("bob"), "get", "/api/v1/fleet")
    assert len(api.requests) == 3
    assert api.requests[0].json["spec"] == {
        "user": "ann",
        "uid": "",
        "groups": ["g"],
        "extra": {"scopes": ["a"]},
        "nonResourceAttributes": {"path": "/berth.scheduler/api/v1/fleet", "verb": "get"},
    }
