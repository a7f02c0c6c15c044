"""The figures of a simulated run, under the names `vllm bench serve` gives them."""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.results.intervals import BATCHES, SMALLEST_BATCH, Interval, batch_interval
from specplan.results.peaks import peaks
from specplan.results.spending import spending
from specplan.results.warmup import counted, cut
from specplan.sim.tally import Exact, Tally, request_latencies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from specplan.results.warmup import Rows
    from specplan.sim.records import GapHistogram, Run
    from specplan.sim.tally import Distribution

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
    done = (run.requests["status"] == 0) & counted(run)
    return request_latencies({name: values[done] for name, values in run.requests.items()})


def tallied(run: Run) -> Tally:
    """Give the requests of a run added up: as they came, or now from the rows it kept."""
    if run.tally is not None:
        return run.tally
    tally = Tally(run.scenario, len(run.requests["status"]), cut(run), Exact)
    tally.add(run.requests)
    return tally


def _milliseconds(values: Distribution) -> dict[str, float | None]:
    """Mean, median, std and percentiles in milliseconds; all None without observations."""
    shares = [0.5, *(p / 100 for p in PERCENTILES)]
    median, *percentiles = values.quantiles(shares)
    named = dict(zip(PERCENTILES, percentiles, strict=True))
    figures = {"mean": values.mean(), "median": median, "std": values.std()}
    figures |= {f"p{p}": value for p, value in named.items()}
    return {name: 1e3 * value if values.count else None for name, value in figures.items()}


def _itl_milliseconds(gaps: GapHistogram) -> dict[str, float | None]:
    """Take the same of the gaps between chunks, from their histogram."""
    names = ["mean", "median", "std", "max", *(f"p{p}" for p in PERCENTILES)]
    if gaps.count == 0:
        return dict.fromkeys(names)
    mean = gaps.sum / gaps.count
    return {
        "mean": mean * 1e3,
        "median": gaps.quantile(0.5) * 1e3,
        "std": sqrt(max(0.0, gaps.sum_of_squares / gaps.count - mean * mean)) * 1e3,
        "max": gaps.max * 1e3,
        **{f"p{p}": gaps.quantile(p / 100) * 1e3 for p in PERCENTILES},
    }


def intervals(tally: Tally) -> dict[str, Interval]:
    """95 % intervals of the mean latencies, seconds, by batch means over requests in arrival order.

    `mean_ttft`, `mean_tpot`, `mean_itl`, `mean_e2el`; the mean ITL is the ratio of the summed gaps
    to their number, batch by batch.
    """
    several = tally.completed >= BATCHES * SMALLEST_BATCH
    return {
        f"mean_{name}": batch_interval(tally.tops[name], tally.bottoms[name], enough=several)
        for name in LATENCIES
    }


def utilisation(run: Run) -> dict[str, dict[str, float]]:
    """Share of the run that each GPU spent in each phase; the shares of one GPU sum to 1."""
    shares = {}
    for gpu, phases in run.phases.items():
        total = sum(phases.values())
        shares[gpu] = {p: (phases.get(p, 0.0) / total if total > 0 else 0.0) for p in PHASES}
    return shares


def little(run: Run, tally: Tally) -> dict[str, float]:
    """Both sides of Little's law for the requests in service: time-average batch and λ·W.

    `mean_running` integrates the batch size over time (Σ b · seconds at b / duration, all
    replicas); `throughput_times_service` adds up every request's time from admission to finish,
    seen from the requests. They agree on every complete run without preemptions or warm-up.
    """
    sizes = np.arange(len(run.batch_time_s))
    duration = run.duration_s or nan
    return {
        "mean_running": float(sizes @ run.batch_time_s) / duration,
        "throughput_times_service": tally.service_s / duration,
        "mean_waiting": tally.queue_s / duration,
    }


def saturation_reason(run: Run, tally: Tally) -> str | None:
    """Why the run has no steady-state latency, or None."""
    if not run.saturated:
        return None
    span = tally.last_arrival_s - tally.first_arrival_s
    offered = (tally.seen - 1) / span if span > 0 else float("inf")
    served = tally.completed / run.duration_s if run.duration_s > 0 else 0.0
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
    tally = tallied(run)
    scenario = run.scenario
    throughput = _throughput(run, tally)
    return {
        "backend": "specplan",
        "scenario_name": scenario.name,
        "seed": scenario.seed,
        "num_prompts": tally.seen,
        **_load(run),
        **throughput,
        **peaks(run),
        **spending(run, throughput["output_throughput"]),
        **_latency(run, tally),
        "quantile_rank_error": _rank_error(tally),
        **_speculation(run),
        "classes": {
            name: {**_throughput(run, one), **_latency_of_requests(run, one)}
            for name, one in tally.classes.items()
        },
        "warmup": _warmup(run, tally),
        "warmup_requests": tally.seen - tally.counted,
        "failures": failures(run, tally),
        "prefix_cache_hit_rate": _hit_rate(run, tally),
        "utilisation": utilisation(run),
        "preemptions": int(run.preemptions),
        "saturated": bool(run.saturated),
        "saturated_reason": saturation_reason(run, tally),
        "interrupted": bool(run.interrupted),
        "rounds": int(run.rounds),
        "engine_steps": int(run.engine_steps),
        "little": little(run, tally),
    }


def failures(run: Run, tally: Tally) -> list[str]:
    """Say of the requests that got no full answer how many there are, and why."""
    says = []
    if tally.rejected:
        blocks, budget = run.scenario.kv_blocks, run.scenario.scheduler
        room = [f"{budget.max_num_batched_tokens:,} positions a pass, prompts not chunked"]
        room = [] if budget.chunked_prefill else room
        if blocks is not None and run.scenario.kv_cache is not None:
            held = blocks * run.scenario.kv_cache.block_tokens
            room.append(f"{held:,} tokens of KV cache")
        says.append(
            f"{tally.rejected:,} can never fit, so they were rejected on arrival: there are "
            f"{' and '.join(room)}, and the longest of their prompts has "
            f"{tally.longest_rejected:,} tokens"
        )
    if tally.aborted:
        says.append(
            f"{tally.aborted:,} were given up by their clients after "
            f"{run.scenario.workload.timeout:g} s (workload.timeout)"
        )
    if tally.unfinished:
        says.append(f"{tally.unfinished:,} had arrived and were not done when the run was cut off")
    return says


def _warmup(run: Run, tally: Tally) -> dict[str, Any] | None:
    rule = run.scenario.workload.warmup
    if rule is None:
        return None
    return {
        "rule": rule.kind,
        "requests": tally.seen - tally.counted,
        "until_s": tally.counted_from_s,
        "left_out_of": ["throughput", "latency", "goodput"],
        "counted_in": ["utilisation", "acceptance", "spec_decode", "rounds", "peaks", "little"],
    }


def _hit_rate(run: Run, tally: Tally) -> float | None:
    """Share of prompt tokens found in the prefix cache, as vLLM counts it; None without one."""
    cache = run.scenario.kv_cache
    if cache is None or not cache.prefix_caching or tally.prompt_tokens == 0:
        return None
    return tally.cached_tokens / tally.prompt_tokens


def _rank_error(tally: Tally) -> dict[str, float]:
    """How far a percentile's rank may be from its name, as a share of the requests; 0: exact."""
    distribution = tally.latency["e2el"]
    return {f"p{p}": distribution.rank_error(p / 100) for p in PERCENTILES}


def _load(run: Run) -> dict[str, Any]:
    arrivals = run.scenario.workload.arrivals
    rate, streams = getattr(arrivals, "rate", None), getattr(arrivals, "streams", None)
    return {
        "request_rate": "inf" if rate is None else float(rate),
        "burstiness": float(getattr(arrivals, "burstiness", None) or 1.0),
        "max_concurrency": streams,
    }


def _throughput(run: Run, tally: Tally) -> dict[str, Any]:
    duration = counted_s(run, tally)
    per_second = 1.0 / duration if duration > 0 else nan
    outputs, prompts = tally.output_tokens, tally.prompt_tokens
    return {
        "duration": duration,
        "completed": tally.completed,
        "failed": tally.aborted + tally.rejected,
        "aborted": tally.aborted,
        "rejected": tally.rejected,
        "unfinished": tally.unfinished,
        "total_input_tokens": prompts,
        "total_output_tokens": outputs,
        "request_throughput": tally.completed * per_second,
        "request_goodput": tally.met * per_second if tally.judged else None,
        "output_throughput": outputs * per_second,
        "total_token_throughput": (prompts + outputs) * per_second,
    }


def counted_s(run: Run, tally: Tally) -> float:
    """Seconds from the first request that counts to the end of the run."""
    if not tally.counted:
        return run.duration_s
    return max(0.0, run.duration_s - (tally.counted_from_s - tally.first_arrival_s))


def _latency(run: Run, tally: Tally) -> dict[str, Any]:
    """Lay out the latencies of all; a run without steady state has none to report."""
    figures = _latency_of_requests(run, tally)
    for statistic, value in _itl_milliseconds(run.itl).items():
        figures[f"{statistic}_itl_ms"] = None if run.saturated else value
    for name, interval in intervals(tally).items():
        figures[f"{name}_ms_ci95"] = None if run.saturated else interval.scaled(1e3).ends()
    return figures


def _latency_of_requests(run: Run, tally: Tally) -> dict[str, Any]:
    figures = {
        f"{statistic}_{metric}_ms": None if run.saturated else value
        for metric, values in tally.latency.items()
        for statistic, value in _milliseconds(values).items()
    }
    known = tally.completed > 0 and not run.saturated
    figures["mean_queue_ms"] = 1e3 * tally.queue_s / tally.completed if known else None
    return figures


def _speculation(run: Run) -> dict[str, Any]:
    """Count acceptance over the rounds that drafted, as vLLM does."""
    drafting = int(run.drafting_rounds)
    drafted, accepted = int(run.drafted_tokens), int(run.accepted_tokens)
    reached = run.kept_rounds[::-1].cumsum()[::-1]  # rounds that kept 0, 1, 2, … tokens or more
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
        "spec_decode_draft_tokens": drafted,
        "spec_decode_accepted_tokens": accepted,
        "spec_decode_acceptance_length": length,
        "spec_decode_acceptance_rate": None if rate is None else 100 * rate,
        "spec_decode_per_position_acceptance_rates": (
            (reached[1:] / drafting).tolist() if drafting else []
        ),
    }
