"""The functions of each library, and which of them an environment has."""

from __future__ import annotations

from typing import Final

from extender.selectors.declarations import Functions, merge
from extender.selectors.environment import Environment
from extender.selectors.library import (
    authz,
    cidr,
    conversions,
    ip,
    k8s_lists,
    lists,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    strings,
    time_,
    two_variables,
    url,
)
from extender.selectors.library import (
    format as format_,
)

_COMMON: Final = (
    operators.FUNCTIONS,
    conversions.FUNCTIONS,
    time_.FUNCTIONS,
    url.FUNCTIONS,
    regex.FUNCTIONS,
    strings.FUNCTIONS,  # before the lists: indexOf's overloads are tried in this order
    k8s_lists.FUNCTIONS,
    authz.FUNCTIONS,
    optionals.FUNCTIONS,
    quantity.FUNCTIONS,
    sets.FUNCTIONS,
    ip.FUNCTIONS,
    cidr.FUNCTIONS,
    format_.FUNCTIONS,
    two_variables.FUNCTIONS,
    semver.FUNCTIONS,
)
_TABLES: Final = {
    (extended, includes): merge(
        *_COMMON,
        *((lists.FUNCTIONS,) if extended else ()),
        *(() if includes is None else (k8s_lists.includes(includes),)),
    )
    for extended in (False, True)
    for includes in (None, 0, 48)
}


def functions(environment: Environment) -> Functions:
    """The functions that an expression may call."""
    includes = (environment.includes_limit or 0) if environment.includes else None
    return _TABLES[environment.extended_lists, includes]
