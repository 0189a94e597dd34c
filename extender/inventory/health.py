"""Whether a device is fit for new pods: a small state machine per device and sign. Pure; `now` is handed in.

                    seen                      seen again
    [healthy] ---------------> [unhealthy] <---------------+
        ^                        |   ^                     |
        |          no longer seen|   | seen                |
        |                        v   |                     |
        +-- quiet time over -- [recovering] ---------------+

A reason is entered at once and left only after its quiet time: it holds in [unhealthy] and in [recovering].
An XID is seen for an instant: it goes to [recovering] at once, with the quiet time of its class. A reading
that has no value tells nothing and moves nothing. A node that is silent for the table's `silence_s` is
unknown, and so are its devices: `reasons` then says nothing.
Never: heat or load (the judges' matter), I/O, or which pods are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import Final

from extender.api.telemetry import Absence, Device, DeviceState, Driver, DriverState
from extender.inventory.health_table import HealthTable
from extender.inventory.telemetry import Applied, HeardXid
from extender.model.reason import Reason

NODE: Final = ""
"""The "uuid" of reasons that hold for a node as a whole."""


BY_GRAVITY: Final = (
    Reason.DRIVER_STALE,
    Reason.DEVICE_LOST,
    Reason.ECC_UNCORRECTABLE,
    Reason.DEVICE_UNHEALTHY,
    Reason.ROW_REMAP_PENDING,
)
"""The reasons of this book, gravest first."""
_GRAVITY: Final = {reason: i for i, reason in enumerate(BY_GRAVITY)}

_JOURNAL: Final = 4096


class Sign(StrEnum):
    """What was seen: the machines of one device run apart, one a sign."""

    DRIVER = "driver"
    LOST = "lost"
    ECC = "ecc"
    RESET = "reset required"
    RECOVERY = "recovery action"
    REMAP_FAILURE = "row remap failure"
    REMAP_PENDING = "row remap pending"
    XID = "xid"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason that holds, since when, and in words."""

    reason: Reason
    text: str
    since: float


@dataclass(frozen=True, slots=True)
class Transition:
    """A device (or, with uuid `NODE`, a node) entered or left a reason."""

    node: str
    uuid: str
    reason: Reason
    text: str
    entered: bool
    at: float


@dataclass(slots=True)
class _Machine:
    reason: Reason
    text: str
    since: float
    clear_since: float | None  # None: [unhealthy], else [recovering] since then
    quiet_s: float
    seen_at: float  # an XID's instant


@dataclass(slots=True)
class _Node:
    boot_id: str = ""
    heard_at: float = 0.0
    machines: dict[tuple[str, Sign], _Machine] = field(default_factory=dict)


class HealthBook:
    """The machines of the fleet. Only devices that are not healthy take memory."""

    def __init__(self, table: HealthTable) -> None:
        self.table = table
        self._nodes: dict[str, _Node] = {}
        self.version = 0  # grows with every transition
        self._journal: deque[tuple[int, str]] = deque(maxlen=_JOURNAL)

    def observe(self, applied: Applied, now: float) -> list[Transition]:
        """Take what a source just told; what it brought about, in order."""
        node = self._nodes.setdefault(applied.node, _Node())
        node.heard_at = now
        scene = _Scene(self.table, node, applied.node, now)
        if applied.driver is not None:
            scene.boot(applied.boot_id)
            scene.driver(applied.driver)
        if applied.driver is None or applied.driver.state is DriverState.OK:
            for device in applied.devices:
                scene.device(device, applied)
            for device in applied.vanished:
                scene.see(device.uuid, Sign.LOST, "no longer listed by NVML", now)
        for heard in applied.xids:
            scene.xid(heard)
        scene.leave()
        return self._noted(scene.out)

    def tick(self, now: float) -> list[Transition]:
        """Let quiet times end where nothing was heard meanwhile. Call it every few seconds."""
        out: list[Transition] = []
        for name, node in self._nodes.items():
            if node.machines:
                scene = _Scene(self.table, node, name, now)
                scene.leave()
                out += scene.out
        return self._noted(out)

    def retain(self, uuids: Callable[[str], Collection[str] | None], now: float) -> list[Transition]:
        """Let go of devices that `uuids(node)` does not name, and of nodes for which it says None."""
        out: list[Transition] = []
        for name in [n for n in self._nodes if uuids(n) is None]:
            self.forget(name)
        for name, node in self._nodes.items():
            if node.machines:
                scene = _Scene(self.table, node, name, now)
                scene.retain({NODE, *(uuids(name) or ())})
                out += scene.out
        return self._noted(out)

    def forget(self, name: str) -> None:
        """The node is gone from the cluster."""
        if self._nodes.pop(name, None):
            self.version += 1
            self._journal.append((self.version, name))

    def _noted(self, out: list[Transition]) -> list[Transition]:
        for transition in out:
            self.version += 1
            self._journal.append((self.version, transition.node))
        return out

    def changed_since(self, version: int) -> set[str] | None:
        """Nodes with transitions after `version`; None when that is too long ago to tell."""
        if version >= self.version:
            return set()
        if not self._journal or self._journal[0][0] > version + 1:
            return None
        return {name for _, name in takewhile(lambda entry: entry[0] > version, reversed(self._journal))}

    def holding(self, name: str, now: float) -> frozenset[str]:
        """The uuids of a node (`NODE`: the node as a whole) that something holds against."""
        node = self._nodes.get(name)
        if node is None or not node.machines or now - node.heard_at > self.table.silence_s:
            return frozenset()
        return frozenset(uuid for (uuid, _), machine in node.machines.items() if not _over(machine, now))

    def reasons(self, name: str, uuids: Iterable[str], now: float) -> list[Finding]:
        """What holds against a device, gravest first: by its uuid, its parent's (MIG), and its node's."""
        node = self._nodes.get(name)
        if node is None or not node.machines or now - node.heard_at > self.table.silence_s:
            return []
        wanted = {NODE, *uuids}
        found: dict[Reason, Finding] = {}
        for (uuid, _), machine in node.machines.items():
            if uuid in wanted and not _over(machine, now):
                former = found.get(machine.reason)
                if former is None or machine.since < former.since:
                    found[machine.reason] = Finding(machine.reason, machine.text, machine.since)
        return sorted(found.values(), key=lambda f: _GRAVITY[f.reason])

    def unhealthy(self, now: float) -> Iterator[tuple[str, str]]:
        """(node, uuid) of everything that something holds against; uuid `NODE` for a node as a whole."""
        for name, node in self._nodes.items():
            if node.machines and now - node.heard_at <= self.table.silence_s:
                seen = {u for (u, _), m in node.machines.items() if not _over(m, now)}
                yield from ((name, uuid) for uuid in sorted(seen))


class _Scene:
    """One node while it is looked at: moves its machines and keeps what that brought about."""

    def __init__(self, table: HealthTable, node: _Node, name: str, now: float) -> None:
        self._table = table
        self._node = node
        self._name = name
        self._now = now
        self.out: list[Transition] = []

    def boot(self, boot_id: str) -> None:
        node = self._node
        if node.boot_id not in {"", boot_id}:  # booted anew: what XIDs asked for has been done
            for (_, sign), machine in node.machines.items():
                if sign is Sign.XID:
                    machine.clear_since, machine.quiet_s = self._now, self._table.quiet_s
        node.boot_id = boot_id

    def driver(self, driver: Driver) -> None:
        told = driver.text or driver.operation
        text = f"driver {driver.state}" + (f": {told}" if told else "")
        if driver.state in self._table.stale_drivers:
            self.see(NODE, Sign.DRIVER, text, self._now, reason=Reason.DRIVER_STALE)
        elif driver.state in self._table.unhealthy_drivers:
            self.see(NODE, Sign.DRIVER, text, self._now)
        elif driver.state is DriverState.OK:
            self._clear(NODE, Sign.DRIVER, self._now)

    def device(self, device: Device, applied: Applied) -> None:
        r, table, uuid = device.readings, self._table, device.uuid
        action = r.recovery_action
        if (
            device.state is DeviceState.OK
            and not self._node.machines
            and r.ecc_uncorrected_volatile in _NOTHING
            and r.remap_pending in _NOTHING
            and r.remap_failure in _NOTHING
            and action in _NOTHING
        ):
            return  # nothing to see and nothing to clear: nearly all devices, nearly always
        if applied.driver is not None:
            self._sign(uuid, Sign.LOST, device.state is DeviceState.LOST, "off the bus")
            self._sign(uuid, Sign.RESET, device.state is DeviceState.RESET_REQUIRED, "reset required")
        if table.uncorrectable_ecc:
            count = r.ecc_uncorrected_volatile
            text = f"{count} uncorrected memory errors since the last reset"
            self._sign(uuid, Sign.ECC, _positive(count), text)
        if table.row_remap_pending:
            self._sign(uuid, Sign.REMAP_PENDING, _positive(r.remap_pending), "row remap pending a reset")
        if table.row_remap_failure:
            self._sign(uuid, Sign.REMAP_FAILURE, _positive(r.remap_failure), "row remap failed")
        if not isinstance(action, Absence):
            self._recovery(uuid, action, applied.read_at)

    def _recovery(self, uuid: str, action: int, read_at: float) -> None:
        rule = self._table.recovery_actions.get(action)
        needed = action != 0 if rule is None else rule.unhealthy
        text = f"recovery action {action}" + (f": {rule.text}" if rule else "")
        self._sign(uuid, Sign.RECOVERY, needed, text)
        xid = self._node.machines.get((uuid, Sign.XID))
        if xid is not None and not needed and read_at > xid.seen_at:
            xid.quiet_s = min(xid.quiet_s, self._table.quiet_s)  # the driver asks for nothing

    def xid(self, heard: HeardXid) -> None:
        kind, rules = self._table.class_of(heard.xid.code)
        if not rules.unhealthy:
            return
        quiet = self._table.quiet_of(heard.xid.code)
        former = self._node.machines.get((heard.uuid, Sign.XID))
        if former is not None and former.clear_since is not None:
            quiet = max(quiet, former.clear_since + former.quiet_s - heard.at)  # a graver one still counts
        text = f"XID {heard.xid.code} ({kind})"
        self.see(heard.uuid, Sign.XID, text, heard.at, quiet_s=quiet)
        self._clear(heard.uuid, Sign.XID, heard.at)

    def see(
        self,
        uuid: str,
        sign: Sign,
        text: str,
        at: float,
        *,
        reason: Reason | None = None,
        quiet_s: float | None = None,
    ) -> None:
        why = reason or _REASONS[sign]
        machine = self._node.machines.get((uuid, sign))
        if machine is None or machine.reason is not why:
            if machine is not None:  # a driver that is absent now was unresponsive before
                self._tell(uuid, machine, entered=False)
            machine = _Machine(why, text, at, None, 0.0, at)
            self._node.machines[uuid, sign] = machine
            self._tell(uuid, machine, entered=True)
        machine.text, machine.clear_since, machine.seen_at = text, None, at
        machine.quiet_s = self._table.quiet_s if quiet_s is None else quiet_s

    def leave(self) -> None:
        machines = self._node.machines
        for key in [key for key, machine in machines.items() if _over(machine, self._now)]:
            self._tell(key[0], machines.pop(key), entered=False)

    def retain(self, uuids: Collection[str]) -> None:
        for key in [key for key in self._node.machines if key[0] not in uuids]:
            self._tell(key[0], self._node.machines.pop(key), entered=False)

    def _sign(self, uuid: str, sign: Sign, seen: bool | None, text: str) -> None:
        if seen:
            self.see(uuid, sign, text, self._now)
        elif seen is not None:
            self._clear(uuid, sign, self._now)

    def _clear(self, uuid: str, sign: Sign, at: float) -> None:
        machine = self._node.machines.get((uuid, sign))
        if machine is not None and machine.clear_since is None:
            machine.clear_since = at

    def _tell(self, uuid: str, machine: _Machine, *, entered: bool) -> None:
        self.out.append(Transition(self._name, uuid, machine.reason, machine.text, entered, self._now))


def _over(machine: _Machine, now: float) -> bool:
    return machine.clear_since is not None and now - machine.clear_since >= machine.quiet_s


_REASONS: Final = {
    Sign.DRIVER: Reason.DEVICE_UNHEALTHY,  # unless it is stale
    Sign.LOST: Reason.DEVICE_LOST,
    Sign.ECC: Reason.ECC_UNCORRECTABLE,
    Sign.RESET: Reason.DEVICE_UNHEALTHY,
    Sign.RECOVERY: Reason.DEVICE_UNHEALTHY,
    Sign.REMAP_FAILURE: Reason.ROW_REMAP_PENDING,
    Sign.REMAP_PENDING: Reason.ROW_REMAP_PENDING,
    Sign.XID: Reason.DEVICE_UNHEALTHY,
}


_NOTHING: Final = (0, Absence.UNSUPPORTED, Absence.ERROR, Absence.LOST)


def _positive(reading: int | Absence) -> bool | None:
    return None if isinstance(reading, Absence) else reading > 0
