"""The blocks about serving: scheduler, cluster, objectives, and the record."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge
from pydantic import Field

from specplan.scenarios.fields import Count, Duration, Number, Section

Policy = Literal["fcfs", "priority"]


class Scheduler(Section):
    """How one engine fills its batch, in the terms of vLLM."""

    max_num_seqs: Count = Field(default=256, description="Sequences that run at once.")
    max_num_batched_tokens: Count = Field(
        default=8192,
        description="Positions one pass may compute: γ + 1 for each decoding sequence, and prompt "
        "tokens.",
    )
    chunked_prefill: bool = Field(
        default=True, description="Prompts are cut to the budget and mixed into decode passes."
    )
    prefill_chunk: Count | None = Field(
        default=None, description="Most prompt tokens of one request in one pass; absent: no limit."
    )
    prefill_first: bool = Field(
        default=False, description="Waiting prompts go before decoding sequences."
    )
    policy: Policy = Field(default="fcfs", description="Order of admission: fcfs, or by class.")


class Cluster(Section):
    """How many engines there are, and what stands before them."""

    replicas: Annotated[Count, Field(le=10_000)] = Field(default=1, description="Engines.")
    router: Literal["round_robin", "random", "least_outstanding", "power_of_two"] = Field(
        default="least_outstanding",
        description="Which engine gets a request; power_of_two: the less loaded of two drawn.",
    )
    engines_per_gpu: Count = Field(
        default=1, description="Engines that share one GPU and take turns on it."
    )
    gpus_per_replica: Count = Field(
        default=1, description="GPUs of one engine (its tensor parallel size); for cost per token."
    )
    price_per_gpu_hour: Annotated[Number, Ge(0)] | None = Field(
        default=None, description="What one GPU costs an hour, in any currency."
    )


class Slo(Section):
    """Service level objectives, on the metrics of `vllm bench serve`.

    Without a suffix a limit holds for single requests and defines goodput; with a suffix it is
    about that figure over all requests.
    """

    ttft: Duration | None = Field(default=None, description="Time to first token, each request.")
    tpot: Duration | None = Field(default=None, description="Time per output token, each request.")
    e2el: Duration | None = Field(default=None, description="End-to-end latency, each request.")
    ttft_mean: Duration | None = Field(default=None, description="Mean TTFT.")
    ttft_p50: Duration | None = Field(default=None, description="Median TTFT.")
    ttft_p90: Duration | None = Field(default=None, description="90th percentile of TTFT.")
    ttft_p95: Duration | None = Field(default=None, description="95th percentile of TTFT.")
    ttft_p99: Duration | None = Field(default=None, description="99th percentile of TTFT.")
    tpot_mean: Duration | None = Field(default=None, description="Mean TPOT.")
    tpot_p50: Duration | None = Field(default=None, description="Median TPOT.")
    tpot_p90: Duration | None = Field(default=None, description="90th percentile of TPOT.")
    tpot_p95: Duration | None = Field(default=None, description="95th percentile of TPOT.")
    tpot_p99: Duration | None = Field(default=None, description="99th percentile of TPOT.")
    itl_mean: Duration | None = Field(default=None, description="Mean gap between chunks.")
    itl_p50: Duration | None = Field(default=None, description="Median gap between chunks.")
    itl_p90: Duration | None = Field(default=None, description="90th percentile of gaps.")
    itl_p95: Duration | None = Field(default=None, description="95th percentile of gaps.")
    itl_p99: Duration | None = Field(default=None, description="99th percentile of gaps.")
    e2el_mean: Duration | None = Field(default=None, description="Mean end-to-end latency.")
    e2el_p50: Duration | None = Field(default=None, description="Median end-to-end latency.")
    e2el_p90: Duration | None = Field(default=None, description="90th percentile of latency.")
    e2el_p95: Duration | None = Field(default=None, description="95th percentile of latency.")
    e2el_p99: Duration | None = Field(default=None, description="99th percentile of latency.")

    def request_limits(self) -> dict[str, float]:
        """Seconds a single request must meet for goodput, by metric: ttft, tpot, e2el.

        A metric without a limit of its own takes its strictest percentile's.

        >>> Slo.model_validate({"ttft_p99": "500 ms", "tpot": "40 ms"}).request_limits()
        {'ttft': 0.5, 'tpot': 0.04}
        """
        limits = {}
        for metric in ("ttft", "tpot", "e2el"):
            suffixes = ("", "_p99", "_p95", "_p90", "_p50")
            stated = (getattr(self, metric + suffix) for suffix in suffixes)
            limit = next((seconds for seconds in stated if seconds is not None), None)
            if limit is not None:
                limits[metric] = limit
        return limits

    def targets(self) -> dict[str, float]:
        """Seconds by figure, for those that are about all requests: `{"ttft_p99": 0.5}`."""
        dumped = self.model_dump(exclude_none=True)
        return {name: limit for name, limit in dumped.items() if "_" in name}


class Record(Section):
    """What a reproducible handoff states, in free text; gaps are named in every report."""

    target: str | None = Field(
        default=None, description="Model and revision, and the sampling rules to be preserved."
    )
    proposal: str | None = Field(default=None, description="Draft mechanism and revision.")
    acceptance_rule: str | None = Field(
        default=None, description="Exact rejection sampling, greedy match, lossy threshold, …"
    )
    evidence: str | dict[str, str] | None = Field(
        default=None,
        description="For each input: measured, fitted, datasheet, assumed or analytical, with "
        "its source; a text, or one text for each field.",
    )
    notes: str | None = Field(default=None, description="Anything else a reader must know.")

    def gaps(self) -> list[str]:
        """Name what is not stated, of what a handoff needs."""
        asked = ("target", "proposal", "acceptance_rule", "evidence")
        return [name for name in asked if not getattr(self, name)]
