"""Veto `MemoryHeldOutside`: a pod that declares what it needs is kept off devices with too little left.

It declares with annotation `berth.scheduler/memory-need`, a quantity per device. What known pods hold is the
allocation's matter and counts as attainable; only memory held by anybody else refuses.
Never: a veto without the annotation, or by a reading that is not fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from extender.api.core import Pod
from extender.api.quantity import Quantity, QuantityError
from extender.api.telemetry import Absence, Device
from extender.inventory.devices import Int32
from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.outside_memory import HeldOutside, memory_held_outside
from extender.inventory.snapshot import Snapshot
from extender.inventory.telemetry_columns import Freshness
from extender.model.reason import Reason
from extender.model.workload import PREFIX
from extender.verbs.desk import Bool, Question, Refusals

MEMORY_NEED: Final = PREFIX + "memory-need"
_MOST: Final = 1 << 50
_TEXT: Final = "others than known pods hold memory of the device that the pod would get: too little is left"


@dataclass(frozen=True, slots=True)
class Malformed:
    """An annotation that can't be used."""

    text: str


def memory_need(pod: Pod) -> int | Malformed | None:
    """Bytes per device that the pod declares; None when it declares nothing."""
    text = (pod.metadata.annotations or {}).get(MEMORY_NEED)
    if text is None:
        return None
    try:
        quantity = Quantity.parse(text.strip())
    except QuantityError as fault:
        return Malformed(f"annotation {MEMORY_NEED}: {text!r} is ignored: {fault}")
    need = quantity.value()
    if not 0 < need <= _MOST:
        return Malformed(f"annotation {MEMORY_NEED}: {text!r} is ignored: it must be more than 0 and real")
    return need


class MemoryVeto:
    """Refuses nodes on whose predicted devices foreign processes leave less than the pod declares."""

    def __init__(self, lookout: Lookout) -> None:
        self._lookout = lookout

    def refuse(self, question: Question) -> Refusals | None:
        """Refuse for memory; a malformed annotation refuses nothing and is noted."""
        need = memory_need(question.pod)
        if need is None or not question.demand.asks_for_devices:
            return None
        nobody = np.zeros(len(question.slots), np.int8)
        if isinstance(need, Malformed):
            return Refusals(nobody, (), notes=(need.text,))
        outlook = self._lookout.look(question.snapshot.topology, question.now)
        held = self._held(need, question, outlook)
        if not held:
            return None
        short = np.zeros(len(outlook.topology.names), np.bool_)
        short[list(held)] = True
        refused = np.where((question.slots >= 0) & short[np.maximum(question.slots, 0)], 1, nobody)
        ids = outlook.topology.table.ids

        def detail(index: int) -> str:
            found = held.get(int(question.slots[index]), {})
            return "; ".join(f"{ids[row].device}: {one.text}" for row, one in found.items())

        return Refusals(refused.astype(np.int8), ((Reason.MEMORY_HELD_OUTSIDE, _TEXT),), detail)

    def _held(self, need: int, question: Question, outlook: Outlook) -> dict[int, dict[int, HeldOutside]]:
        """By slot and row, the predicted devices with too little left."""
        predicted = np.nonzero(question.predictions.predicted)[0]
        rows = question.predictions.devices(predicted)
        short = (rows >= 0) & self._short(need, outlook.rows[rows], question.now)
        slots = np.broadcast_to(question.slots[predicted], rows.shape)
        snapshot = question.snapshot
        found: dict[int, dict[int, HeldOutside]] = {}
        for slot, row in zip(slots[short].tolist(), rows[short].tolist(), strict=True):
            device = self._device(int(outlook.rows[row]), question.now)
            if device is None:
                continue
            held = memory_held_outside(
                need, device, snapshot.pods, fresh=True, allocated=_allocated(row, snapshot)
            )
            if held is not None:
                found.setdefault(slot, {})[row] = held
        return found

    def _short(self, need: int, seen: Int32, now: float) -> Bool:
        """Which of telemetry's rows read freshly less free memory than `need`, whoever holds the rest."""
        columns = self._lookout.store.columns
        used, used_state = columns.column("memory_used", seen, now)
        total, total_state = columns.column("memory_total", seen, now)
        reserved, _ = columns.column("memory_reserved", seen, now)
        known = (used_state == Freshness.FRESH) & (total_state <= Freshness.STALE)
        short: Bool = known & (total - used - reserved < need)
        return short

    def _device(self, seen: int, now: float) -> Device | None:
        """The last letter about a device with the readings that count now, whichever source they are of."""
        store = self._lookout.store
        letter = store.device(seen)
        if letter is None:
            return None
        at: Int32 = np.array([seen], np.int32)
        total, used, reserved = (
            int(store.columns.column(name, at, now)[0][0])
            for name in ("memory_total", "memory_used", "memory_reserved")
        )
        readings = msgspec.structs.replace(
            letter.readings, memory_total=total, memory_used=used, memory_reserved=reserved
        )
        # Another source reads newer memory than the letter's: its processes are of another moment.
        same = letter.readings.memory_used == used
        processes = letter.processes if same else Absence.UNSUPPORTED
        return msgspec.structs.replace(letter, readings=readings, processes=processes)


def _allocated(row: int, snapshot: Snapshot) -> bool:
    return bool(snapshot.occupancy.taken[row] or snapshot.occupancy.shared[row])
