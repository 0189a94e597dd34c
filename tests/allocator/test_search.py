from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from extender.allocator import (
    AllocatedState,
    Allocation,
    Failure,
    GaveUp,
    NoFit,
    Outcome,
    SelectorFault,
    allocate,
    gather_pools,
)
from extender.api.quantity import Quantity
from extender.api.resource import (
    Counter,
    CounterSet,
    DeviceClaimConfiguration,
    DeviceCounterConsumption,
    DeviceTaint,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceSlice,
)
from extender.model.device import DeviceFacts, DeviceID
from tests.allocator.builders import (
    ALL_DEFAULTS,
    CLASSES,
    DRIVER,
    NODE,
    Table,
    alternatives,
    attempt,
    capacity,
    claim,
    device,
    distinct,
    match,
    names,
    node_with,
    request,
    slice_of,
    sub,
)


def _model(wanted: str) -> Table:
    return Table({"wanted": lambda facts: facts.attributes["model"].string == wanted})


def _counters(**amounts: str) -> list[DeviceCounterConsumption]:
    return [DeviceCounterConsumption("set", {name: Counter(value) for name, value in amounts.items()})]


def _counter_slice(*, driver: str = DRIVER, name: str = "slice-counters", **amounts: str) -> ResourceSlice:
    sets = [CounterSet("set", {key: Counter(value) for key, value in amounts.items()})]
    return slice_of([], name=name, driver=driver, count=2, shared_counters=sets)


def test_the_first_device_in_publication_order_is_taken() -> None:
    published = slice_of([device("b"), device("a"), device("c")])
    assert names(attempt([claim(request())], [published])) == [["b"]]


def test_a_device_in_use_is_passed_over_before_its_selectors_are_asked() -> None:
    def verdict(facts: DeviceFacts) -> bool | SelectorFault:
        model = facts.attributes.get("model")
        return SelectorFault("runtime", "no such key: model") if model is None else model.string == "a"

    published = slice_of([device("no-model"), device("gpu", {"model": "a"})])
    in_use = AllocatedState.over({DeviceID(DRIVER, "pool-1", "no-model")})
    wanted = claim(request("req", 1, "wanted"))
    assert names(attempt([wanted], [published], in_use=in_use, evaluator=Table({"wanted": verdict}))) == [
        ["gpu"]
    ]
    failed = attempt([wanted], [published], evaluator=Table({"wanted": verdict}))
    assert isinstance(failed, Failure)
    assert failed.scope == "fatal"
    assert failed.text.startswith(
        "claim team/claim: selector #0 on device gpu.example.com/pool-1/no-model:"
        " CEL runtime error: no such key: model"
    )
    assert failed.text.endswith("guarding the check with has() for optional fields")


def test_a_verdict_is_asked_for_once_however_often_the_pools_are_searched() -> None:
    evaluator = _model("a")
    pools = gather_pools(NODE, [slice_of([device("gpu", {"model": "a"})])], ALL_DEFAULTS)
    for _ in range(3):
        allocate(
            NODE,
            [claim(request("req", 1, "wanted"))],
            CLASSES,
            pools,
            AllocatedState(),
            ALL_DEFAULTS,
            100,
            evaluator=evaluator,
        )
    assert evaluator.asked == 1


def test_pools_gathered_with_other_features_are_refused() -> None:
    pools = gather_pools(NODE, [], replace(ALL_DEFAULTS, device_taints=False))
    with pytest.raises(ValueError, match="other features"):
        allocate(NODE, [], CLASSES, pools, AllocatedState(), ALL_DEFAULTS, 1, evaluator=Table())


def test_a_match_constraint_backtracks_over_the_first_device() -> None:
    published = slice_of([device("a", {"numa": 0}), device("b", {"numa": 1}), device("c", {"numa": 1})])
    pair = claim(request("req", 2), constraints=[match(f"{DRIVER}/numa")])
    assert names(attempt([pair], [published])) == [["b", "c"]]


def test_distinct_compares_with_every_device_of_the_request() -> None:
    values = {"a": "x", "b": "y", "c": "x", "d": "z"}
    published = slice_of([device(name, {"rack": value}) for name, value in values.items()])
    three = claim(request("req", 3), constraints=[distinct(f"{DRIVER}/rack")])
    assert names(attempt([three], [published])) == [["a", "b", "d"]]
    without = slice_of([device(name, {"rack": value}) for name, value in values.items() if name != "d"])
    assert isinstance(attempt([three], [without]), NoFit)


def test_list_intersections_are_restored_when_a_device_is_given_back() -> None:
    features = replace(ALL_DEFAULTS, list_type_attributes=True)
    published = slice_of(
        [
            device("a", {"link": ["x", "y"]}),
            device("b", {"link": ["x"]}),
            device("c", {"link": ["y"]}),
            device("d", {"link": ["y"]}),
        ]
    )
    three = claim(request("req", 3), constraints=[match(f"{DRIVER}/link")])
    assert names(attempt([three], [published], features=features)) == [["a", "c", "d"]]


def test_counters_of_a_rejected_candidate_are_given_back() -> None:
    taint = DeviceTaint("broken", "", "NoSchedule")
    devices = [
        device("tainted", consumes_counters=_counters(memory="1"), taints=[taint]),
        device("good", consumes_counters=_counters(memory="1")),
    ]
    slices = [slice_of(devices, count=2), _counter_slice(memory="1")]
    assert names(attempt([claim(request())], slices)) == [["good"]]


def test_pools_of_one_name_and_two_drivers_have_their_own_counters() -> None:
    slices = []
    for driver in ("a.example.com", "b.example.com"):
        users = [device(f"gpu-{i}", consumes_counters=_counters(memory="1")) for i in range(3)]
        slices.append(slice_of(users, driver=driver, name=f"{driver}-devices", count=2))
        slices.append(_counter_slice(driver=driver, name=f"{driver}-counters", memory="2"))
    assert isinstance(attempt([claim(request("req", 5))], slices), NoFit)
    assert isinstance(attempt([claim(request("req", 4))], slices), Allocation)


def test_one_overdrawn_counter_blocks_every_counter_consuming_device_of_its_pool() -> None:
    devices = [
        device("holder", consumes_counters=_counters(memory="3")),
        device("other", consumes_counters=_counters(engines="1")),
        device("free-of-counters"),
    ]
    slices = [slice_of(devices, count=2), _counter_slice(memory="2", engines="5")]
    in_use = AllocatedState.over({DeviceID(DRIVER, "pool-1", "holder")})
    assert names(attempt([claim(request())], slices, in_use=in_use)) == [["free-of-counters"]]


def test_a_share_more_of_a_device_does_not_charge_its_counters_again() -> None:
    shared = device(
        "gpu",
        capacity={"memory": capacity("8")},
        allow_multiple_allocations=True,
        consumes_counters=_counters(slots="1"),
    )
    slices = [slice_of([shared], count=2), _counter_slice(slots="1")]
    two = [claim(request("req", amounts={"memory": "4"}), name=name) for name in ("one", "two")]
    outcome = attempt(two, slices)
    assert names(outcome) == [["gpu"], ["gpu"]]
    three = [*two, claim(request("req", amounts={"memory": "1"}), name="three")]
    assert isinstance(attempt(three, slices), NoFit)


def test_tolerations_are_copied_into_the_result() -> None:
    tolerations = [DeviceToleration("broken", "Exists")]
    published = slice_of([device("gpu", taints=[DeviceTaint("broken", "yes", "NoExecute")])])
    outcome = attempt([claim(request(tolerations=tolerations))], [published])
    assert isinstance(outcome, Allocation)
    results = outcome.results[0].devices.results
    assert results is not None
    assert results[0].tolerations == tolerations
    assert isinstance(attempt([claim(request())], [published]), NoFit)


def test_the_next_alternative_is_taken_when_later_requests_need_it() -> None:
    published = slice_of([device("a"), device("b"), device("c")])
    both = claim(alternatives("either", sub("two", 2), sub("one", 1)), request("rest", 2))
    outcome = attempt([both], [published])
    assert isinstance(outcome, Allocation)
    results = outcome.results[0].devices.results or []
    assert [result.request for result in results] == ["either/one", "rest", "rest"]


def test_all_devices_must_be_free_when_all_are_asked_for() -> None:
    published = slice_of([device("a"), device("b")])
    everything = [claim(request(mode="All"))]
    assert names(attempt(everything, [published])) == [["a", "b"]]
    in_use = AllocatedState.over({DeviceID(DRIVER, "pool-1", "b")})
    assert isinstance(attempt(everything, [published], in_use=in_use), NoFit)


def test_admin_access_shares_a_device_but_not_twice_in_a_claim() -> None:
    published = slice_of([device("gpu")])
    in_use = AllocatedState.over({DeviceID(DRIVER, "pool-1", "gpu")})
    admin = claim(request(admin_access=True))
    outcome = attempt([admin], [published], in_use=in_use)
    assert names(outcome) == [["gpu"]]
    assert isinstance(outcome, Allocation)
    assert not (AllocatedState() + outcome).allocated(DeviceID(DRIVER, "pool-1", "gpu"))
    assert isinstance(attempt([claim(request("req", 2, admin_access=True))], [published]), NoFit)


def test_slices_that_skip_node_operations_need_a_node_that_knows_them() -> None:
    features = replace(ALL_DEFAULTS, optional_node_operations=True)
    published = slice_of([device("gpu")], skip_node_operations=["Prepare"])
    wanted = [claim(request())]
    assert isinstance(attempt(wanted, [published], features=features), NoFit)
    knowing = node_with("DRAOptionalNodeOperations")
    outcome = attempt(wanted, [published], features=features, node=knowing)
    assert isinstance(outcome, Allocation)
    assert (outcome.results[0].devices.results or [])[0].skip_node_operations == ["Prepare"]
    # The allocator of the default features does not look at the field at all.
    assert names(attempt(wanted, [published])) == [["gpu"]]


def test_an_interrupted_attempt_says_why() -> None:
    pools = gather_pools(NODE, [slice_of([device("gpu")])], ALL_DEFAULTS)
    outcome = allocate(
        NODE,
        [claim(request())],
        CLASSES,
        pools,
        AllocatedState(),
        ALL_DEFAULTS,
        100,
        lambda: "context deadline exceeded",
        evaluator=Table(),
    )
    assert outcome == Failure("interrupted", "filter operation aborted: context deadline exceeded", 1)


def test_a_search_without_end_gives_up_at_its_bound() -> None:
    published = slice_of([device(f"gpu-{i}", {"n": i % 2}) for i in range(20)])
    hopeless = claim(request("req", 12), constraints=[match(f"{DRIVER}/n")])
    assert attempt([hopeless], [published], steps=500) == GaveUp(500)


def test_a_deep_search_needs_no_deep_stack() -> None:
    slices = [
        slice_of([device(f"gpu-{i}") for i in range(128)], name=f"slice-{p}", pool=f"pool-{p}")
        for p in range(20)
    ]
    claims = [claim(request("req", 32), name=f"claim-{i}") for i in range(80)]
    outcome = attempt(claims, slices)
    assert isinstance(outcome, Allocation)
    assert len(set(outcome.devices())) == 80 * 32


def test_share_ids_are_the_same_for_the_same_plan_and_differ_between_shares() -> None:
    shared = device("gpu", capacity={"memory": capacity("8")}, allow_multiple_allocations=True)
    two = [claim(request("req", amounts={"memory": "1"}), name=name) for name in ("one", "two")]

    def ids() -> list[str | None]:
        outcome = attempt(two, [slice_of([shared])])
        assert isinstance(outcome, Allocation)
        return [result.share_id for found in outcome.results for result in found.devices.results or ()]

    first = ids()
    assert None not in first
    assert len(set(first)) == 2
    assert ids() == first


def _share(size: str, asked: str, held: str) -> Outcome:
    """One share of `asked` on a device of this size, of which a claim holds some already."""
    shared = device("gpu", capacity={"memory": capacity(size)}, allow_multiple_allocations=True)
    gpu = DeviceID(DRIVER, "pool-1", "gpu")
    in_use = AllocatedState.over(capacity={gpu: {"memory": Quantity.parse(held)}})
    return attempt([claim(request(amounts={"memory": asked}))], [slice_of([shared])], in_use=in_use)


def test_an_amount_too_wide_to_be_added_does_not_fit() -> None:
    assert isinstance(_share("8", "1e2000000000", "1"), NoFit)


def test_a_capacity_too_wide_to_be_computed_with_is_a_failure_and_no_crash() -> None:
    assert _share("1e2000000000", "1e2000000000", "1") == Failure(
        "fatal", "quantity needs more than 100000 digits", 1
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_list_of_which_one_alternative_finds_no_device_does_not_exceed_the_limit(
    order: tuple[int, int],
) -> None:
    forms = (sub("none", 1, "wanted"), sub("many", 33))
    wanted = claim(alternatives("req", *(forms[place] for place in order)))
    published = slice_of([device(f"gpu-{i}", {"model": "small"}) for i in range(40)])
    assert isinstance(attempt([wanted], [published], evaluator=_model("big")), NoFit)


def test_a_list_whose_every_alternative_is_too_long_exceeds_the_limit() -> None:
    wanted = claim(request("first", 30), alternatives("req", sub("three", 3), sub("two", 3)))
    published = slice_of([device(f"gpu-{i}") for i in range(40)])
    outcome = attempt([wanted], [published])
    assert isinstance(outcome, Failure)


def test_configuration_for_a_list_reaches_the_alternative_that_was_chosen() -> None:
    wanted = claim(alternatives("req", sub("big", 1, "wanted"), sub("small")), request("other"))
    opaque = OpaqueDeviceConfiguration(DRIVER, {"k": 1})
    config = [
        DeviceClaimConfiguration(["req"], opaque),
        DeviceClaimConfiguration(["req/big"], opaque),
        DeviceClaimConfiguration(["req", "other"], opaque),
    ]
    spec = structs.replace(wanted.spec, devices=structs.replace(wanted.spec.devices, config=config))
    published = slice_of([device(f"gpu-{i}", {"model": "small"}) for i in range(2)])
    outcome = attempt([structs.replace(wanted, spec=spec)], [published], evaluator=_model("big"))
    assert isinstance(outcome, Allocation)
    written = outcome.results[0].devices.config or []
    assert [(one.source, one.requests) for one in written] == [("FromClaim", ["req"]), ("FromClaim", None)]
