"""Answers that do not depend on the load say why."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from specplan.cli import app
from specplan.scenarios.batch import batch_notes
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

STAYS, CONSTANT = "scheduler.max_num_seqs 1: the batch stays 1", "the verify cost is constant"


def said(*arguments: str) -> str:
    ran = CliRunner().invoke(app, list(arguments))
    assert ran.exit_code == 0, ran.output
    return " ".join((ran.stdout + ran.stderr).split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "toy-20ms", "--vary", "workload.arrivals.streams=1,32"),
        ("predict", "toy-20ms", "--set", "workload.arrivals.streams=32"),
        ("compare", "toy-20ms", "toy-50ms", "--set", "workload.arrivals.streams=4",
         "--set", "workload.requests=20"),
    ],
)  # fmt: skip
def test_a_load_that_changes_nothing_says_why(arguments: tuple[str, ...]) -> None:
    text = said(*arguments)
    assert STAYS in text
    assert CONSTANT in text


def test_nothing_is_said_where_no_load_is_asked_for_or_where_it_counts() -> None:
    assert CONSTANT not in said("sweep", "toy-20ms", "--vary", "speculation.gamma=1,3")
    assert batch_notes(load("toy-20ms")) == []
    assert batch_notes(load("llama31-8b-eagle3-h100")) == []
    varied = ("workload.arrivals.streams", "scheduler.max_num_seqs", "target.round.base")
    assert batch_notes(load("toy-20ms"), varied) == []


def test_one_of_two_is_named() -> None:
    sets = ["--set", "workload.arrivals.streams=4", "--set", "workload.requests=20"]
    text = said("compare", "toy-20ms", "qwen3-8b-eagle3-h100-8streams", *sets)
    assert f"toy-20ms: {STAYS}" in text


@pytest.mark.parametrize("key", ["workload.batch", "workload.batch_size", "batch"])
def test_an_unknown_batch_points_at_what_makes_one(key: str) -> None:
    with pytest.raises(ScenarioError, match=r"arrivals\.streams.*scheduler\.max_num_seqs"):
        load("toy-20ms", [f"{key}=32"])


def test_where_no_cost_depends_on_gamma_the_best_one_is_no_finding() -> None:
    """R(γ) = R for all γ: the most tokens a round win whatever they are."""
    says = "every γ costs the same here"
    measured = (
        "--set",
        "draft.step=0 ms",
        "--set",
        "speculation.acceptance={acceptance_length: 2}",
    )
    assert says in said("predict", "toy-20ms", *measured)
    assert says in said("sweep", "toy-20ms", *measured, "--vary", "speculation.gamma=0..2")
    assert says not in said("predict", "toy-20ms")
    varied = ("--vary", "speculation.gamma=0..2", "--vary", "draft.step=1ms,2ms")
    assert says not in said("sweep", "toy-20ms", *measured, *varied)
    tokens = ("--set", "target.round={base: 100 ms, per_token: 1 ms}")
    assert says not in said("predict", "toy-20ms", *measured, *tokens)
