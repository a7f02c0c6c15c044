"""The figures of a simulated run, under the names `vllm bench serve` gives them."""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.intervals import Interval, ratio_interval
from specplan.results.warmup import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.results.warmup import Rows
    from specplan.sim.records import Run

PERCENTILES = (50, 90, 95, 99)
LATENCIES = ("ttft", "tpot", "itl", "e2el")
PHASES = ("prefill", "draft", "verify", "overhead", "idle")


def latencies(run: Rows) -> dict[str, NDArray[np.float64]]:
    """Latency of every completed request after the warm-up, in arrival order, seconds.

    `ttft_s` = first token − arrival, `e2el_s` = finish − arrival, `tpot_s` = (E2EL − TTFT)/(n − 1),
    NaN for one-token outputs, as `vllm bench serve` defines them; `gap_s` and `gaps` are the sum
    and the number of the intervals between chunks, so that ΣITL = `gap_s`; `queue_s` = admitted −
    arrival. Every array has one entry a completed request.
    """
    rows = run.requests
    done = (rows["status"] == 0) & counted(run)
    arrival, first, finish = (rows[k][done] for k in ("arrival_s", "first_token_s", "finish_s"))
    tokens = rows["output_tokens"][done].astype(np.float64)
    generation = finish - first
    chunks = rows["rounds"][done].astype(np.float64)
    # With a prompt the prefill pass commits the first chunk and every round adds a gap after it.
    gaps = chunks - (rows["prompt_tokens"][done] == 0)
    return {
        "ttft_s": first - arrival,
        "e2el_s": finish - arrival,
        "tpot_s": np.divide(
            generation, tokens - 1, out=np.full(len(tokens), nan), where=tokens > 1
        ),
        "gap_s": generation,
        "gaps": gaps,
        "queue_s": rows["admitted_s"][done] - arrival,
        "output_tokens": tokens,
        "prompt_tokens": rows["prompt_tokens"][done].astype(np.float64),
        "finish_s": finish,
    }


def _statistics(seconds: NDArray[np.float64]) -> dict[str, float | None]:
    """Mean, median, std and percentiles in milliseconds; all None without observations."""
    names = ["mean", "median", "std", *(f"p{p}" for p in PERCENTILES)]
    if len(seconds) == 0:
        return dict.fromkeys(names)
    milliseconds = seconds * 1e3
    return {
        "mean": float(np.mean(milliseconds)),
        "median": float(np.median(milliseconds)),
        "std": float(np.std(milliseconds)),
        **{
            f"p{p}": float(v)
            for p, v in zip(PERCENTILES, np.percentile(milliseconds, PERCENTILES), strict=True)
        },
    }


def _itl_statistics(run: Run) -> dict[str, float | None]:
    """Take the same of the gaps between chunks, from their histogram."""
    gaps = run.itl
    names = ["mean", "median", "std", *(f"p{p}" for p in PERCENTILES)]
    if gaps.count == 0:
        return dict.fromkeys(names)
    mean = gaps.sum / gaps.count
    variance = max(0.0, gaps.sum_of_squares / gaps.count - mean * mean)
    return {
        "mean": mean * 1e3,
        "median": gaps.quantile(0.5) * 1e3,
        "std": sqrt(variance) * 1e3,
        **{f"p{p}": gaps.quantile(p / 100) * 1e3 for p in PERCENTILES},
    }


def intervals(columns: dict[str, NDArray[np.float64]]) -> dict[str, Interval]:
    """95 % intervals of the mean latencies, seconds, by batch means over requests in arrival order.

    `mean_ttft`, `mean_tpot`, `mean_itl`, `mean_e2el`; the mean ITL is the ratio of the summed gaps
    to their number, batch by batch.
    """
    several = np.isfinite(columns["tpot_s"])
    return {
        "mean_ttft": ratio_interval(columns["ttft_s"]),
        "mean_tpot": ratio_interval(columns["tpot_s"][several]),
        "mean_itl": ratio_interval(columns["gap_s"], columns["gaps"]),
        "mean_e2el": ratio_interval(columns["e2el_s"]),
    }


def utilisation(run: Run) -> dict[str, dict[str, float]]:
    """Share of the run that each GPU spent in each phase; the shares of one GPU sum to 1."""
    shares = {}
    for gpu, phases in run.phases.items():
        total = sum(phases.values())
        shares[gpu] = {p: (phases.get(p, 0.0) / total if total > 0 else 0.0) for p in PHASES}
    return shares


def goodput(run: Run, columns: dict[str, NDArray[np.float64]], duration_s: float) -> float | None:
    """Count the requests per second that meet every SLO of the scenario (DistServe); None without.

    An SLO such as `ttft_p99: 500 ms` judges each request's TTFT against 500 ms; whether the
    percentile is met is another question, answered by the percentile itself.
    """
    limits = run.scenario.slo.request_limits()
    if not limits:
        return None
    met = np.ones(len(columns["e2el_s"]), dtype=bool)
    for metric, limit_s in limits.items():
        value = columns[f"{metric}_s"]
        met &= (value <= limit_s) | np.isnan(value)  # a one-token answer has no TPOT to miss
    return float(np.count_nonzero(met)) / duration_s if duration_s > 0 else 0.0


def little(run: Run, columns: dict[str, NDArray[np.float64]]) -> dict[str, float]:
    """Both sides of Little's law for the requests in service: time-average batch and λ·W.

    `mean_running` integrates the batch size over time (Σ b · seconds at b / duration, all
    replicas); `throughput_times_service` adds up every request's time from admission to finish,
    seen from the requests. They agree on every complete run without preemptions.
    """
    sizes = np.arange(len(run.batch_time_s))
    duration = run.duration_s or nan
    service = columns["e2el_s"] - columns["queue_s"]
    return {
        "mean_running": float(sizes @ run.batch_time_s) / duration,
        "throughput_times_service": float(service.sum()) / duration,
        "mean_waiting": float(columns["queue_s"].sum()) / duration,
    }


def saturation_reason(run: Run) -> str | None:
    """Why the run has no steady-state latency, or None."""
    if not run.saturated:
        return None
    rows = run.requests
    span = (
        float(rows["arrival_s"][-1] - rows["arrival_s"][0]) if len(rows["arrival_s"]) > 1 else 0.0
    )
    completed = int(np.count_nonzero(rows["status"] == 0))
    offered = (len(rows["arrival_s"]) - 1) / span if span > 0 else float("inf")
    served = completed / run.duration_s if run.duration_s > 0 else 0.0
    return (
        f"requests arrive at {offered:.4g}/s and are served at {served:.4g}/s, so the queue grows "
        "for as long as the load lasts and latency depends only on how long the run was"
    )


def summary(run: Run) -> dict[str, Any]:
    """Everything `specplan simulate --json` prints (MODEL.md § 5).

    The keys of a `vllm bench serve` result file (vllm/benchmarks/serve.py, 0.33), so that scripts
    made for that file read this one; plus intervals `{mean_…}_ci95` as `[low, high]`, the
    speculation figures, `utilisation`, and `little`. A saturated run has None for every latency
    and says why in `saturated_reason`.
    """
    columns = latencies(run)
    scenario = run.scenario
    return {
        "backend": "specplan",
        "scenario_name": scenario.name,
        "seed": scenario.seed,
        "num_prompts": len(run.requests["status"]),
        **_load(run),
        **_throughput(run, columns),
        **_latency(run, columns),
        **_speculation(run),
        "warmup_requests": int(np.count_nonzero(~counted(run))),
        "utilisation": utilisation(run),
        "preemptions": int(run.preemptions),
        "saturated": bool(run.saturated),
        "saturated_reason": saturation_reason(run),
        "interrupted": bool(run.interrupted),
        "rounds": int(run.rounds),
        "engine_steps": int(run.engine_steps),
        "little": little(run, columns),
    }


def _load(run: Run) -> dict[str, Any]:
    arrivals = run.scenario.workload.arrivals
    rate, streams = getattr(arrivals, "rate", None), getattr(arrivals, "streams", None)
    return {
        "request_rate": "inf" if rate is None else float(rate),
        "burstiness": float(getattr(arrivals, "burstiness", None) or 1.0),
        "max_concurrency": streams,
    }


def _throughput(run: Run, columns: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    status, kept = run.requests["status"], counted(run)
    begun = run.requests["arrival_s"][kept][:1].sum() - run.requests["arrival_s"][:1].sum()
    duration = max(0.0, run.duration_s - float(begun))  # from the first request that counts
    prompts, outputs = int(columns["prompt_tokens"].sum()), int(columns["output_tokens"].sum())
    per_second = 1.0 / duration if duration > 0 else nan
    return {
        "duration": duration,
        "completed": len(columns["e2el_s"]),
        "failed": int(np.count_nonzero(kept & ((status == 1) | (status == 2)))),
        "unfinished": int(np.count_nonzero(kept & (status == 3))),
        "total_input_tokens": prompts,
        "total_output_tokens": outputs,
        "request_throughput": len(columns["e2el_s"]) * per_second,
        "request_goodput": goodput(run, columns, duration),
        "output_throughput": outputs * per_second,
        "total_token_throughput": (prompts + outputs) * per_second,
        "output_throughput_per_gpu": outputs * per_second / max(1, len(run.phases)),
    }


def _latency(run: Run, columns: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    tpot = columns["tpot_s"]
    statistics = {
        "ttft": _statistics(columns["ttft_s"]),
        "tpot": _statistics(tpot[np.isfinite(tpot)]),
        "itl": _itl_statistics(run),
        "e2el": _statistics(columns["e2el_s"]),
    }
    figures: dict[str, Any] = {
        f"{statistic}_{metric}_ms": None if run.saturated else value
        for metric, values in statistics.items()
        for statistic, value in values.items()
    }
    for name, interval in intervals(columns).items():
        figures[f"{name}_ms_ci95"] = None if run.saturated else interval.scaled(1e3).ends()
    return figures


def _speculation(run: Run) -> dict[str, Any]:
    """Count acceptance over the rounds that drafted, as vLLM does."""
    drafting = int(run.drafting_rounds)
    drafted, accepted = int(run.drafted_tokens), int(run.accepted_tokens)
    length = 1 + accepted / drafting if drafting else None
    rate = accepted / drafted if drafted else None
    return {
        "acceptance_length": length,
        "acceptance_rate": rate,
        "tokens_per_round": (run.rounds + accepted) / run.rounds if run.rounds else None,
        "drafted_tokens": drafted,
        "accepted_tokens": accepted,
        "wasted_draft_tokens": int(run.wasted_draft_tokens),
        "wasted_draft_s": float(run.wasted_draft_s),
        "spec_decode_num_drafts": drafting,
        "spec_decode_num_draft_tokens": drafted,
        "spec_decode_num_accepted_tokens": accepted,
        "spec_decode_acceptance_length": length,
        "spec_decode_acceptance_rate": None if rate is None else 100 * rate,
    }
