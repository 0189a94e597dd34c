"""A small cluster with live telemetry: nodes n0 and n1 with devices gpu-0 and gpu-1, and a desk over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.api.core import Pod
from extender.api.resource import Device as Published
from extender.api.resource import DeviceAttribute
from extender.api.telemetry import (
    SCHEMA,
    Absence,
    Device,
    Driver,
    DriverState,
    Process,
    Readings,
    Sample,
)
from extender.inventory.health import HealthBook
from extender.inventory.health_table import parse_health_table
from extender.inventory.inflight import Assumption
from extender.inventory.outlook import Lookout
from extender.inventory.placements import Placements
from extender.inventory.telemetry import Refusal, TelemetryStore
from extender.scoring.bench import Bench
from extender.scoring.fullness import Pack, Spread
from extender.scoring.policy import parse_policy
from extender.scoring.pool import Pool
from extender.scoring.telemetry import Telemetry
from extender.selectors import Environment
from extender.verbs.desk import Desk, Question, Scope, SlotFinder
from extender.verbs.health_veto import HealthVeto
from extender.verbs.memory_veto import MEMORY_NEED, MemoryVeto
from tests.inventory.objects import DRIVER, claim, device_class, fresh, node, pod, slice_of

GIB = 1 << 30
NAMES = ("n0", "n1")
TABLE = Path(__file__).resolve().parents[2] / "policies" / "health.yaml"
POLICY = {
    "apiVersion": "berth.scheduler/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "test"},
    "judges": {"pack": 3, "pool": 5, "telemetry": 2},
}


def published(node_name: str, number: int) -> Published:
    attributes = {
        "type": DeviceAttribute(string="gpu"),
        "uuid": DeviceAttribute(string=f"GPU-{node_name}-{number}"),
    }
    return Published(f"gpu-{number}", attributes=attributes)


def gpu(node_name: str, number: int, *, processes: Sequence[Process] | None = None, **read: int) -> Device:
    """A device of 80 GiB as an agent tells it: idle and cool, but for what is given."""
    well: dict[str, int] = {
        "memory_total": 80 * GIB,
        "memory_used": 0,
        "memory_reserved": 0,
        "utilisation_gpu": 0,
    }
    readings = Readings(**{**well, "temperature": 40, "throttle": 0, "ecc_corrected_volatile": 0, **read})
    told = Absence.UNSUPPORTED if processes is None else tuple(processes)
    return Device(f"GPU-{node_name}-{number}", number, minor=number, readings=readings, processes=told)


class Live:
    """Ledger, telemetry and desk; `now` is everybody's clock."""

    def __init__(self, names: Sequence[str] = NAMES, policy: dict[str, object] | None = None) -> None:
        self.now = 1000.0
        self.names = list(names)
        self.ledger = fresh()
        self.ledger.replaced("Node", [node(name) for name in names], [])
        slices = [slice_of(f"s-{n}", n, [published(n, 0), published(n, 1)], node=n) for n in names]
        self.ledger.replaced("ResourceSlice", slices, [])
        self.ledger.replaced("DeviceClass", [device_class("gpu")], [])
        self.ledger.replaced("ResourceClaim", [claim("c"), claim("d")], [])
        self.lookout = Lookout(
            TelemetryStore(), HealthBook(parse_health_table(TABLE.read_text("utf-8"), "health.yaml")), ()
        )
        self.placements = Placements()
        self._policy = policy or POLICY
        self.desk = self.new_desk(self.lookout)
        self._told: dict[str, int] = {}

    def new_desk(self, lookout: Lookout) -> Desk:
        """A desk that has not been asked anything."""
        selectors = SelectorColumns(Environment())
        search = ShapeSearch(selectors, selectors.relevant, Features.default("1.37"))
        bench = Bench([Pack(), Spread(), Pool(["*/gpu"]), Telemetry(lookout, self.placements)])
        return Desk(
            scope=Scope(frozenset({"default-scheduler"}), frozenset(), {}),
            predictor=Predictor(selectors, search),
            vetoes=(HealthVeto(lookout, ["*/gpu"]), MemoryVeto(lookout)),
            bench=bench,
            policy=parse_policy(self._policy, bench.names, "test"),
            finder=SlotFinder(),
        )

    def tell(
        self, node_name: str, *devices: Device, driver: DriverState = DriverState.OK, age: float = 0.0
    ) -> None:
        """A sample arrives from the agent of a node."""
        number = self._told[node_name] = self._told.get(node_name, 0) + 1
        sent = 10**15
        read = sent - int(age * 1e9)
        applied = self.lookout.store.apply(
            Sample(SCHEMA, node_name, "boot", "agent", number, sent, read, 0, Driver(driver), devices),
            self.now,
        )
        assert not isinstance(applied, Refusal)
        self.lookout.health.observe(applied, self.now)

    def tell_all(self, **read: int) -> None:
        """Every node tells of two devices that are alike."""
        for name in self.names:
            self.tell(name, *(gpu(name, number, processes=None, **read) for number in range(2)))

    def question(self, asking: Pod, assumed: Sequence[tuple[str, Assumption]] = ()) -> Question:
        return self.desk.question(asking, self.names, self.ledger.snapshot(), assumed, self.now)


def asking(*claims: str, need: str = "") -> Pod:
    """A pod with claims, one device each; `need` is its annotation memory-need."""
    made = pod("q", claims=list(claims or ("c",)), scheduler_name="default-scheduler")
    return annotated(made, need) if need else made


def annotated(member: Pod, need: str) -> Pod:
    """The pod with this text as its need."""
    metadata = msgspec.structs.replace(member.metadata, annotations={MEMORY_NEED: need})
    return msgspec.structs.replace(member, metadata=metadata)


__all__ = ["DRIVER", "GIB", "NAMES", "Live", "annotated", "asking", "gpu"]
