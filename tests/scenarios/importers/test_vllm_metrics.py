"""Prometheus scrapes: what is summed, what is left out, what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.collect import read_evidence
from specplan.scenarios.importers.evidence import Evidence
from specplan.scenarios.importers.vllm_metrics import evidence, read_scrape, subtract


def sample(name: str, value: object, model: str = "m", **labels: str) -> str:
    pairs = ",".join(f'{key}="{text}"' for key, text in {"model_name": model, **labels}.items())
    return f"vllm:{name}{{{pairs}}} {value}\n"


def spec(drafts: float, drafted: float, accepted: float, *by_position: float, **more: str) -> str:
    text = sample("spec_decode_num_drafts_total", drafts, **more)
    text += sample("spec_decode_num_draft_tokens_total", drafted, **more)
    text += sample("spec_decode_num_accepted_tokens_total", accepted, **more)
    for position, count in enumerate(by_position):
        text += sample(
            "spec_decode_num_accepted_tokens_per_pos_total", count, position=str(position), **more
        )
    return text


def histogram(name: str, total: float, count: float) -> str:
    return sample(f"{name}_sum", total) + sample(f"{name}_count", count)


def one(text: str, model: str = "") -> Evidence:
    (found,) = evidence(read_scrape(text, "m.prom", model))
    return found


def test_round_time_is_itl_and_token_time_is_not() -> None:
    """FORMATS.md A1, L31-8B-I_eagle3: 24,337 drafts = ITL count, 18.941 ms a round, 6.006 TPOT."""
    text = spec(24337, 3 * 24337, 53006)
    text += histogram("inter_token_latency_seconds", 24337 * 18.941e-3, 24337)
    text += histogram("request_time_per_output_token_seconds", 200 * 6.006e-3, 200)
    found = one(text)
    assert found.draftless_rounds == 0
    assert found.acceptance_length == pytest.approx(3.178, abs=5e-4)
    assert found.latency.round_s == pytest.approx(18.941e-3)
    assert found.latency.token_s == pytest.approx(6.006e-3)


def test_ngram_rounds_without_a_draft() -> None:
    """FORMATS.md A1: 12,022 of 28,202 rounds draft; 5.01 given a draft is 2.71 over all."""
    text = spec(12022, 5 * 12022, round(4.01 * 12022))
    text += histogram("inter_token_latency_seconds", 300.0, 28202)
    found = one(text)
    assert found.draftless_rounds == 28202 - 12022
    assert found.draft_probability == pytest.approx(0.43, abs=5e-3)
    assert found.acceptance_length == pytest.approx(5.01, abs=5e-3)
    assert found.tokens_per_round == pytest.approx(2.71, abs=5e-3)


def test_more_drafts_than_gaps_is_said_not_clamped() -> None:
    found = one(spec(100, 300, 150) + histogram("inter_token_latency_seconds", 1.0, 60))
    assert found.draftless_rounds is None
    assert any("only 60 gaps" in warning for warning in found.warnings)


def test_exponents_timestamps_label_order_and_escapes() -> None:
    text = (
        "# HELP vllm:spec_decode_num_drafts_total Number\n# TYPE vllm:spec_decode_num_drafts_total "
        'counter\nvllm:spec_decode_num_drafts_total{model_name="a \\"b\\"/c d",engine="0"} '
        "7.136001e+06 1756736798734\n"
        'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="a \\"b\\"/c d"} 2.1e7\n'
        'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="a \\"b\\"/c d"} 1e7\n'
    )
    found = one(text)
    assert found.model == 'a "b"/c d'
    assert found.drafting_rounds == 7136001


def test_suffix_positions_beyond_the_longest_draft_are_zero() -> None:
    """FORMATS.md A1: suffix decoding exports all 32 positions, the longest draft had 12."""
    counts = [400 - 30 * i for i in range(12)] + [0] * 20
    found = one(spec(1000, 6000, sum(counts), *counts))
    assert found.gamma == 32
    assert found.unconditional[12:] == (0.0,) * 20


def test_models_are_not_mixed() -> None:
    text = spec(100, 300, 150, model="a") + spec(10, 30, 3, model="b")
    with pytest.raises(ScenarioError, match="2 models in one scrape"):
        one(text)
    assert one(text, "b").acceptance_length == pytest.approx(1.3)
    with pytest.raises(ScenarioError, match="no model 'c' in the scrape"):
        one(text, "c")


def test_other_families_are_ignored() -> None:
    text = (
        "# TYPE python_gc_objects_collected_total counter\n"
        'python_gc_objects_collected_total{generation="0"} 4.0\n'
        + sample("iteration_tokens_total_bucket", 3, le="8")
        + histogram("iteration_tokens_total", 10, 3)
        + spec(10, 30, 15)
    )
    assert one(text).acceptance_length == pytest.approx(2.5)


def test_v0_names_are_refused_with_the_gauge() -> None:
    """FORMATS.md A1: V0's counters are cumulative of cumulative, its gauges are right."""
    text = (
        'vllm:spec_decode_draft_acceptance_rate{model_name="m"} 0.607\n'
        'vllm:spec_decode_efficiency{model_name="m"} 0.51\n'
        'vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 8.3198416e+07\n'
        'vllm:spec_decode_num_draft_tokens_total{model_name="m"} 9e7\n'
        'vllm:spec_decode_num_emitted_tokens_total{model_name="m"} 63384\n'
    )
    with pytest.raises(ScenarioError, match=r"use the gauges.*0\.607.*efficiency 0\.510"):
        one(text)


def test_llamacpp_uses_the_same_names() -> None:
    text = spec(100, 300, 150, 80, 50, 20).replace("vllm:", "llamacpp:").replace("model_name", "x")
    found = one(text)
    assert found.source.kind == "llamacpp-metrics"
    assert found.unconditional == (0.8, 0.5, 0.2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (spec(0, 0, 0), "0 rounds with a draft"),
        (spec(10, 30, 40), "40 tokens accepted but only 30 drafted"),
        (spec(10, 40, 25, 9, 8, 8, 0, 1), "add up to 26 but the counter of accepted tokens is 25"),
        (spec(10, 40, 25, 8, 9, 8), "acceptance rises at position 2 from 0.8 to 0.9"),
        (spec(10, 60, 25, 9, 8, 8), "60 tokens drafted in 10 rounds of γ = 3"),
        (spec(-1, 3, 1), "counter is -1"),
        (spec(float("nan"), 3, 1), "counter is nan"),
        (spec(float("inf"), 3, 1), "counter is inf"),
        (spec(10, 30, 15).split("\n", 1)[0] + "\n", "cut short: the counter is absent"),
        (spec(10, 30, 15) + "vllm:spec_dec", "not a Prometheus sample"),
        ("vllm:num_requests_running 3\n", r"no vllm:spec_decode_\* counters"),
        (sample("diffusion_num_drafts_total", 3), "a diffusion model's scrape"),
        (spec(10, 30, 5) + sample("spec_decode_num_accepted_tokens_per_pos_total", 5, position="x"),
         "position 'x'"),
    ],
)  # fmt: skip
def test_refused(text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        one(text)
    assert all(fault.file == "m.prom" for fault in caught.value.faults)
    if "spec_decode_num_drafts" in text:
        assert all(fault.line for fault in caught.value.faults)


def test_two_scrapes_need_a_word(tmp_path: Path) -> None:
    for name, text in (("a", spec(10, 30, 15)), ("b", spec(110, 330, 165))):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(ScenarioError, match="would count twice"):
        read_evidence(paths)
    (between,) = read_evidence(paths, delta=True)
    assert between.drafting_rounds == 100
    assert [e.drafting_rounds for e in read_evidence(paths, separate=True)] == [10, 110]
    with pytest.raises(ScenarioError, match="--delta with 1 scrapes"):
        read_evidence(paths[:1], delta=True)


def test_an_engine_that_appears_later_counts_from_zero() -> None:
    before = read_scrape(spec(10, 30, 15, engine="0"), "a")
    after = read_scrape(spec(20, 60, 30, engine="0") + spec(5, 15, 9, engine="1"), "b")
    since, warnings = subtract(before, after)
    assert not warnings
    assert since.total("spec_decode_num_drafts_total") == 15


COUNTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=8)


@given(first=COUNTS, more=COUNTS)
def test_difference_of_two_scrapes_is_the_traffic_between(
    first: list[int], more: list[int]
) -> None:
    """Whatever was counted before, the difference is what the second interval alone would say."""
    engines = min(len(first), len(more))

    def scrape(counts: list[int]) -> str:
        return "".join(
            spec(n + 1, 3 * (n + 1), n // 2, engine=str(e)) for e, n in enumerate(counts)
        )

    total = "".join(
        spec(a + b + 2, 3 * (a + b + 2), a // 2 + b // 2, engine=str(e))
        for e, (a, b) in enumerate(zip(first[:engines], more[:engines], strict=True))
    )
    since, warnings = subtract(read_scrape(scrape(first[:engines]), "a"), read_scrape(total, "b"))
    (between,) = evidence(since, delta_from="a", warnings=warnings)
    alone = one(scrape(more[:engines]))
    assert between.drafting_rounds == alone.drafting_rounds
    assert between.acceptance_length == pytest.approx(alone.acceptance_length)
