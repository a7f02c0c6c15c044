"""SGLang's steps-per-second tables (--speculative-dspark-sps-table-path): costs of whole rounds.

Two kinds: step rates at probed numbers of batch tokens, looked up at the probe below; and
bias + alpha(requests) + theta(requests + budget), interpolated and clamped at the ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from specplan.scenarios.importers.documents import Record

KIND = "sglang-sps-table"
WIDTHS = (1.0, 2.0, 4.0, 8.0)


def is_floor_table(record: Record) -> bool:
    """Return whether the object is a table of step rates by batch tokens."""
    return {"sample_batch_tokens", "sample_steps_per_sec"} <= record.value.keys()


def is_additive_table(record: Record) -> bool:
    """Return whether the object is an additive table of step times."""
    return {"bias_seconds", "bs_probes", "m_probes"} <= record.value.keys()


def read_floor_table(record: Record) -> PassTimes:
    """Return the probed steps, each as one sequence of so many positions: only tokens count there.

    Raises ScenarioError: probes that do not rise, or rates that are not positive.
    """
    tokens = list(record.numbers("sample_batch_tokens"))
    rates = list(record.numbers("sample_steps_per_sec"))
    if not tokens or len(tokens) != len(rates):
        wrong = f"{len(tokens)} token counts and {len(rates)} rates"
        raise record.fault("sample_steps_per_sec", wrong, "one rate for each token count")
    if tokens != sorted(set(tokens)) or tokens[0] < 1:
        raise record.fault("sample_batch_tokens", "not strictly rising from 1", "rising probes")
    if min(rates) <= 0:
        raise record.fault("sample_steps_per_sec", f"{min(rates):g}", "rates above 0")
    passes = tuple(Pass(1.0, at, 0.0, 1 / rate) for at, rate in zip(tokens, rates, strict=True))
    notes = (
        "a step costs what its batch tokens do, whether they are sequences or positions",
        f"SGLang takes the probe below (a floor), and nothing above {tokens[-1]:g} tokens was "
        "probed: the fit lies between the probes",
        "steps are whole rounds of the engine, drafting and overhead included",
    )
    return checked(PassTimes(record.file, KIND, passes, notes), record.file)


def additive_seconds(record: Record, requests: float, tokens: float) -> float:
    """Price a step: bias + alpha(requests) + theta(tokens), clamped beyond the probes."""
    bias = record.number("bias_seconds") or 0.0
    alpha = np.interp(requests, record.numbers("bs_probes"), record.numbers("alpha_seconds"))
    theta = np.interp(tokens, record.numbers("m_probes"), record.numbers("theta_seconds"))
    return bias + float(alpha) + float(theta)


def read_additive_table(record: Record) -> PassTimes:
    """Return steps at the probed batches and four widths, where no probe is left behind.

    Raises ScenarioError: probes and seconds that do not go together.
    """
    for probes, seconds in (("bs_probes", "alpha_seconds"), ("m_probes", "theta_seconds")):
        at, costs = record.numbers(probes), record.numbers(seconds)
        if not at or len(at) != len(costs) or list(at) != sorted(set(at)):
            wrong = f"{len(at)} probes, {len(costs)} times"
            raise record.fault(seconds, wrong, "one time for each of strictly rising probes")
    most = record.numbers("m_probes")[-1]
    passes = tuple(
        Pass(batch, width, 0.0, additive_seconds(record, batch, batch * width))
        for batch in record.numbers("bs_probes")
        for width in WIDTHS
        if batch * width <= most
    )
    notes = (
        "steps are whole rounds of the engine, drafting and overhead included",
        f"evaluated at the probed batches and widths 1, 2, 4, 8 up to {most:g} tokens",
    )
    return checked(PassTimes(record.file, KIND, passes, notes), record.file)
