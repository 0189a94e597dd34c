"""A document held against a model: spelled in camelCase, with every fault on its line."""

from __future__ import annotations

import pydantic
from pydantic import BaseModel

from extender.model.document import read_documents
from extender.model.schema import faults_of, inner_model, spelled, unknown


class Rule(BaseModel):
    max_share: float = 0.5


class Policy(BaseModel):
    rules: list[Rule] = []
    by_class: dict[str, Rule] = {}
    top_rule: Rule | None = None


def complaints(text: str) -> list[tuple[int, str]]:
    [document] = read_documents(text)
    values, faults = spelled(Policy, document)
    try:
        Policy.model_validate(values)
    except pydantic.ValidationError as error:
        faults += faults_of(Policy, document, error)
    return [(fault.line, fault.path) for fault in faults]


def test_lists_mappings_and_optionals_of_models_are_spelled_in_camel_case() -> None:
    [document] = read_documents(
        "rules: [{maxShare: 1}]\nbyClass: {batch-x: {maxShare: 2}}\ntopRule: {maxShare: 3}"
    )
    values, faults = spelled(Policy, document)
    assert faults == []
    assert values == {
        "rules": [{"max_share": 1}],
        "by_class": {"batch-x": {"max_share": 2}},
        "top_rule": {"max_share": 3},
    }


def test_unknown_keys_are_found_at_every_depth() -> None:
    text = "rules:\n  - {maxShare: 1}\n  - share: 1\nbyClass:\n  batch:\n    max: 1\ntop: 1\n"
    assert complaints(text) == [(3, "rules[1].share"), (6, "byClass.batch.max"), (7, "top")]


def test_wrong_types_have_the_path_and_line_of_the_file() -> None:
    text = "rules:\n  - maxShare: 1\n  - maxShare: x\nbyClass:\n  batch-x:\n    maxShare: y\n"
    assert complaints(text) == [(3, "rules[1].maxShare"), (6, "byClass.batch-x.maxShare")]


def test_the_near_key_is_offered_and_a_far_one_is_not() -> None:
    assert unknown("max_share", ["maxShare"]) == "unknown key; did you mean 'maxShare'?"
    assert unknown("zzz", ["maxShare"]) == "unknown key"


def test_the_model_inside_an_annotation_is_found() -> None:
    assert inner_model(dict[str, Rule] | None) is Rule
    assert inner_model(tuple[str, ...]) is None
