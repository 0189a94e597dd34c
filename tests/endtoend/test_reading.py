"""A person asks the leader with the command line, as docs/install.md says."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.endtoend.fleet import Fleet
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane


def berth(*arguments: str) -> Any:
    command = [sys.executable, "-m", "extender", *arguments, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_explain_and_decisions_answer_over_tls_to_a_readers_token(
    fleet: Fleet, leader: Replica, deployed: Deployed, tmp_path: Path
) -> None:
    fleet.template("one")
    bound = fleet.wait_bound(fleet.create([fleet.pod("first", templates=["one"])]))["first"]
    token = tmp_path / "token"
    token.write_text(deployed.reader_token())
    where = ["--url", f"https://localhost:{leader.port}", "--token-file", str(token)]
    where += ["--ca-file", str(deployed.tls / "ca.crt")]

    (decision,) = berth("decisions", "--pod", f"{fleet.namespace}/first", *where)["decisions"]
    assert (decision["node"], decision["outcome"]) == (bound["spec"]["nodeName"], "right")
    ((*_, device),) = fleet.devices_of(bound, fleet.claims())
    assert [one["device"] for one in decision["predicted"]] == [device]

    explained = berth("explain", f"{fleet.namespace}/first", *where)
    assert explained["podName"] == "first"
    assert {judge["judge"] for judge in explained["nodes"][0]["judges"]} >= {"pack", "pool"}
