"""The authorizer's functions: declared, so that errors read as upstream's; no variable has their types."""

from __future__ import annotations

from typing import Final, NoReturn

from extender.selectors.declarations import Function, Overload
from extender.selectors.types import BOOL, STRING, Type
from extender.selectors.values import no_overload

_AUTHORIZER: Final = Type("struct", "kubernetes.authorization.Authorizer")
_PATH: Final = Type("struct", "kubernetes.authorization.PathCheck")
_GROUP: Final = Type("struct", "kubernetes.authorization.GroupCheck")
_RESOURCE: Final = Type("struct", "kubernetes.authorization.ResourceCheck")
_DECISION: Final = Type("struct", "kubernetes.authorization.Decision")


def _never(*_args: object) -> NoReturn:
    raise no_overload()


def _member(id_: str, target: Type, result: Type, *args: Type) -> Overload:
    return Overload(id_, (target, *args), result, member=True, run=_never)


FUNCTIONS: Final = (
    Function("path", (_member("authorizer_path", _AUTHORIZER, _PATH, STRING),)),
    Function("group", (_member("authorizer_group", _AUTHORIZER, _GROUP, STRING),)),
    Function(
        "serviceAccount",
        (_member("authorizer_serviceaccount", _AUTHORIZER, _AUTHORIZER, STRING, STRING),),
    ),
    Function("resource", (_member("groupcheck_resource", _GROUP, _RESOURCE, STRING),)),
    Function("subresource", (_member("resourcecheck_subresource", _RESOURCE, _RESOURCE, STRING),)),
    Function("namespace", (_member("resourcecheck_namespace", _RESOURCE, _RESOURCE, STRING),)),
    Function("name", (_member("resourcecheck_name", _RESOURCE, _RESOURCE, STRING),)),
    Function(
        "check",
        (
            _member("pathcheck_check", _PATH, _DECISION, STRING),
            _member("resourcecheck_check", _RESOURCE, _DECISION, STRING),
        ),
    ),
    Function("errored", (_member("decision_errored", _DECISION, BOOL),)),
    Function("error", (_member("decision_error", _DECISION, STRING),)),
    Function("allowed", (_member("decision_allowed", _DECISION, BOOL),)),
    Function("reason", (_member("decision_reason", _DECISION, STRING),)),
    Function("fieldSelector", (_member("authorizer_fieldselector", _RESOURCE, _RESOURCE, STRING),)),
    Function("labelSelector", (_member("authorizer_labelselector", _RESOURCE, _RESOURCE, STRING),)),
)
