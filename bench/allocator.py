"""Allocation over 5,000 nodes: plain counts over columns, and the full search once a node shape.

Beside them, Go's allocator of kube-scheduler for the same inputs, one node after the other on one core.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from bench.fleet import DRIVER, claim, gpu_class, gpu_node, gpu_slice, node_name, pod
from bench.result import Result, at_most, figure
from extender.allocator.columns import SelectorColumns
from extender.allocator.demand import demand_of
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSubRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from extender.inventory.ledger import Ledger
from extender.selectors import Environment
from tests.oracle.build import build_oracle
from tests.oracle.client import Oracle

NODES = 5000
SHAPES = 20
ROUNDS = 7
GPUS = 4


def run() -> list[Result]:
    """Time both kinds of claims."""
    plain_ours, plain_go = _plain()
    search_ours, search_go = _search()
    return [
        at_most("count 8 over 5,000 nodes, vectorised", plain_ours * 1e3, "ms", 10.0),
        figure("the same in Go's allocator", plain_go * 1e3, "ms"),
        at_most(
            f"firstAvailable + matchAttribute + counters over 5,000 nodes of {SHAPES} shapes",
            search_ours * 1e3,
            "ms",
            50.0,
            "another claim, another state each time",
        ),
        figure("the same in Go's allocator", search_go * 1e3, "ms"),
    ]


def _plain() -> tuple[float, float]:
    slices = [gpu_slice(number, number % SHAPES) for number in range(NODES)]
    book = _book(slices)
    wanted = [claim(f"eight-{number}", 8) for number in range(ROUNDS)]
    return _ours(book, wanted), _go(slices, wanted[0])


def _search() -> tuple[float, float]:
    slices = [each for number in range(NODES) for each in _partitionable(number)]
    book = _book(slices)
    wanted = [_demanding(number) for number in range(ROUNDS)]
    return _ours(book, wanted), _go(slices, wanted[0])


def _book(slices: list[ResourceSlice]) -> Ledger:
    book = Ledger(ignored_drivers=())
    book.replaced("DeviceClass", [gpu_class()], [])
    book.replaced("Node", [gpu_node(number) for number in range(NODES)], [])
    book.replaced("ResourceSlice", slices, [])
    return book


def _ours(book: Ledger, wanted: list[ResourceClaim]) -> float:
    """Median time of a claim over all nodes, another claim and another state of the fleet each time."""
    columns = SelectorColumns(Environment())
    predictor = Predictor(columns, ShapeSearch(columns, columns.relevant, Features.default("1.37")))
    for each in wanted:
        book.upserted("ResourceClaim", each)
    spent = []
    for number, each in enumerate(wanted):
        book.upserted("ResourceClaim", claim(f"taken-{number}", taken=[(number, 0)]))
        snapshot = book.snapshot()
        slots = np.arange(len(snapshot.topology.names), dtype=np.int32)
        demand = demand_of(pod("pod", each.metadata.name), snapshot)
        began = perf_counter()
        found = predictor.predict(demand, slots, snapshot)
        spent.append(perf_counter() - began)
        assert np.count_nonzero(found.status == 0) >= NODES - len(wanted)
    return median(spent[1:])  # the columns of the fleet are made once, in the first round


def _go(slices: list[ResourceSlice], wanted: ResourceClaim) -> float:
    features = Features.default("1.37")
    case: dict[str, Any] = {
        "features": {name: getattr(features, _snake(name)) for name in _FEATURES},
        "allocatedState": {"allocatedDevices": [], "allocatedSharedDeviceIDs": [], "aggregatedCapacity": []},
        "claimsInNamespaceOrder": [msgspec.to_builtins(wanted)],
        "classes": [msgspec.to_builtins(gpu_class())],
        "slices": [msgspec.to_builtins(each) for each in slices],
        "node": {"name": node_name(0)},
    }
    with Oracle(build_oracle(), timeout=600) as oracle:
        answer = oracle.bench_allocate(case, [{"name": node_name(n)} for n in range(NODES)], 3)
    return min(each.allocate_ns for each in answer.rounds) / 1e9


_FEATURES = (
    "adminAccess",
    "compatibilityGroups",
    "consumableCapacity",
    "derivedAttributes",
    "deviceBindingAndStatus",
    "deviceTaints",
    "fractionalCapacityRange",
    "listTypeAttributes",
    "optionalNodeOperations",
    "partitionableDevices",
    "prioritizedList",
)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _partitionable(number: int) -> list[ResourceSlice]:
    """A node of four GPUs, each whole or in two halves on one counter set; two GPUs share a PCIe root."""
    name = node_name(number)
    kind = number % SHAPES
    pool = ResourcePool(name=name, generation=1, resource_slice_count=2)
    sets = [CounterSet(f"gpu-{gpu}", {"memory": Counter("80Gi")}) for gpu in range(GPUS)]
    devices = []
    for gpu in range(GPUS):
        root = {"resource.kubernetes.io/pcieRoot": DeviceAttribute(string=f"pci{gpu // 2}")}
        for part, share in (("", "80Gi"), ("-half-0", "40Gi"), ("-half-1", "40Gi")):
            facts = {
                "type": DeviceAttribute(string="gpu"),
                "uuid": DeviceAttribute(string=f"GPU-{number}-{gpu}{part}"),
                "productName": DeviceAttribute(string=f"Model {kind}"),
                "whole": DeviceAttribute(bool=not part),
            }
            devices.append(
                Device(
                    name=f"gpu-{gpu}{part}",
                    attributes={**facts, **root},
                    consumes_counters=[DeviceCounterConsumption(f"gpu-{gpu}", {"memory": Counter(share)})],
                )
            )
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=name, devices=devices)
    shared = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=name, shared_counters=sets)
    return [
        ResourceSlice(ObjectMeta(name=f"{name}-counters"), shared),
        ResourceSlice(ObjectMeta(name=f"{name}-devices"), spec),
    ]


def _demanding(number: int) -> ResourceClaim:
    """Five devices if possible, else four, on one PCIe root."""
    request = DeviceRequest(
        name=f"gpus-{number}",
        first_available=[
            DeviceSubRequest(name="many", device_class_name=DRIVER, allocation_mode="ExactCount", count=5),
            DeviceSubRequest(name="few", device_class_name=DRIVER, allocation_mode="ExactCount", count=4),
        ],
    )
    constraint = DeviceConstraint(match_attribute="resource.kubernetes.io/pcieRoot")
    return ResourceClaim(
        ObjectMeta(name=f"demanding-{number}", namespace="default", uid=f"uid-{number}"),
        ResourceClaimSpec(DeviceClaim(requests=[request], constraints=[constraint])),
    )
