"""SGLang results in JSON: bench_serving lines, bench_one_batch_server lines, /generate responses.

`accept_length` includes the bonus token. The native client repeats the gap of a chunk over its
tokens, so ITL is about TPOT even with speculation, and the round takes ITL · accept length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.importers.documents import missing_note
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked, tail_rates

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record


def is_bench(record: Record) -> bool:
    """Return whether the object is a line of bench_serving."""
    return "completed" in record.value and (
        "accept_length" in record.value or "server_info" in record.value
    )


def is_one_batch(record: Record) -> bool:
    """Return whether the object is a line of bench_one_batch_server."""
    return "acc_length" in record.value and "batch_size" in record.value


def is_response(record: Record) -> bool:
    """Return whether the object is a /generate response of a speculating server."""
    meta = record.value.get("meta_info")
    return isinstance(meta, dict) and "spec_verify_ct" in meta


def read_bench(record: Record) -> Evidence:
    """Return the evidence of one bench_serving run."""
    completed = record.count("completed")
    if completed == 0:
        raise record.fault("completed", "0 requests completed", "a run with completed requests")
    output, prompt = record.count("total_output_tokens"), record.count("total_input_tokens")
    tau = record.number("accept_length")
    mean = record.number("mean_itl_ms")
    source = Source(
        record.file,
        "sglang-bench",
        where=f"max_concurrency {record.value.get('max_concurrency')}",
        line=record.line,
        engine="SGLang",
    )
    native = record.text("backend") == "sglang"
    token_s = record.seconds("mean_tpot_ms")
    base = Evidence(
        source,
        latency=Latency(
            round_s=mean * 1e-3 * (tau or 1.0) if native and mean and mean > 0 else None,
            token_s=token_s,
            ttft_s=record.seconds("mean_ttft_ms"),
            e2e_s=record.seconds("mean_e2e_latency_ms"),
            concurrency=record.count("concurrency", "max_concurrency"),
            requests=completed,
            prompt_tokens=prompt / completed if prompt and completed else None,
            output_tokens=output / completed if output and completed else None,
            output_tokens_per_s=record.seconds("output_throughput", unit_s=1.0),
            duration_s=record.seconds("duration", unit_s=1.0),
        ),
        warnings=missing_note(record),
    )
    if tau is None:
        return replace(base, gamma=0)
    server = record.record("server_info")
    gamma, nodes = _drafts(server)
    rounds = None
    if output and completed and output > completed and tau >= 1:
        rounds = (output - completed) / tau
    return checked(
        replace(
            base,
            method=server.text("speculative_algorithm").lower() if server else "",
            gamma=gamma,
            tree=nodes is not None,
            tree_nodes=nodes or None,
            drafting_rounds=rounds,
            accepted_tokens=rounds * (tau - 1) if rounds else None,
            acceptance_length=tau,
            rounding=0.005,
            warnings=(
                *base.warnings,
                "accept_length is that of data-parallel rank 0 since the server started; rounds "
                "are (output tokens − requests) / accept_length",
                *(_TREE if nodes is not None else ()),
            ),
        )
    )


_TREE = (
    "eagle_topk above 1: a tree; γ is its depth, and chain formulas do not hold for its rates",
)


def _drafts(server: Record | None) -> tuple[int | None, int | None]:
    """Return γ and the nodes of a tree (0: not stated; None: a chain), from the server's flags."""
    if server is None:
        return None, None
    steps, width = (
        server.count("speculative_num_steps"),
        server.count("speculative_num_draft_tokens"),
    )
    if (server.count("speculative_eagle_topk") or 1) > 1:
        nodes = int(width) - 1 if width and width > 1 else 0
        # A tree of fewer nodes than levels is at most so deep, however many steps are drafted.
        return (min(int(steps), nodes or int(steps)) if steps else None), nodes
    if width is not None and width > 1:
        return int(width) - 1, None
    return (int(steps) if steps else None), None


def read_one_batch(record: Record) -> Evidence:
    """Return the evidence of one bench_one_batch_server line; acc_length −1 is no speculation."""
    tau, output = record.number("acc_length"), record.count("output_len")
    latency_s = record.seconds("latency", unit_s=1.0)
    ttft_s = record.seconds("last_ttft", "ttft", unit_s=1.0)
    token_s = None
    if latency_s and ttft_s and output and output > 1 and latency_s > ttft_s:
        token_s = (latency_s - ttft_s) / (output - 1)
    base = Evidence(
        Source(record.file, "sglang-one-batch", line=record.line, engine="SGLang"),
        gamma=0,
        latency=Latency(
            token_s=token_s,
            ttft_s=ttft_s,
            e2e_s=latency_s,
            concurrency=record.count("batch_size"),
            prompt_tokens=record.count("input_len"),
            output_tokens=output,
        ),
    )
    if tau is None or tau == -1:
        return base
    return checked(replace(base, gamma=None, acceptance_length=tau, rounding=0.005))


def read_response(record: Record) -> Evidence:
    """Return the evidence of one /generate response, of 0.5.23 or with the older names."""
    meta = record.record("meta_info")
    if meta is None:
        raise record.fault("meta_info", "absent", "a /generate response")
    verify, output = meta.count("spec_verify_ct"), meta.count("completion_tokens")
    if not verify:
        raise meta.fault("spec_verify_ct", "0 rounds", "a response that speculation took part in")
    histogram = meta.histogram("spec_correct_drafts_histogram") or meta.histogram(
        "spec_accept_histogram"
    )
    drafted = meta.count("spec_num_proposed_drafts", "spec_draft_token_num")
    accepted = meta.count("spec_num_correct_drafts", "spec_accept_token_num")
    if accepted is None:
        if not output or output - 1 < verify:
            raise meta.fault("completion_tokens", f"{output}", f"more than the {verify:g} rounds")
        accepted = output - 1 - verify
    if histogram:
        counted = sum(j * count for j, count in enumerate(histogram))
        if counted != accepted or sum(histogram) != verify:
            raise meta.fault(
                "spec_correct_drafts_histogram",
                f"holds {counted:g} tokens in {sum(histogram):g} rounds, not {accepted:g} in "
                f"{verify:g}",
                "the two must agree",
            )
    gamma = round(drafted / verify) if drafted else len(histogram) - 1 if histogram else None
    return checked(
        Evidence(
            Source(record.file, "sglang-response", line=record.line, engine="SGLang"),
            gamma=gamma or None,
            drafting_rounds=verify,
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            unconditional=tail_rates(histogram) if histogram else (),
            histogram=histogram,
            acceptance_length=1 + accepted / verify,
            latency=Latency(
                e2e_s=meta.seconds("e2e_latency", unit_s=1.0),
                output_tokens=output,
                prompt_tokens=meta.count("prompt_tokens"),
            ),
            dropped=(
                "spec_accept_length: completion tokens / rounds counts the token of the prefill",
            ),
        )
    )
