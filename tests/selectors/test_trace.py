"""Explanations name the comparison that failed, the value seen and what would have matched."""

from __future__ import annotations

from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.model.device import DeviceFacts
from extender.selectors import Prepared, Program, compile, prepare  # noqa: A004 - the seam's name
from extender.selectors.trace import Finding, explain


def gpu(memory: str = "40Gi", model: str = "A100", version: str = "8.0.0") -> Prepared:
    return prepare(
        DeviceFacts(
            driver="gpu.nvidia.com",
            attributes={
                "model": DeviceAttribute(string=model),
                "cc": DeviceAttribute(version=version),
                "index": DeviceAttribute(int=3),
            },
            capacity={"memory": DeviceCapacity(value=memory)},
        )
    )


def why(text: str, device: Prepared, *fleet: Prepared) -> tuple[Finding, ...]:
    program = compile(text)
    assert isinstance(program, Program)
    return explain(program, device, fleet)


def test_a_matching_device_needs_no_explanation() -> None:
    assert why("device.driver == 'gpu.nvidia.com'", gpu()) == ()


def test_only_the_terms_that_failed_are_named_with_what_they_saw() -> None:
    text = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].model == 'H100'"
    (finding,) = why(text, gpu(), gpu(model="H100"), gpu(model="L4"))
    assert finding.comparison == 'device.attributes["gpu.nvidia.com"].model == "H100"'
    assert finding.seen == (('device.attributes["gpu.nvidia.com"].model', '"A100"'),)
    assert finding.nearest == '"H100"'
    assert finding.outcome == "false"


def test_the_nearest_quantity_is_the_smallest_step_away() -> None:
    text = "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('64Gi'))"
    (finding,) = why(text, gpu(), gpu("141Gi"), gpu("80Gi"), gpu("24Gi"))
    assert finding.seen[0] == ('device.capacity["gpu.nvidia.com"].memory', "40Gi")
    assert finding.nearest == "80Gi"


def test_the_nearest_version_is_found() -> None:
    text = "device.attributes['gpu.nvidia.com'].cc.compareTo(semver('9.0.0')) >= 0"
    (finding,) = why(text, gpu(), gpu(version="10.0.0"), gpu(version="9.0.0"))
    assert finding.outcome == "false"
    assert "8.0.0" in str(why("device.attributes['gpu.nvidia.com'].cc == semver('9.0.0')", gpu())[0].seen)


def test_a_missing_key_is_named_with_a_way_out() -> None:
    (finding,) = why("device.attributes['gpu.nvidia.com'].profile == '1g.5gb'", gpu())
    assert finding.outcome == "error"
    assert finding.error == "no such key: profile"
    assert finding.missing == 'device.attributes["gpu.nvidia.com"].profile'
    assert finding.hint is not None
    assert "has(" in finding.hint
    assert ".?profile.orValue(" in finding.hint


def test_all_alternatives_of_an_or_are_named() -> None:
    model = "device.attributes['gpu.nvidia.com'].model == 'H100'"
    assert len(why(f"{model} || device.attributes['gpu.nvidia.com'].index == 4", gpu())) == 2


def test_a_negated_comparison_is_named_as_negated() -> None:
    (finding,) = why("!(device.attributes['gpu.nvidia.com'].index == 3)", gpu())
    assert finding.comparison == '!(device.attributes["gpu.nvidia.com"].index == 3)'


def test_a_ternary_is_explained_by_the_branch_that_was_taken() -> None:
    text = "device.driver == 'gpu.nvidia.com' ? device.attributes['gpu.nvidia.com'].index == 4 : false"
    (finding,) = why(text, gpu())
    assert finding.comparison == 'device.attributes["gpu.nvidia.com"].index == 4'


def test_a_loop_is_one_comparison() -> None:
    (finding,) = why("['a', 'b'].exists(x, x == device.driver)", gpu())
    assert finding.comparison == '["a", "b"].exists(x, x == device.driver)'


def test_a_constant_branch_is_explained_by_its_condition() -> None:
    (finding,) = why("device.attributes['gpu.nvidia.com'].index > 5 ? true : false", gpu())
    assert (finding.comparison, finding.gap) == (
        'device.attributes["gpu.nvidia.com"].index > 5',
        "3 < 5, short 2",
    )


def test_a_message_is_written_as_it_was() -> None:
    (finding,) = why(
        "google.protobuf.Int64Value{value: 1} == device.attributes['gpu.nvidia.com'].index", gpu()
    )
    assert finding.comparison == (
        'google.protobuf.Int64Value{value: 1} == device.attributes["gpu.nvidia.com"].index'
    )


def test_the_deepest_selector_is_explained() -> None:
    deepest = "!(true && " * 240 + "device.driver == 'x'" + ")" * 240
    assert why(deepest, gpu())[-1].comparison == 'device.driver == "x"'


def test_a_part_may_cost_as_much_as_a_selector() -> None:
    (finding,) = why("!lists.range(30000).all(x, x >= 0)", gpu())
    assert finding.outcome == "false"
