"""Effective requests, as kube-scheduler adds them up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.core import Container, PodSpec, ResourceRequirements
from extender.inventory import requests
from extender.inventory.requests import is_extended_resource, pod_requests
from tests.inventory.objects import GPU


def container(amount: int, *, sidecar: bool = False, limit_only: bool = False) -> Container:
    asked: dict[str, str | int | float] = {GPU: str(amount)}
    resources = ResourceRequirements(limits=asked) if limit_only else ResourceRequirements(requests=asked)
    return Container("c", resources=resources, restart_policy="Always" if sidecar else None)


@pytest.mark.parametrize(
    ("inits", "apps", "expected"),
    [
        pytest.param([container(0)], [container(1), container(1)], 2, id="an init container without devices"),
        pytest.param([container(2)], [container(1)], 2, id="an init container with more than the app"),
        pytest.param([container(1, sidecar=True)], [container(1)], 2, id="a sidecar runs beside the app"),
        pytest.param(
            [container(1, sidecar=True), container(2)],
            [container(1)],
            3,
            id="an init beside an earlier sidecar",
        ),
        pytest.param(
            [container(2), container(1, sidecar=True)], [container(1)], 2, id="an init before the sidecar"
        ),
        pytest.param([], [container(3, limit_only=True)], 3, id="a limit without a request is a request"),
    ],
)
def test_a10_init_and_sidecar_containers(
    inits: list[Container], apps: list[Container], expected: int
) -> None:
    assert pod_requests(PodSpec(containers=apps, init_containers=inits)) == {GPU: expected * 1000}


def test_overhead_is_added() -> None:
    spec = PodSpec(containers=[container(1)], overhead={"cpu": "250m", GPU: "1"})
    assert pod_requests(spec) == {GPU: 2000, "cpu": 250}


def test_pod_level_requests_win_over_the_sum_and_overhead_comes_on_top() -> None:
    asked: dict[str, str | int | float] = {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "4Mi", GPU: "9"}
    spec = PodSpec(
        containers=[Container("c", resources=ResourceRequirements(requests={"cpu": "1", GPU: "1"}))],
        resources=ResourceRequirements(requests=asked),
        overhead={"cpu": "1"},
    )
    assert pod_requests(spec) == {
        "cpu": 5000,
        GPU: 1000,
        "memory": 2**30 * 1000,
        "hugepages-2Mi": 4 * 2**20 * 1000,
    }


amounts = st.integers(0, 5)


@given(
    st.lists(st.tuples(amounts, st.booleans()), max_size=5),
    st.lists(amounts, min_size=1, max_size=4),
)
def test_the_effective_request_is_the_peak_over_the_pods_life(
    inits: list[tuple[int, bool]], apps: list[int]
) -> None:
    running, peak = 0, 0
    for amount, sidecar in inits:
        peak = max(peak, running + amount)
        running += amount if sidecar else 0
    peak = max(peak, running + sum(apps))
    spec = PodSpec(
        containers=[container(amount) for amount in apps],
        init_containers=[container(amount, sidecar=sidecar) for amount, sidecar in inits],
    )
    assert pod_requests(spec)[GPU] == peak * 1000


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/batteries", False),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_names_of_extended_resources(name: str, extended: bool) -> None:
    assert is_extended_resource(name) is extended


def test_only_short_quantities_are_remembered() -> None:
    remembered = requests._remembered.cache_info().currsize
    assert requests.quantity_milli("1." + "0" * 100) == 1000
    assert requests._remembered.cache_info().currsize == remembered
    requests.quantity_milli("123456789m")
    assert requests._remembered.cache_info().currsize == remembered + 1
