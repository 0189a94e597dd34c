"""From a checked tree to closures (cel-go interpreter/planner.go and its decorators).

Owns what is folded while planning, what is an access path, and how &&, ||, ==, in and optional functions
are evaluated. Raises ProgramError where upstream can't make a program of a well-typed tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from extender.selectors import loops, work
from extender.selectors.ast import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from extender.selectors.calls import call0, call1, call2, call_fixed, call_many, call_quantity, implementation
from extender.selectors.closures import (
    equal_text,
    insert_map,
    insert_pair,
    list_maker,
    many_terms,
    map_maker,
    read_anew,
    two_terms,
    unequal,
)
from extender.selectors.cost import LIST, MAP, STRUCT, price
from extender.selectors.declarations import Functions
from extender.selectors.environment import Environment
from extender.selectors.equality import equal
from extender.selectors.errors import CelError
from extender.selectors.frame import Eval, Frame, charge
from extender.selectors.library import functions, quantity, regex
from extender.selectors.library.conversions import CONVERSIONS
from extender.selectors.messages import MESSAGES
from extender.selectors.messages import build as build_message
from extender.selectors.paths import Choice, Path, Step, device_text_equals
from extender.selectors.planned import (
    Computed,
    Const,
    Plan,
    ProgramError,
    aggregate,
    evaluator,
    fixed,
    membership,
)
from extender.selectors.soundness import holds_no_values
from extender.selectors.values import MapValue, Optional, UInt, Unnamed, no_overload, show

_FIXED: Final = frozenset(
    {"quantity", "semver", "isQuantity", "isSemver", "ip", "cidr", "url", "isIP", "isCIDR", "isURL"}
)
"""Functions that are carried out once when their arguments are constants; their price stays due each time."""
_STEP_TYPES: Final = frozenset({str, int, UInt, bool, float})
_ACCU: Final = "@result"


def build(root: Node, environment: Environment) -> tuple[Eval, int]:
    """Return the expression's closure and how many variables its frames hold; raise ProgramError."""
    planner = _Planner(environment)
    run = evaluator(planner.plan(root))
    return run, planner.slots


class _Planner:
    def __init__(self, environment: Environment) -> None:
        self._functions: Functions = functions(environment)
        self._scopes: list[dict[str, Eval]] = [{}]
        self.slots = 0

    def plan(self, node: Node) -> Plan:  # noqa: PLR0911 - one return for each kind of node
        """The plan of a node."""
        if isinstance(node, Literal):
            return Const(node.value)
        if isinstance(node, Ident):
            return self._name(node) if node.constant is None else _named(node.constant)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Fold):
            return Computed(self._fold(node))
        assert isinstance(node, StructNode)
        return Computed(self._struct(node))

    def eval(self, node: Node) -> Eval:
        """The closure of a node."""
        return evaluator(self.plan(node))

    # -- names and paths -------------------------------------------------------------------------------

    def _name(self, node: Ident) -> Path:
        name = node.name
        if node.type.kind == "type":  # upstream takes a variable that holds a type for a type's name
            raise ProgramError(f"reference to undefined type: {name.removeprefix('.')}")
        absolute = name.startswith(".")
        read = None if absolute else self._scopes[-1].get(name)
        if read is not None:
            return Path(read)
        return Path(_whole_device, device=True)

    @staticmethod
    def _path(plan: Plan) -> Path | Choice:
        return plan if isinstance(plan, (Path, Choice)) else Path(evaluator(plan))

    def _select(self, node: Select) -> Plan:
        if node.constant is not None:
            return _named(node.constant)
        path = self._path(self.plan(node.operand))
        path.add(Step(node.field, test=node.test))
        if node.test:
            path.tested = True
        return path

    def _index(self, target: Plan, key: Plan, *, optional: bool) -> Plan:
        path = self._path(target)
        if isinstance(key, Const):
            if type(key.value) not in _STEP_TYPES:
                raise ProgramError(f"invalid qualifier type: {show(key.value)}")
            path.add(Step(key.value, optional=optional))
        elif isinstance(key, (Path, Choice)):
            path.add(Step(None, key.resolver(), optional=optional))
        else:
            path.add(Step(None, key.run, optional=optional))
        return path

    # -- calls -----------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Plan:  # noqa: PLR0911 - one return for each way to plan a call
        if node.function in {"_&&_", "_||_"}:
            return self._logical(node)
        plans = [self.plan(arg) for arg in ([] if node.target is None else [node.target]) + node.args]
        special = self._special.get(node.function)
        if special is not None:
            return special(self, node, plans)
        if node.function in {"or", "orValue"}:
            return self._optional_or(node, plans)
        function = self._functions[node.function]
        overload = node.overloads[0] if len(node.overloads) == 1 else None
        overload_id = overload.id if overload is not None else ""
        if overload_id == "in_list" and isinstance(plans[1], Const):
            found = membership(plans[0], plans[1].value)
            if found is not None:
                return found
        nodes = ([] if node.target is None else [node.target]) + node.args
        run = implementation(function, node.overloads, nodes)
        if node.function in CONVERSIONS and len(plans) == 1 and isinstance(plans[0], Const):
            try:
                return Const(run(plans[0].value))
            except CelError as error:
                raise ProgramError(str(error)) from error
        plans = _watched(node.function, plans, nodes)
        cost = price(node.function, overload_id)
        variadic = overload is None and function.run is None
        pattern = plans[1] if len(plans) > 1 else None
        if isinstance(pattern, Const) and type(pattern.value) is str:
            try:
                compiled = regex.precompiled(node.function, pattern.value)
            except regex.PatternError as error:
                raise ProgramError(str(error)) from error
            if compiled is not None:
                run, variadic = compiled, True
        variadic = variadic or (overload is not None and overload.variadic)
        closure = self._closure(plans, run, cost, variadic=variadic)
        if node.function in work.MAKING:
            closure = work.made(closure, work.MAKING[node.function])
        if node.function in _FIXED and all(
            isinstance(p, Const) or (isinstance(p, Computed) and p.fixed) for p in plans
        ):
            return fixed(closure)
        return Computed(closure)

    @staticmethod
    def _closure(plans: list[Plan], run: Callable[..., Any], cost: Any, *, variadic: bool) -> Eval:
        args = [evaluator(p) for p in plans]
        if not args:
            return call0(run, cost)
        if len(args) > 2 or variadic:
            return call_many(args, run, cost)
        if len(args) == 1:
            return call1(args[0], run, cost)
        right = plans[1]
        if isinstance(right, Computed) and isinstance(right.fixed, tuple) and isinstance(cost, int):
            if run in {quantity.greater, quantity.less}:
                wanted = 1 if run is quantity.greater else -1
                return call_quantity(args[0], right.fixed[0], right.fixed[1] + cost, wanted)
            return call_fixed(args[0], *right.fixed, run, cost)
        return call2(args[0], args[1], run, cost)

    def _logical(self, node: Call) -> Plan:
        terms: list[Eval] = []
        # Chains are trees of two; their order and errors are those of one flat list.
        stack: list[Node] = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, Call) and current.function == node.function:
                stack.extend(reversed(current.args))
            else:
                terms.append(self.eval(current))
        stops = node.function == "_||_"
        if len(terms) == 3:
            return Computed(two_terms(two_terms(terms[0], terms[1], stops=stops), terms[2], stops=stops))
        if len(terms) == 2:
            return Computed(two_terms(terms[0], terms[1], stops=stops))
        return Computed(many_terms(tuple(terms), stops=stops))

    def _conditional(self, _node: Call, plans: list[Plan]) -> Plan:
        return Choice(evaluator(plans[0]), self._path(plans[1]), self._path(plans[2]))

    def _equal(self, node: Call, plans: list[Plan]) -> Plan:
        negated = node.function == "_!=_"
        right = plans[1]
        if isinstance(right, Const) and type(right.value) is str:
            keys = plans[0].constant_keys() if isinstance(plans[0], Path) else None
            quick = None if keys is None else device_text_equals(keys, right.value, negated=negated)
            if quick is not None:
                return Computed(quick)
            return Computed(equal_text(evaluator(plans[0]), right.value, negated=negated))
        plans = _watched(node.function, plans, node.args)
        right = plans[1]
        if negated:
            return Computed(
                call2(evaluator(plans[0]), evaluator(right), unequal, price("_!=_", "not_equals"))
            )
        return Computed(call2(evaluator(plans[0]), evaluator(right), equal, price("_==_", "equals")))

    def _indexed(self, node: Call, plans: list[Plan]) -> Plan:
        return self._index(plans[0], plans[1], optional=node.function != "_[_]")

    def _not_false(self, _node: Call, plans: list[Plan]) -> Plan:
        arg = evaluator(plans[0])

        def run(frame: Frame) -> bool:
            try:
                value = arg(frame)
            except CelError:
                value = True
            charge(frame, 1)
            return value is not False

        return Computed(run)

    def _optional_or(self, node: Call, plans: list[Plan]) -> Plan:
        left, right = evaluator(plans[0]), evaluator(plans[1])
        unwrap = node.function == "orValue"

        def run(frame: Frame) -> Any:
            value = left(frame)
            if type(value) is not Optional:
                raise no_overload()
            if value.present:
                return value.value if unwrap else value
            return right(frame)

        return Computed(run)

    def _append(self, node: Call, plans: list[Plan]) -> Plan:
        """`accumulator + [element]` adds in place: nothing else sees the accumulator's list."""
        first, second = node.args
        if not (isinstance(first, Ident) and first.name == _ACCU and isinstance(second, ListNode)):
            return self._plain(node, plans)
        accu, element = evaluator(plans[0]), evaluator(plans[1])

        def run(values: list[Any], more: list[Any]) -> list[Any]:
            values.extend(more)
            return values

        return Computed(call2(accu, element, run, 1))

    def _insert(self, node: Call, plans: list[Plan]) -> Plan:
        """Insertion into the accumulator's map, in place."""
        run = insert_pair if len(plans) == 3 else insert_map
        return Computed(self._closure(plans, run, 1, variadic=len(node.overloads) != 1))

    def _plain(self, node: Call, plans: list[Plan]) -> Plan:
        function = self._functions[node.function]
        overload_id = node.overloads[0].id if len(node.overloads) == 1 else ""
        run = implementation(function, node.overloads, node.args)
        closure = self._closure(plans, run, price(node.function, overload_id), variadic=False)
        return Computed(work.made(closure) if node.type.kind in {"list", "dyn"} else closure)

    # -- aggregates ------------------------------------------------------------------------------------

    def _list(self, node: ListNode) -> Plan:
        plans = [self.plan(element) for element in node.elements]
        optional = node.optional
        run = list_maker(tuple(evaluator(p) for p in plans), optional)
        return aggregate(run, plans, LIST)

    def _map(self, node: MapNode) -> Plan:
        plans: list[Plan] = []
        entries: list[tuple[Eval, Eval, bool]] = []
        for key, value, optional in node.entries:
            key_plan, value_plan = self.plan(key), self.plan(value)
            plans += [key_plan, value_plan]
            make_key = evaluator(key_plan)
            if isinstance(key_plan, Path) and key_plan.device and len(key_plan.steps) != 1:
                make_key = read_anew(make_key)
            entries.append((make_key, evaluator(value_plan), optional))
        return aggregate(map_maker(tuple(entries)), plans, MAP)

    def _struct(self, node: StructNode) -> Eval:
        name = node.name.removeprefix(".")
        message = MESSAGES.get(name)
        fields = tuple((field, self.eval(value), optional) for field, value, optional, _ in node.fields)

        def make(frame: Frame) -> Any:
            given = [(field, value(frame), optional) for field, value, optional in fields]
            if message is None:  # declared, but upstream can't make it
                raise CelError(f"unknown type '{name}'")
            return build_message(name, message, given)

        def run(frame: Frame) -> Any:
            try:
                made = make(frame)
            except CelError:
                charge(frame, STRUCT)
                raise
            charge(frame, STRUCT)
            return made

        return run

    # -- comprehensions --------------------------------------------------------------------------------

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _fold(self, node: Fold) -> Eval:
        initial = self._initial(node)
        bound = node.var == "#unused" and isinstance(node.range, ListNode) and not node.range.elements
        if bound and node.step.type.kind == "type":  # the step is never carried out, but upstream plans it
            raise ProgramError(f"reference to undefined type: {node.accu}")
        range_ = None if bound else self.eval(node.range)
        slots = loops.Slots(self._slot(), self._slot(), self._slot() if node.var2 else -1)
        outer = {**self._scopes[-1], node.accu: loops.accumulator(slots.accu, initial)}
        if range_ is None:
            return loops.binding(slots, self._within(outer, node.result))
        inner = {**outer, node.var: loops.variable(slots.first)}
        if node.var2:
            inner[node.var2] = loops.variable(slots.second)
        if node.kind in {"all", "exists"}:
            assert isinstance(node.step, Call)
            predicate = self._within(inner, node.step.args[1])
            return loops.quantifier(slots, range_, predicate, every=node.kind == "all")
        if node.kind == "one":
            assert isinstance(node.step, Call)
            return loops.exactly_one(slots, range_, self._within(inner, node.step.args[0]))
        condition = self._within(inner, node.condition)
        step = self._within(inner, node.step)
        return loops.fold(slots, range_, condition, step, self._within(outer, node.result))

    def _within(self, scope: dict[str, Eval], node: Node) -> Eval:
        self._scopes.append(scope)
        run = self.eval(node)
        self._scopes.pop()
        return run

    def _initial(self, node: Fold) -> Eval:
        if node.accu == _ACCU and isinstance(node.accu_init, ListNode):
            return lambda _frame: []
        if node.accu == _ACCU and isinstance(node.accu_init, MapNode):
            return lambda _frame: MapValue({})
        return self.eval(node.accu_init)

    _special: ClassVar[Mapping[str, Callable[[_Planner, Call, list[Plan]], Plan]]] = {
        "_?_:_": _conditional,
        "_==_": _equal,
        "_!=_": _equal,
        "_[_]": _indexed,
        "_[?_]": _indexed,
        "_?._": _indexed,
        "@not_strictly_false": _not_false,
        "_+_": _append,
        "cel.@mapInsert": _insert,
    }
    """Functions that are planned in ways of their own."""


def _watched(function: str, plans: list[Plan], nodes: list[Node]) -> list[Plan]:
    """The plans, counting the work of a function that looks into its arguments."""
    place, least = work.READING.get(function, (len(plans), 0))
    if place < len(plans) and not isinstance(plans[place], Const):
        reading = Computed(work.read(evaluator(plans[place]), least))
        return [*plans[:place], reading, *plans[place + 1 :]]
    if function not in work.VISITING or (
        function in {"_==_", "_!=_"} and any(holds_no_values(n) for n in nodes)
    ):
        return plans
    pairwise = function in work.PAIRWISE
    return [
        plan
        if isinstance(plan, Const) or holds_no_values(node)
        else Computed(work.visited(evaluator(plan), pairwise=pairwise))
        for plan, node in zip(plans, nodes, strict=True)
    ]


def _whole_device(frame: Frame) -> Any:
    return frame.device.whole()


def _named(value: Any) -> Const:
    """What a name stands for when it is no variable's."""
    if isinstance(value, Unnamed):
        raise ProgramError(f"reference to undefined type: {value.name}")
    return Const(value)
