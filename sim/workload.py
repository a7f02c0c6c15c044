"""A scenario's requests, made chunk by chunk: all a pure function of (seed, request)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.sim.luck import request_keys, request_uniforms
from specplan.sim.state import NOBODY, REQUEST, UNFINISHED, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.scenarios.importers.traces import Trace
    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_workload import Lengths
    from specplan.sim.setup import Laws

CLASS, PROMPT, OUTPUT, LAW, ALPHA, GAP, ROUTE, ROUTE_AGAIN = range(1, 9)
DEFAULT_REQUESTS = 1000


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Which prompts begin alike: hash ids of their blocks, numbered 0 … `different` − 1.

    Prompt i has `ids[starts[i]:starts[i + 1]]`, of `block_tokens` tokens each (0: no prefix cache).
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    different: int
    block_tokens: int


@dataclass(frozen=True, eq=False)
class Workload:
    """What `scenario.workload` asks for, ready to be made in chunks."""

    scenario: Scenario
    laws: Laws
    trace: Trace | None
    lengths: Trace | None
    requests: int
    prefixes: Prefixes

    def chunk(self, first: int, count: int, begin_s: float) -> Any:
        """Rows of requests `first` … `first + count − 1`; open arrivals go on from `begin_s`."""
        number = np.arange(first, first + count, dtype=np.int64)
        seed, workload = self.scenario.seed, self.scenario.workload
        made = rows(count, REQUEST)
        made["request"] = number
        made["key"] = request_keys(seed, number)
        made["status"] = UNFINISHED
        made["next"] = NOBODY
        made["gamma"] = -1
        made["caught_up"] = 1
        for field in ("admitted_s", "first_token_s", "last_chunk_s", "finish_s"):
            made[field] = np.nan
        made["cls"] = self._classes(number)
        made["prompt_tokens"] = self._lengths(number, made["cls"], "prompt_tokens", PROMPT)
        made["output_tokens"] = self._lengths(number, made["cls"], "output_tokens", OUTPUT)
        made["to_prefill"] = made["prompt_tokens"]
        made["left"] = made["output_tokens"]
        law_luck = request_uniforms(seed, number, LAW)
        made["law"], made["alpha"] = self.laws.draw(
            made["cls"], law_luck, lambda: request_uniforms(seed, number, ALPHA)
        )
        if workload.classes and self.scenario.scheduler.policy == "priority":
            ranks = np.array([kind.priority for kind in workload.classes])
            made["priority"] = np.searchsorted(np.unique(ranks), ranks)[made["cls"]]
        if workload.arrivals.open:
            made["arrival_s"] = self._arrivals(number, begin_s)
        made["deadline_s"] = made["arrival_s"] + (workload.timeout or np.inf)
        return made

    def _classes(self, number: NDArray[np.int64]) -> NDArray[np.int64]:
        classes = self.scenario.workload.classes
        if not classes:
            return np.zeros(len(number), np.int64)
        shares = np.cumsum([kind.weight for kind in classes])
        drawn = request_uniforms(self.scenario.seed, number, CLASS) * shares[-1]
        cls: NDArray[np.int64] = np.searchsorted(shares, drawn, side="right")
        return np.minimum(cls, len(classes) - 1)

    def _lengths(
        self, number: NDArray[np.int64], cls: NDArray[np.int64], field: str, purpose: int
    ) -> NDArray[np.int64]:
        common: Lengths = getattr(self.scenario, field)
        stated = [getattr(kind, field) or common for kind in self.scenario.workload.classes]
        luck = request_uniforms(self.scenario.seed, number, purpose)
        if not stated:
            return self._drawn(common, number, luck, field)
        made = np.zeros(len(number), np.int64)
        for index, lengths in enumerate(stated):
            chosen = cls == index
            made[chosen] = self._drawn(lengths, number[chosen], luck[chosen], field)
        return made

    def _drawn(
        self, lengths: Lengths, number: NDArray[np.int64], luck: NDArray[np.float64], field: str
    ) -> NDArray[np.int64]:
        if lengths.kind != "trace":
            return lengths.tokens(luck)
        source = self.lengths or self.trace
        assert source is not None  # the schema refuses trace lengths without a file
        column: NDArray[np.int64] = getattr(source, field)
        return column[number % len(column)]

    def _arrivals(self, number: NDArray[np.int64], begin_s: float) -> NDArray[np.float64]:
        arrivals = self.scenario.workload.arrivals
        if self.trace is not None:
            moments: NDArray[np.float64] = self.trace.arrival_s[number] * arrivals.time_scale
            return moments
        if arrivals.interval is not None:
            return np.asarray(number * arrivals.interval, np.float64)
        luck = request_uniforms(self.scenario.seed, number, GAP)
        if arrivals.on_off is not None:
            cycle = arrivals.on_off
            periods = np.floor(begin_s / (cycle.on + cycle.off))
            begun_s = begin_s - periods * cycle.off
            busy_s = begun_s + np.cumsum(gaps_s(luck, cycle.rate, 1.0))
            return np.asarray(busy_s + np.floor(busy_s / cycle.on) * cycle.off, np.float64)
        rate = arrivals.rate or np.inf
        if np.isinf(rate):
            return np.zeros(len(number))
        return begin_s + np.cumsum(gaps_s(luck, rate, arrivals.burstiness))


def gaps_s(luck: NDArray[np.float64], rate: float, burstiness: float) -> NDArray[np.float64]:
    """Gaps between arrivals, seconds: gamma with this shape and mean 1/rate, as `vllm bench serve`.

    >>> gaps_s(np.array([0.5]), rate=2.0, burstiness=1.0).round(6)  # exponential: ln 2 / 2
    array([0.346574])
    """
    if burstiness == 1.0:
        return np.asarray(-np.log1p(-luck) / rate, np.float64)
    from scipy.special import gammaincinv

    return np.asarray(gammaincinv(burstiness, luck) / (burstiness * rate), np.float64)


def prepare(scenario: Scenario, laws: Laws) -> Workload:
    """Read the files a workload names and settle how many requests there are.

    Raises ScenarioError for a trace with fewer rows than requests are asked for.
    """
    from specplan.scenarios.importers.traces import read_lengths, read_trace

    workload = scenario.workload
    path = workload.arrivals.trace
    trace = read_trace(Path(path)) if path else None
    lengths = read_lengths(Path(workload.lengths)) if workload.lengths else None
    available = len(trace.arrival_s) if trace is not None else None
    asked = workload.requests or available or DEFAULT_REQUESTS
    if available is not None and asked > available:
        raise ScenarioError(
            Fault(
                f"{asked} requests are asked for and the trace has {available}",
                f"at most {available}, or leave it out to take them all",
                field="workload.requests",
                file=str(path),
            )
        )
    return Workload(scenario, laws, trace, lengths, asked, _prefixes(scenario, lengths or trace))


def _prefixes(scenario: Scenario, source: Trace | None) -> Prefixes:
    """Give numbers to the hash ids of prompts, where `kv_cache.prefix_caching` asks for them."""
    cache = scenario.kv_cache
    if cache is None or not cache.prefix_caching:
        return Prefixes(np.zeros(0, np.int64), np.zeros(2, np.int64), 0, 0)
    path = str(scenario.workload.lengths or scenario.workload.arrivals.trace)
    if source is None or source.hash_ids is None or source.hash_starts is None:
        wrong, right = (
            "has no hash ids, so nobody knows which prompts begin alike",
            ("a trace with `hash_ids` (Mooncake, Bailian), or `prefix_caching: false`"),
        )
        raise ScenarioError(Fault(wrong, right, field="kv_cache.prefix_caching", file=path))
    if source.hash_block_tokens % cache.block_tokens:
        wrong = (
            f"{cache.block_tokens} tokens do not divide the trace's blocks of "
            f"{source.hash_block_tokens}"
        )
        right = f"{source.hash_block_tokens} or a divisor of it"
        raise ScenarioError(Fault(wrong, right, field="kv_cache.block_tokens", file=path))
    different, ids = np.unique(source.hash_ids, return_inverse=True)
    starts = np.asarray(source.hash_starts, np.int64)
    return Prefixes(ids.astype(np.int64), starts, len(different), source.hash_block_tokens)
