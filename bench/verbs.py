"""filter + prioritize, bytes in to bytes out, against decoding and encoding the same with typed Structs."""

from __future__ import annotations

import gc
import random
from statistics import median
from time import perf_counter

import msgspec

from bench.fleet import claim, ledger, node_name, pod
from bench.result import Result, at_most, figure
from bench.service import desk_on
from extender.api.extender import ExtenderArgs, ExtenderFilterResult, HostPriority

NODES = 5000
CALLS = 120


def run() -> list[Result]:
    """5,000 nodes x 8 devices of 20 kinds, half taken, another pod each call, a tenth of the nodes full."""
    book = ledger(NODES)
    for number in range(CALLS):
        book.upserted("ResourceClaim", claim(f"wanted-{number}", 1 + number % 4))
    routes = desk_on(book)
    asked = bodies()
    decoder = msgspec.json.Decoder(ExtenderArgs)
    encoder = msgspec.json.Encoder()
    names = decoder.decode(asked[0]).node_names or []
    filtered = ExtenderFilterResult(node_names=names)
    scored = [HostPriority(name, 5) for name in names]
    for body in asked[:10]:
        routes.filter(body)
        routes.prioritize(body)
    gc.collect()
    gc.freeze()
    ours: list[float] = []
    plain: list[float] = []
    for body in asked[10:]:
        began = perf_counter()
        routes.filter(body)
        routes.prioritize(body)
        between = perf_counter()
        decoder.decode(body)
        encoder.encode(filtered)
        decoder.decode(body)
        encoder.encode(scored)
        plain.append(perf_counter() - between)
        ours.append(between - began)
    gc.unfreeze()
    ratio = median(o / p for o, p in zip(ours, plain, strict=True))
    return [
        at_most("filter + prioritize against typed decode + encode, 5,000 nodes", ratio, "x", 4.0),
        figure("filter + prioritize, 5,000 nodes", median(ours) * 1e3, "ms"),
        figure("typed decode + encode of the same", median(plain) * 1e3, "ms"),
    ]


def bodies(calls: int = CALLS) -> list[bytes]:
    """One body a pod, nodes in another order each time, as kube-scheduler's parallel filters leave them."""
    dice = random.Random(7)
    names = [node_name(number) for number in range(NODES)]
    made = []
    for number in range(calls):
        dice.shuffle(names)
        args = ExtenderArgs(pod=pod(f"pod-{number}", f"wanted-{number}"), node_names=list(names))
        made.append(msgspec.json.encode(args))
    return made
