"""Laws of readings: what goes in under one name comes out under every other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.models.counts import Counts, read_counts
from specplan.models.evidence import Evidence
from specplan.models.quantities import quantities
from specplan.models.readings import ContradictionError, interpret
from specplan.models.statements import ENGINES, READINGS, Figure, Statement

ALPHAS = st.floats(0.0, 1.0)
GAMMAS = st.integers(1, 16)


def one(**stated: object) -> dict[str, object]:
    [reading] = interpret(Evidence(**stated))  # type: ignore[arg-type]
    return quantities(reading)


@given(ALPHAS, GAMMAS)
def test_every_scalar_gives_back_every_other(alpha: float, gamma: int) -> None:
    first = one(gamma=gamma, figures={"alpha": Figure(alpha)})
    for name in ("acceptance_length", "accepted_per_round", "acceptance_rate", "efficiency"):
        again = one(gamma=gamma, figures={name: Figure(first[name])})  # type: ignore[arg-type]
        assert again["acceptance_length"] == pytest.approx(first["acceptance_length"], abs=1e-9)
        assert again["acceptance_rate"] == pytest.approx(first["acceptance_rate"], abs=1e-9)
        # α from τ is badly conditioned near 0 and 1, τ from that α is not
        assert again["unconditional"] == pytest.approx(first["unconditional"], abs=1e-6)


@given(st.lists(ALPHAS, min_size=1, max_size=12))
def test_lists_give_back_each_other(conditional: list[float]) -> None:
    first = one(lists={"conditional": tuple(Figure(value) for value in conditional)})
    listed = first["unconditional"]
    assert isinstance(listed, list)
    again = one(lists={"unconditional": tuple(Figure(value) for value in listed)})
    assert again["acceptance_length"] == pytest.approx(first["acceptance_length"], abs=1e-12)
    assert again["tokens_per_round_variance"] == pytest.approx(
        first["tokens_per_round_variance"], abs=1e-9
    )


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=9).filter(any))
def test_a_histogram_is_its_counts(histogram: list[int]) -> None:
    rounds, gamma = sum(histogram), len(histogram) - 1
    accepted = sum(k * count for k, count in enumerate(histogram))
    listed = one(histogram=tuple(map(float, histogram)))
    counted = one(gamma=gamma, counts=Counts(accepted=accepted, drafts=rounds))
    assert listed["acceptance_length"] == pytest.approx(1 + accepted / rounds)
    assert counted["acceptance_length"] == pytest.approx(1 + accepted / rounds)
    assert listed["acceptance_rate"] == pytest.approx(accepted / rounds / gamma)


@given(GAMMAS, st.integers(1, 10**6), st.data())
def test_counts_agree_however_counted(gamma: int, rounds: int, data: st.DataObject) -> None:
    accepted = data.draw(st.integers(0, gamma * rounds))
    counts = Counts(accepted=accepted, drafted=gamma * rounds)
    whole = Counts(accepted=accepted, drafted=gamma * rounds, emitted=rounds + accepted)
    by_gamma, by_output = read_counts(counts, gamma), read_counts(whole, gamma)
    assert by_gamma.acceptance_length == pytest.approx(1 + accepted / rounds)
    assert by_output.acceptance_length == pytest.approx(1 + accepted / rounds)
    assert by_output.warnings == ()


@given(GAMMAS, ALPHAS, ALPHAS)
def test_contradictions_name_both_numbers(gamma: int, alpha: float, share: float) -> None:
    stated = {"alpha": Figure(alpha), "acceptance_rate": Figure(share)}
    one_tau = Statement("alpha", "alpha", (Figure(alpha),)).tokens_per_round(gamma)
    two_tau = 1 + gamma * share
    assert one_tau is not None
    apart = abs(one_tau - two_tau) / max(one_tau, two_tau)
    if apart > 0.06:
        with pytest.raises(ContradictionError) as caught:
            interpret(Evidence(gamma=gamma, figures=stated))
        assert f"{one_tau:.4g}" in str(caught.value.args[0])
        assert f"{two_tau:.4g}" in str(caught.value.args[0])
    elif apart < 0.04:
        [reading] = interpret(Evidence(gamma=gamma, figures=stated))
        assert reading.disagreement <= 0.05


@pytest.mark.parametrize("gamma", [1, 3, 7])
def test_one_past_gamma_plus_one_is_refused(gamma: int) -> None:
    with pytest.raises(ContradictionError, match=f"gamma \\+ 1 = {gamma + 1}"):
        interpret(Evidence(gamma=gamma, figures={"acceptance_length": Figure(gamma + 1.01)}))


def test_at_gamma_one_both_lists_say_the_same() -> None:
    [reading] = interpret(Evidence(lists={"positions": (Figure(0.47),)}))
    assert reading.acceptance_length == pytest.approx(1.47)


def test_print_rounding_is_no_contradiction() -> None:
    # .7904 printed as .79; τ of .79 at γ 4 is 3.298, of .7904 it is 3.300
    stated = {"acceptance_length": Figure(3.30, 0.005), "alpha": Figure(0.79, 0.005)}
    [reading] = interpret(Evidence(gamma=4, figures=stated))
    assert reading.disagreement == 0


def test_a_difference_of_one_token_is_the_bonus() -> None:
    counts = Counts(accepted=1500, drafts=1000)
    with pytest.raises(ContradictionError, match="one of them counts the bonus"):
        interpret(Evidence(gamma=3, counts=counts, figures={"acceptance_length": Figure(1.5)}))


def test_nothing_stated_is_refused() -> None:
    with pytest.raises(ValueError, match="no acceptance figure is stated"):
        interpret(Evidence(gamma=4))


def test_every_engine_narrows_known_figures_to_known_readings() -> None:
    for readings in ENGINES.values():
        for name, allowed in readings.items():
            assert set(allowed) <= set(READINGS[name])


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"accepted": 5.0, "drafted": 4.0}, "accepted 5 exceeds drafted 4"),
        ({"accepted": -1.0}, "accepted is -1"),
        ({"drafts": float("inf")}, "drafts is inf"),
    ],
)
def test_impossible_counts_are_refused(counts: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Counts(**counts)


def test_more_accepted_than_output_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves -10 of 90 output tokens"):
        read_counts(Counts(accepted=100, drafted=200, emitted=90), 4)
