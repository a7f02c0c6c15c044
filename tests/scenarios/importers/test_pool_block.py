"""Pooling is adding counts; a block can be put into a scenario and means what the files said."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.block import speculation, to_yaml
from specplan.scenarios.importers.evidence import Evidence, Source, checked, tail_rates
from specplan.scenarios.importers.pool import groups, pool
from specplan.scenarios.load import load
from specplan.scenarios.schema_acceptance import AcceptanceBlock

HISTOGRAM = st.lists(st.integers(0, 10**6), min_size=4, max_size=4).filter(any)


def of_histogram(histogram: list[int], name: str = "f") -> Evidence:
    rounds, accepted = sum(histogram), sum(j * n for j, n in enumerate(histogram))
    return checked(
        Evidence(
            Source(name, "vllm-request", line=1),
            gamma=len(histogram) - 1,
            drafting_rounds=rounds,
            drafted_tokens=rounds * (len(histogram) - 1),
            accepted_tokens=accepted,
            unconditional=tail_rates(histogram),
            histogram=tuple(map(float, histogram)),
            acceptance_length=1 + accepted / rounds,
        )
    )


def of_rates(histogram: list[int]) -> Evidence:
    full = of_histogram(histogram)
    return Evidence(
        full.source,
        gamma=full.gamma,
        drafting_rounds=full.drafting_rounds,
        drafted_tokens=full.drafted_tokens,
        accepted_tokens=full.accepted_tokens,
        unconditional=full.unconditional,
        acceptance_length=full.acceptance_length,
    )


@given(rows=st.lists(HISTOGRAM, min_size=1, max_size=5))
def test_pooled_is_the_evidence_of_all_rounds_together(rows: list[list[int]]) -> None:
    together = of_histogram([sum(column) for column in zip(*rows, strict=True)])
    for make in (of_histogram, of_rates):
        whole = pool([make(row) for row in rows])
        assert whole.acceptance_length == pytest.approx(together.acceptance_length)
        assert whole.unconditional == pytest.approx(together.unconditional)
        assert whole.drafting_rounds == together.drafting_rounds


@given(rows=st.lists(HISTOGRAM, min_size=2, max_size=4))
def test_pooled_lies_between_its_parts(rows: list[list[int]]) -> None:
    parts = [of_rates(row) for row in rows]
    tau = pool(parts).acceptance_length or 0.0
    lengths = [part.acceptance_length or 0.0 for part in parts]
    assert min(lengths) - 1e-9 <= tau <= max(lengths) + 1e-9


def test_without_rounds_there_is_no_weight() -> None:
    known = of_rates([4, 3, 2, 1])
    unknown = Evidence(Source("g", "golden-al", line=9), gamma=3, acceptance_length=2.99)
    with pytest.raises(ScenarioError, match="g:9: no number of rounds"):
        pool([known, unknown])


def test_groups_keep_models_lengths_and_views_apart() -> None:
    one = of_rates([4, 3, 2, 1])
    others = [
        Evidence(Source("f", "vllm-log"), gamma=3, acceptance_length=2.0),
        Evidence(Source("f", "vllm-request"), gamma=2, acceptance_length=2.0),
        Evidence(Source("f", "vllm-request"), model="b", gamma=3, acceptance_length=2.0),
        Evidence(Source("f", "guidellm")),
        Evidence(Source("f", "vllm-bench"), gamma=0),
    ]
    assert [len(group) for group in groups([one, one, *others])] == [2, 1, 1, 1]


@given(histogram=HISTOGRAM)
def test_block_is_accepted_by_the_scenario(histogram: list[int]) -> None:
    for one in (of_histogram(histogram), of_rates(histogram)):
        fields = YAML(typ="safe").load(to_yaml(one, [one]))["speculation"]
        assert fields == speculation(one)
        block = AcceptanceBlock.model_validate(fields["acceptance"])
        assert fields["gamma"] == len(histogram) - 1
        if block.unconditional:
            assert len(block.unconditional) == fields["gamma"]
            tau = 1 + sum(block.unconditional)
            assert tau == pytest.approx(one.acceptance_length, abs=1e-5)
        else:
            assert block.histogram == tuple(histogram)


TOY = """\
name: imported
target: {round: 100 ms, step: 100 ms}
draft: {step: 20 ms}
workload: {arrivals: {streams: 1}, requests: 10, prompt_tokens: 0, output_tokens: 128}
"""


@pytest.mark.parametrize("make", [of_histogram, of_rates])
def test_block_in_a_scenario_gives_the_tokens_per_round_of_the_files(
    tmp_path: Path, make: Callable[[list[int]], Evidence]
) -> None:
    """70, 41, 33, 26 rounds accepted 0, 1, 2, 3 (the SGLang sample): τ = 1 + 185/170."""
    one = make([70, 41, 33, 26])
    path = tmp_path / "imported.yaml"
    path.write_text(TOY + to_yaml(one, [one]))
    law = load(path).acceptance(3)
    assert law.tokens_per_round(3) == pytest.approx(1 + 185 / 170, abs=1e-5)


def test_draft_probability_stands_beside_the_acceptance() -> None:
    one = Evidence(
        Source("spec.prom", "vllm-metrics", "one scrape"),
        gamma=5,
        drafting_rounds=12022,
        draftless_rounds=28202 - 12022,
        accepted_tokens=48208,
        drafted_tokens=60110,
        acceptance_length=1 + 48208 / 12022,
    )
    assert speculation(one) == {
        "method": "draft_model",
        "gamma": 5,
        "draft_probability": 0.426282,
        "acceptance": {"acceptance_length": 5.009982, "at_gamma": 5},
    }
    text = to_yaml(one, [one])
    assert "  draft_probability: 0.426282  # 12,022 of 28,202 rounds proposed anything" in text
    assert "#   spec.prom (vllm-metrics, one scrape): 12,022 rounds with a draft," in text


def test_printed_rates_that_rise_by_their_last_digit_do_not_rise_in_the_block() -> None:
    one = checked(
        Evidence(
            Source("a.log", "vllm-log"),
            gamma=3,
            unconditional=(0.5, 0.3, 0.3004),
            acceptance_length=2.1,
            rounding=0.0005,
        )
    )
    assert speculation(one)["acceptance"] == {"unconditional": [0.5, 0.3, 0.3]}


def test_long_lists_and_strange_names_stay_yaml() -> None:
    rates = tuple(0.9**i for i in range(1, 33))
    one = Evidence(
        Source("a\nspeculation: {gamma: 9}\x1b[31m", "vllm-metrics"),
        gamma=32,
        unconditional=rates,
        acceptance_length=1 + sum(rates),
        dropped=("x: y\n# z",),
    )
    text = to_yaml(one, [one])
    assert max(map(len, text.splitlines())) <= 79
    loaded = YAML(typ="safe").load(text)
    assert list(loaded) == ["speculation"]
    assert loaded["speculation"]["acceptance"]["unconditional"] == pytest.approx(rates, abs=1e-6)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"acceptance_length": 0.8}, "acceptance length 0.8 is below 1"),
        ({"acceptance_length": inf}, "acceptance length inf is above any draft"),
        ({"gamma": 3, "acceptance_length": 4.2}, "4.2 is above γ \\+ 1 = 4"),
        ({"unconditional": (0.7, 0.74, 0.78)}, "rises at position 2 from 0.7 to 0.74"),
        ({"unconditional": (85.0, 66.3)}, "is it 85 percent"),
        ({"unconditional": (0.5, -0.1)}, "position 2 is -0.1"),
        ({"unconditional": (0.5, float("nan"))}, "position 2 is nan"),
        (
            {"unconditional": (0.85, 0.663, 0.477, 0.31), "acceptance_length": 4.301},
            "4.301 but 1 \\+ the rates per position is 3.3",
        ),
        ({"accepted_tokens": 9.0, "drafted_tokens": 3.0}, "9 tokens accepted but only 3 drafted"),
        ({"drafting_rounds": float("nan")}, "rounds with a draft is nan"),
    ],
)
def test_what_cannot_be_is_refused_with_both_numbers(broken: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        checked(Evidence(Source("f", "k", line=2), **broken))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("engine", "method", "remark"),
    [
        ("eagle3", "draft_model", False),
        ("ngram", "ngram", False),
        ("suffix", "ngram", False),
        ("dspark", "one_pass", False),
        ("", "draft_model", True),
    ],
)
def test_method_is_the_scenarios_and_a_guess_is_said(
    engine: str, method: str, remark: bool
) -> None:
    one = replace(of_rates([4, 3, 2, 1]), method=engine)
    text = to_yaml(one, [one])
    assert YAML(typ="safe").load(text)["speculation"]["method"] == method
    assert ("the file does not say" in text) == remark
