"""Rows of devices: they never change, and columns over them are read once a row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.api.resource import Device, DeviceAttribute
from extender.inventory.devices import CodedColumn, DeviceTable
from extender.model.device import DeviceFacts, DeviceID


def model(name: str, value: str) -> Device:
    return Device(name=name, attributes={"model": DeviceAttribute(string=value)})


def read(facts: DeviceFacts, _: Device) -> object:
    return facts.attributes["model"].string


class Asked:
    """Reads, and takes down of which devices."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, facts: DeviceFacts, device: Device) -> object:
        self.names.append(device.name)
        return read(facts, device)


def test_an_unchanged_device_keeps_its_row_a_changed_one_gets_a_new_one() -> None:
    table = DeviceTable()
    first = table.upsert("d", "p", model("a", "x"))
    assert table.upsert("d", "p", model("a", "x")) == first
    second = table.upsert("d", "p", model("a", "y"))
    assert (second, table.dead, table.row_of[DeviceID("d", "p", "a")]) == (1, 1, 1)
    assert table.devices[first] == model("a", "x")


def test_a_column_reads_each_row_once_and_leaves_what_it_handed_out() -> None:
    table, asked = DeviceTable(), Asked()
    column = CodedColumn(asked)
    table.upsert("d", "p", model("a", "x"))
    before = column.over(table)
    kept = before.copy()
    for number in range(100):
        table.upsert("d", "p", model(f"b{number}", "y"))
    assert column.over(table).tolist() == [0] + [1] * 100
    assert len(asked.names) == 101
    assert before.tolist() == kept.tolist()
    assert column.where(table, lambda value: value == "y").sum() == 100


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.booleans()), max_size=30))
def test_a_compacted_table_says_the_same_of_every_live_device(events: list[tuple[str, str, bool]]) -> None:
    table, column = DeviceTable(), CodedColumn(read)
    for name, value, gone in events:
        table.upsert("d", "p", model(name, value))
        column.over(table)
        if gone:
            table.forget(DeviceID("d", "p", name))
    compacted = table.compacted()
    assert (compacted.dead, len(compacted)) == (0, len(table.row_of))
    assert {i: compacted.devices[r] for i, r in compacted.row_of.items()} == {
        i: table.devices[r] for i, r in table.row_of.items()
    }
    fresh = CodedColumn(read).over(compacted)
    followed = column.over(compacted)
    same = np.equal.outer(fresh, fresh)
    assert (np.equal.outer(followed, followed) == same).all()


def test_a_column_follows_a_compaction_without_reading_again() -> None:
    table, asked = DeviceTable(), Asked()
    column = CodedColumn(asked)
    table.upsert("d", "p", model("a", "x"))
    table.upsert("d", "p", model("a", "y"))
    column.over(table)
    assert len(column.over(table.compacted())) == 1
    assert asked.names == ["a", "a"]
