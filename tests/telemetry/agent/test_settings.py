"""The agent's settings."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from extender.telemetry.agent.settings import AgentSettings, split_address


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"target": "http://berth.berth.svc:8080"}, "plain http"),
        ({"target": "http://localhost:1", "addresses": ("10.0.0.1:1",)}, "plain http"),
        ({"target": "ftp://x"}, "target"),
        ({"target": "https://x", "addresses": (":1",)}, "addresses"),
        ({"event_wait_milliseconds": 5001}, "event_wait_milliseconds"),
        ({"poll_seconds": 0}, "poll_seconds"),
        ({"restart_min_seconds": 9, "restart_max_seconds": 1}, "restart_max_seconds"),
        ({"pol_s": 1}, "pol_s"),
        ({"node_name": ""}, "node_name"),
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        AgentSettings(**({"node_name": "n1"} | given))


def test_loopback_may_be_plain() -> None:
    for target in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"):
        assert AgentSettings(node_name="n1", target=target).target == target


@pytest.mark.parametrize(
    ("text", "address"),
    [("a:1", ("a", 1)), ("[::1]:2", ("::1", 2)), ("10.0.0.1", ("10.0.0.1", 0))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address
