"""Users that behave like a kube-scheduler: filter, then prioritize, one after the other on one connection.

Started by `loadtest.run`, which passes the settings below in the environment. It records every response time
itself, for locust's own percentiles are rounded to whole milliseconds.
"""

from __future__ import annotations

import json
import os
import random
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from locust import FastHttpUser, constant, events, task
from locust.env import Environment

from extender.api.core import Pod
from extender.api.extender import ExtenderArgs
from extender.sim.generated import POD_KINDS, asking, node_name

NODES = int(os.environ["LOADTEST_NODES"])
NAMES = int(os.environ["LOADTEST_NAMES"])
MOST_REQUESTS = int(os.environ["LOADTEST_MOST_REQUESTS"])
RESULTS = Path(os.environ["LOADTEST_RESULTS"])

_times: dict[str, list[float]] = {"filter": [], "prioritize": []}
_faults: list[str] = []


class KubeScheduler(FastHttpUser):
    """One kube-scheduler: it has one connection and waits for each answer."""

    wait_time = constant(0)
    concurrency = 1

    def on_start(self) -> None:
        """Draw from the same sequence in every run."""
        self.random = random.Random(NAMES)
        self.numbers = count()

    @task
    def place(self) -> None:
        """Ask where one pod may go and, with a choice left, where it should."""
        (kind,) = self.random.choices(POD_KINDS, [each.share for each in POD_KINDS])
        start = self.random.randrange(NODES)
        names = [node_name((start + step) % NODES) for step in range(min(NAMES, NODES))]
        pod = asking(kind, next(self.numbers))
        answer = self._call("filter", pod, names)
        if answer is None:
            return
        if answer["Error"] or not set(answer["NodeNames"]) <= set(names):
            _faults.append(f"filter: {answer['Error'] or 'a node that was not offered'}")
            return
        passed = answer["NodeNames"]
        if len(passed) > 1:
            scores = self._call("prioritize", pod, passed)
            if scores is not None and {each["Host"] for each in scores} - set(passed):
                _faults.append("prioritize: a node that was not offered")

    def _call(self, verb: str, pod: Pod, names: list[str]) -> Any:
        content = msgspec.json.encode(ExtenderArgs(pod=pod, node_names=names)).decode()
        headers = {"Content-Type": "application/json"}
        with self.client.post(
            f"/extender/{verb}", data=content, headers=headers, name=verb, catch_response=True
        ) as response:
            if response.status_code != 200:
                response.failure(f"status {response.status_code}")
                _faults.append(f"{verb}: status {response.status_code}")
                return None
            return json.loads(response.content)


def _record(environment: Environment, **_: Any) -> None:
    def one(name: str, response_time: float, exception: Exception | None, **_: Any) -> None:
        if exception is not None:
            _faults.append(f"{name}: {exception}")
            return
        _times[name].append(response_time)
        if sum(map(len, _times.values())) >= MOST_REQUESTS and environment.runner is not None:
            environment.runner.quit()

    environment.events.request.add_listener(one)  # type: ignore[no-untyped-call]  # locust has no types here


def _write(**_: Any) -> None:
    RESULTS.write_text(json.dumps({"times": _times, "faults": _faults}))


events.init.add_listener(_record)  # type: ignore[no-untyped-call]  # locust has no types here
events.quit.add_listener(_write)  # type: ignore[no-untyped-call]  # locust has no types here
