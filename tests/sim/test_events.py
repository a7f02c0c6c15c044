"""Tiny runs, whole: every moment worked out by hand. Prompt 100 ms a 100 tokens, a pass 100 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.sim.records import Run

# A pass of decodes 100 ms whatever its width; prompt positions 1 ms each on top; no speculation.
PLAIN = (
    "speculation.method=none",
    "target.prefill={linear: {base: 0 ms, per_token: 1 ms}}",
    "scheduler.max_num_seqs=8",
    "workload.prompt_tokens=trace",
    "workload.output_tokens=trace",
    "workload.requests=null",
)


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., str]:
    """Write requests (arrival s, prompt, output) as an Azure trace; returns how to set it."""

    def write(*rows: tuple[float, int, int]) -> str:
        path = tmp_path / "trace.csv"
        lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
        for at_s, prompt, output in rows:
            lines.append(f"2023-11-16 18:00:{at_s:010.7f},{prompt},{output}")
        path.write_text("\r\n".join(lines) + "\r\n")
        return f"workload.arrivals={{trace: {path}}}"

    return write


def log(run: Run) -> list[tuple[float, ...]]:
    """(admitted, first token, finish) of every request in ms, NaN as −1."""
    columns = [run.requests[name] for name in ("admitted_s", "first_token_s", "finish_s")]
    rows: Any = zip(*columns, strict=True)
    return [tuple(-1.0 if t != t else round(1000 * t, 6) for t in row) for row in rows]


def test_two_requests_share_steps(run: Callable[..., Run], trace: Callable[..., str]) -> None:
    done = run(*PLAIN, trace((0, 100, 3), (0.05, 50, 2)))
    # 0–100 prefill of 0; the other has arrived, its prompt 50 joins the decode of 0: 100–250.
    # 250–350: 0 makes its third token, 1 its second.
    assert log(done) == [(0, 100, 350), (100, 250, 350)]
    assert done.engine_steps == 3
    assert done.phases["replica0"] == pytest.approx(
        {"prefill": 0.15, "draft": 0, "verify": 0.2, "overhead": 0, "idle": 0}
    )
    assert done.batch_time_s[:3] == pytest.approx([0, 0.1, 0.25])


def test_arrival_at_a_step_boundary_joins_that_step(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(*PLAIN, trace((0, 100, 3), (0.1, 100, 1), (0.1000001, 100, 1)))
    # 1 arrives with the end of the first step and is in the second (100–300: decode and prompt);
    # 2 comes a moment later and waits for the third (300–500).
    assert log(done) == [(0, 100, 500), (100, 300, 300), (300, 500, 500)]


def test_chunks_fill_what_the_budget_leaves(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN, trace((0, 10, 4), (0.001, 150, 1), (0.002, 20, 1)),
        "scheduler.max_num_batched_tokens=101",
    )  # fmt: skip
    # 0–10 prompt of 0. 10–210: decode (1 slot) and 100 of 150 positions. 210–380: decode, the other
    # 50, and the 20 of request 2. 380–480: last decode of 0.
    assert log(done) == [(0, 10, 480), (10, 380, 380), (210, 380, 380)]


def test_prefill_chunk_bounds_each_request(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(*PLAIN, trace((0, 100, 1), (0, 40, 1)), "scheduler.prefill_chunk=40")
    # 0–80: 40 of the first, all 40 of the second; 80–120: 40 more; 120–140: the last 20.
    assert log(done) == [(0, 140, 140), (0, 80, 80)]


def test_whole_prompts_wait_for_a_pass_with_room(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN, trace((0, 60, 2), (0, 50, 1), (0, 10, 1)),
        "scheduler.chunked_prefill=false", "scheduler.max_num_batched_tokens=100",
    )  # fmt: skip
    # 60 + 50 is too much for one pass, and first come is first served: 2 does not overtake 1.
    # 0–60: prompt of 0. 60–220: its decode (100) with prompts of 50 and 10.
    assert log(done) == [(0, 60, 220), (60, 220, 220), (60, 220, 220)]


def test_prefill_first_stalls_decodes(run: Callable[..., Run], trace: Callable[..., str]) -> None:
    done = run(*PLAIN, trace((0, 100, 3), (0.05, 50, 2)), "scheduler.prefill_first=true")
    # 0–100 prompt of 0; 100–150 prompt of 1 alone; 150–250, 250–350 both decode.
    assert log(done) == [(0, 100, 350), (100, 150, 250)]


def test_lookahead_is_charged_to_the_budget(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    """γ 2: three slots a decoding sequence; a budget of 5 holds one and 2 prompt tokens."""
    done = run(
        *PLAIN[1:], trace((0, 4, 4), (0, 4, 1)),
        "speculation.acceptance={alpha: 0}", "draft.step=20 ms",
        "scheduler.max_num_batched_tokens=5",
    )  # fmt: skip
    # 0–5: prompt of 0 (4) and 1 position of 1. 5–147: round of 0 (draft 40, pass 100) and 2 of 1.
    # 147–268: round of 0 with g = min(2, left − 1) = 1: 20 + 100, and the last position of 1.
    # 268–368: the last token of 0, which nobody drafts.
    assert log(done) == [(0, 5, 368), (0, 268, 268)]
    assert done.requests["rounds"].tolist() == [3, 0]
    assert done.requests["drafted_tokens"].tolist() == [3, 0]


def test_max_num_seqs_holds_the_third_back(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(*PLAIN, trace((0, 10, 2), (0, 10, 1), (0, 10, 1)), "scheduler.max_num_seqs=2")
    # 0–20 both prompts, 1 is through; 20–130 decode of 0 with the prompt of 2.
    assert log(done) == [(0, 20, 130), (0, 20, 20), (20, 130, 130)]


def test_out_of_kv_the_youngest_recomputes(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN, trace((0, 4, 4), (0, 4, 3)),
        "kv_cache={blocks: 3, block_tokens: 4, watermark: 0}",
    )  # fmt: skip
    # 0–8: both prompts fill a block each. At 8 request 0 has 5 tokens and writes the 6th: a second
    # block, and none is left for 1, which is thrown out. Until 308 request 0 runs alone (at most
    # 7 + 1 positions in 2 blocks); the 5 positions of 1 need two blocks and there is one.
    # 308–313: recompute of 5 positions, whose pass makes the second token of 1. 313–413: its third.
    assert log(done) == [(0, 8, 308), (0, 8, 413)]
    assert done.requests["preemptions"].tolist() == [0, 1]
    assert done.requests["rounds"].tolist() == [3, 1]
    assert done.phases["replica0"]["prefill"] == pytest.approx(0.013)


def test_watermark_keeps_blocks_free_at_admission(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    """10 blocks, 2 kept free: the second request needs 4, finds 5 free and may take 3 of them."""
    rows = trace((0, 20, 2), (0, 16, 1), (0, 4, 1))
    done = run(*PLAIN, rows, "kv_cache={blocks: 10, block_tokens: 4, watermark: 0.2}")
    # 2 may not overtake 1. 0–20 prompt of 0; 20–120 its decode, with 6 blocks. At 120 all are free.
    assert log(done) == [(0, 20, 120), (120, 140, 140), (120, 140, 140)]


def test_priority_classes_are_admitted_first(run: Callable[..., Run]) -> None:
    """Twelve at once on one seat: those of the better class first, each in order of arrival."""
    done = run(
        "speculation.method=none", "workload.arrivals={rate: inf}", "workload.requests=12",
        "workload.output_tokens=1", "scheduler.policy=priority",
        "workload.classes={low: {priority: 7}, high: {priority: 3}}",
    ).requests  # fmt: skip
    order = [*(r for r in range(12) if done["cls"][r] == 1),
             *(r for r in range(12) if done["cls"][r] == 0)]  # fmt: skip
    assert 0 < done["cls"].sum() < 12
    for place, request in enumerate(order):
        assert done["admitted_s"][request] == pytest.approx(0.1 * place)


def test_clients_hang_up(run: Callable[..., Run], trace: Callable[..., str]) -> None:
    done = run(
        *PLAIN, trace((0, 10, 3), (0.001, 10, 9), (0.002, 10, 1)),
        "scheduler.max_num_seqs=1", "workload.timeout=250 ms",
    )  # fmt: skip
    # 0: 0–10, 110, 210 through. 1: 210–220 first token, hangs up at 251 in the step 220–320, whose
    # token nobody gets. 2 hung up at 252, before there was a seat at 320.
    assert log(done) == [(0, 10, 210), (210, 220, 251), (-1, -1, 252)]
    assert done.requests["status"].tolist() == [0, 1, 1]
    assert done.requests["output_tokens"].tolist() == [3, 1, 0]
    assert done.requests["rounds"].tolist() == [2, 0, 0]


def test_a_token_at_the_very_deadline_is_too_late(run: Callable[..., Run]) -> None:
    done = run("workload.output_tokens=1", "workload.timeout=100 ms", "workload.requests=1")
    assert done.requests["status"].tolist() == [1]
    assert done.requests["output_tokens"].tolist() == [0]


def test_clients_of_a_closed_loop_go_on_when_they_hang_up(run: Callable[..., Run]) -> None:
    """Three clients, one seat, 250 ms of patience, requests of 2 tokens (200 ms)."""
    done = run(
        "speculation.method=none", "workload.arrivals={streams: 3, think_time: 10 ms}",
        "workload.output_tokens=2", "workload.timeout=250 ms", "workload.requests=6",
    )  # fmt: skip
    assert [round(1000 * t, 6) for t in done.requests["arrival_s"]] == [0, 0, 0, 210, 260, 260]
    # 0: 0–200. 1: seated at 200, hangs up at 250 in its first step. 2 hangs up waiting.
    # 3 (210) is seated at 300: 300–400, hangs up at 460 in the step 400–500. 4 and 5 (260) wait
    # until 510; 4 is seated at 500 and hangs up in its first step.
    assert log(done) == [
        (0, 100, 200), (200, -1, 250), (-1, -1, 250),
        (300, 400, 460), (500, -1, 510), (-1, -1, 510),
    ]  # fmt: skip


def test_what_never_fits_is_refused_and_holds_nobody_up(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN, trace((0, 10, 1), (0, 60, 5), (0, 59, 5), (0, 10, 1)),
        "kv_cache={blocks: 16, block_tokens: 4, watermark: 0}",
    )  # fmt: skip
    # 64 positions. 60 + 5 − 1 committed before its last pass, and one written in it: 65 do not fit.
    assert done.requests["status"].tolist() == [0, 2, 0, 0]
    assert done.requests["finish_s"][1] == 0.0
    assert done.requests["output_tokens"].tolist() == [1, 0, 5, 1]


def test_prompts_beyond_the_budget_are_refused_where_they_are_not_cut(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN, trace((0, 101, 1), (0, 100, 1)),
        "scheduler.chunked_prefill=false", "scheduler.max_num_batched_tokens=100",
    )  # fmt: skip
    assert done.requests["status"].tolist() == [2, 0]


def test_completion_and_arrival_at_one_moment_in_a_closed_loop(run: Callable[..., Run]) -> None:
    """The next request of a client that is served joins the very next step of the others."""
    done = run(
        "speculation.method=none", "workload.arrivals={streams: 3}", "workload.requests=300",
        "workload.output_tokens={uniform: [1, 9]}", "scheduler.max_num_seqs=3",
        "target.step=7 ms", "target.round=7 ms",
    )  # fmt: skip
    waits_s = done.requests["admitted_s"] - done.requests["arrival_s"]
    assert waits_s.max() == 0.0
    spent_s = done.requests["finish_s"] - done.requests["arrival_s"]
    assert spent_s == pytest.approx(0.007 * done.requests["output_tokens"])


def test_gamma_is_clipped_at_the_last_tokens(run: Callable[..., Run]) -> None:
    """γ 4, α 1, 7 tokens: g = 4 commits 5, then g = min(4, 2 − 1) = 1 commits 2."""
    done = run(
        "speculation.acceptance={alpha: 1}", "speculation.gamma=4", "workload.output_tokens=7",
        "workload.requests=1", "speculation.overhead=3 ms",
    )  # fmt: skip
    # 4·20 + 100 + 3, then 20 + 100 + 3.
    assert log(done) == [(0, 183, 306)]
    # 6 tokens: the last is alone, and no draft runs for it; the round still has its overhead.
    done = run(
        "speculation.acceptance={alpha: 1}", "speculation.gamma=4", "workload.output_tokens=6",
        "workload.requests=1", "speculation.overhead=3 ms",
    )  # fmt: skip
    assert log(done) == [(0, 183, 286)]


def test_draft_prefill_comes_before_the_first_token(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    done = run(
        *PLAIN[1:], trace((0, 100, 2)), "draft.prefill={linear: {base: 5 ms, per_token: 0.1 ms}}"
    )
    # 15 ms in the draft, 100 in the target; the last token is not speculated.
    assert log(done) == [(0, 115, 215)]
    assert done.phases["replica0"]["prefill"] == pytest.approx(0.115)


def test_joint_prefill_is_priced_by_the_round(
    run: Callable[..., Run], trace: Callable[..., str]
) -> None:
    """No `prefill`: the pass costs base + per position over decodes and prompts together."""
    sets = [one for one in PLAIN if not one.startswith("target.prefill")]
    done = run(
        *sets, trace((0, 100, 3), (0.05, 50, 2)), "target.prefill=null", "target.step=null",
        "target.round={linear: {base: 100 ms, per_token: 1 ms}}",
    )  # fmt: skip
    # 0–200 prompt of 100; 200–351: 50 prompt positions and 1 decode; 351–453: 2 decodes.
    assert log(done) == [(0, 200, 453), (200, 351, 453)]


def test_long_prompts_in_chunks_do_not_push_each_other_out(run: Callable[..., Run]) -> None:
    """Room for one and a half prompts: the second waits for the first, and nothing begins twice."""
    result = run(
        "workload.arrivals={rate: inf}",
        "workload.requests=4",
        "workload.prompt_tokens=960",
        "workload.output_tokens=8",
        "target.prefill={per_token: 1 ms}",
        "scheduler.max_num_seqs=4",
        "scheduler.max_num_batched_tokens=96",
        "kv_cache={blocks: 90, block_tokens: 16, watermark: 0}",
    )
    assert result.preemptions == 0
    ended, begun = result.requests["finish_s"], result.requests["admitted_s"]
    assert (begun[1:] >= ended[:-1]).all()
