"""Laws: the ledger depends on the state of the API alone, and a snapshot never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from extender.api.core import Namespace, NodeSelector, NodeSelectorTerm
from extender.api.meta import ObjectMeta, Requirement
from extender.api.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from extender.inventory import ledger as ledger_module
from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from tests.inventory.objects import (
    DRIVER,
    GPU,
    claim,
    consuming,
    counters,
    described,
    device,
    device_class,
    fresh,
    node,
    pod,
    result,
    slice_of,
)

NODES = ("n0", "n1", "n2")
POOLS = ("p0", "p1", "p2")
DEVICES = ("a", "b", "c")
DRIVERS = (DRIVER, DRIVER, DRIVER, "nic.example.com")
few = st.sampled_from


@st.composite
def devices(draw: st.DrawFn) -> list[Device]:
    names = draw(st.lists(few(DEVICES), max_size=3))
    return [
        draw(
            few(
                [
                    device(name),
                    device(name, taints=[DeviceTaint("k", "v", "NoSchedule")]),
                    device(name, allow_multiple_allocations=True),
                    device(name, binding_conditions=["ready"]),
                    consuming(name, "1"),
                ]
            )
        )
        for name in names
    ]


SELECTOR = NodeSelector([NodeSelectorTerm([Requirement("zone", "In", ["z"])])])
PLACES: list[dict[str, Any]] = [
    *({"node": name} for name in NODES),
    *({"node": name} for name in NODES),
    {"all_nodes": True},
    {"node_selector": SELECTOR},
]


@st.composite
def slices(draw: st.DrawFn) -> Any:
    shared = draw(few([None, None, None, counters("4")]))
    return slice_of(
        draw(few(("s0", "s1", "s2", "s3"))),
        draw(few(POOLS)),
        () if shared else draw(devices()),
        generation=draw(few((1, 1, 2))),
        count=draw(few((1, 1, 2))),
        driver=draw(few(DRIVERS)),
        shared_counters=shared,
        **draw(few(PLACES)),
    )


@st.composite
def claims(draw: st.DrawFn) -> Any:
    one = st.builds(
        result,
        few(POOLS),
        few(DEVICES),
        few(DRIVERS),
        admin_access=few((None, None, True)),
        share_id=few((None, None, "s-1", "s-2")),
    )
    return claim(
        draw(few(("c0", "c1", "c2"))),
        draw(st.none() | st.lists(one, min_size=1, max_size=4)),
        uid=draw(few(("u0", "u1"))),
    )


@st.composite
def pods(draw: st.DrawFn) -> Any:
    name = draw(few(("q0", "q1", "q2")))
    return pod(
        name,
        uid=f"{name}-{draw(few('01'))}",
        node=draw(few(("", *NODES, "n9"))),
        phase=draw(few(("Pending", "Running", "Succeeded"))),
        requests=draw(
            few(({"cpu": "1"}, {"memory": "1Gi", GPU: "2"}, {GPU: "1"}, {"ephemeral-storage": "1"}))
        ),
        claims=draw(few(((), ("c0",)))),
    )


EVENTS: dict[str, st.SearchStrategy[Any]] = {
    "Node": st.builds(
        node,
        few(NODES),
        few(({}, {GPU: "8"}, {GPU: "0"}, {"other.com/x": "1"})),
        labels=few((None, {"zone": "z"})),
        uid=few(("u0", "u1")),
    ),
    "ResourceSlice": slices(),
    "ResourceClaim": claims(),
    "Pod": pods(),
    "DeviceClass": st.builds(
        device_class, few(("g", "h")), resource=few((None, GPU)), created=few(("1", "2"))
    ),
    "Namespace": st.builds(
        lambda name, labels: Namespace(ObjectMeta(name, labels=labels)),
        few(("ns", "other")),
        few((None, {"a": "b"})),
    ),
    "DeviceTaintRule": st.builds(
        lambda name, selector: DeviceTaintRule(
            ObjectMeta(name), DeviceTaintRuleSpec(selector, DeviceTaint("r", name, "NoExecute"))
        ),
        few(("r0", "r1")),
        st.none()
        | st.builds(
            DeviceTaintSelector,
            driver=st.none() | few(DRIVERS),
            pool=st.none() | few(POOLS),
            device=st.none() | few(DEVICES),
        ),
    ),
}


class Events(RuleBasedStateMachine):
    """Events of all sorts and full lists in any order, against a ledger made from lists."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = fresh()
        self.state: dict[str, dict[tuple[str, str], Any]] = {kind: {} for kind in EVENTS}
        self.version = 0
        self.kept: list[tuple[Snapshot, dict[str, Any]]] = []

    @initialize()
    def start(self) -> None:
        """Three nodes with a pool each, so that most events meet something."""
        for number, name in enumerate(NODES):
            self._put("Node", node(name))
            self._put("ResourceSlice", slice_of(f"s{number}", f"p{number}", DEVICES[:2], node=name))

    def _put(self, kind: str, obj: Any) -> None:
        obj = self.stamped(obj)
        self.state[kind][obj.metadata.namespace, obj.metadata.name] = obj
        self.ledger.upserted(kind, obj)

    def stamped(self, obj: Any) -> Any:
        self.version += 1
        meta = {name: getattr(obj.metadata, name) for name in obj.metadata.__struct_fields__}
        meta["resource_version"] = str(self.version)
        rest = {name: getattr(obj, name) for name in obj.__struct_fields__}
        return type(obj)(**{**rest, "metadata": ObjectMeta(**meta)})

    @rule(data=st.data(), kind=few(sorted(EVENTS)))
    def change(self, data: st.DataObject, kind: str) -> None:
        self._put(kind, data.draw(EVENTS[kind]))

    @rule(data=st.data(), kind=few(("ResourceSlice", "ResourceSlice", "ResourceClaim", "Pod", "Node")))
    def change_what_matters(self, data: st.DataObject, kind: str) -> None:
        self._put(kind, data.draw(EVENTS[kind]))

    def _some(self, data: st.DataObject) -> tuple[str, tuple[str, str]] | None:
        there = [(kind, key) for kind, held in self.state.items() for key in sorted(held)]
        return data.draw(few(there)) if there else None

    @rule(data=st.data())
    def deleted(self, data: st.DataObject) -> None:
        found = self._some(data)
        if found is not None:
            self.ledger.deleted(found[0], self.state[found[0]].pop(found[1]))

    @rule(data=st.data())
    def doubled(self, data: st.DataObject) -> None:
        found = self._some(data)
        if found is not None:
            self.ledger.upserted(found[0], self.state[found[0]][found[1]])

    @rule(data=st.data(), kind=few(sorted(EVENTS)))
    def relisted(self, data: st.DataObject, kind: str) -> None:
        """While the watch was away things changed and went, and the list comes in another order."""
        held = self.state[kind]
        for key in sorted(held):
            match data.draw(few(("same", "same", "gone", "changed"))):
                case "gone":
                    del held[key]
                case "changed":
                    obj = self.stamped(data.draw(EVENTS[kind]))
                    held[obj.metadata.namespace, obj.metadata.name] = obj
        self.ledger.replaced(kind, data.draw(st.permutations(list(held.values()))), [])

    @rule()
    def keep_a_snapshot(self) -> None:
        snapshot = self.ledger.snapshot()
        self.kept.append((snapshot, described(snapshot)))

    @invariant()
    def equals_a_ledger_made_from_lists(self) -> None:
        assert described(self.ledger.snapshot()) == described(rebuilt(self.state).snapshot())

    def teardown(self) -> None:
        for snapshot, before in self.kept:
            assert described(snapshot) == before


def rebuilt(state: dict[str, dict[tuple[str, str], Any]]) -> Ledger:
    made = fresh()
    for kind, held in state.items():
        made.replaced(kind, list(held.values()), [])
    return made


class CompactingEvents(Events):
    """Likewise, with a compaction as soon as a row is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.few_dead = ledger_module._FEW_DEAD
        ledger_module._FEW_DEAD = -1

    def teardown(self) -> None:
        ledger_module._FEW_DEAD = self.few_dead
        super().teardown()


TestEvents: Callable[..., Any] = Events.TestCase
TestCompactingEvents: Callable[..., Any] = CompactingEvents.TestCase
TestEvents.settings = settings(max_examples=40, stateful_step_count=30)  # type: ignore[attr-defined]  # made by hypothesis
TestCompactingEvents.settings = settings(max_examples=20, stateful_step_count=30)  # type: ignore[attr-defined]  # likewise
