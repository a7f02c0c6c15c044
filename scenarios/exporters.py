"""Engine settings that reproduce a scenario's acceptance on real hardware without a trained draft.

Every engine can accept draft tokens at random instead of by the target's law; each has its own
knob, its own bonus convention and its own law of the accepted length (FORMATS.md A6–A9).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from specplan.models.synthetic import engine_setting, engine_unconditional
from specplan.scenarios.engines import engine_name
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.synthetic import (
    Export,
    Wanted,
    differences,
    one_pass_differences,
    tree_differences,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DIGITS = 6
"""Decimals written for rates and lengths: finer than any run can tell."""


def export(what: Wanted, engine: str) -> tuple[Export, ...]:
    """Return the ways to tell `engine` (a key of ENGINES), the closest law first.

    Raises ScenarioError for an unknown engine or a method that it cannot run.
    """
    return ENGINES[engine_name(engine, ENGINES)](what)


def _number(value: float) -> float:
    return round(value, DIGITS)


def _rates(what: Wanted) -> list[float]:
    return [_number(float(rate)) for rate in what.unconditional]


def _vllm(what: Wanted) -> tuple[Export, ...]:
    base: dict[str, object] = {
        "draft_model": {"method": "draft_model", "model": what.draft},
        "one_pass": {"method": "draft_model", "model": what.draft, "parallel_drafting": True},
        "ngram": {"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 2},
        "tree": {"method": "draft_model", "model": what.draft},
    }[what.method]  # type: ignore[assignment]
    tau = _number(what.acceptance_length)
    length = engine_setting("vllm", tau)
    modes: tuple[tuple[str, str, object, Floats], ...] = (
        ("rates", "synthetic_acceptance_rates", _rates(what), what.unconditional),
        (
            "length",
            "synthetic_acceptance_length",
            length,
            engine_unconditional("vllm", tau, what.gamma),
        ),
    )
    made = []
    for mode, key, value, law in modes:
        config = {
            **base,
            "num_speculative_tokens": what.gamma,
            "rejection_sample_method": "synthetic",
            key: value,
        }
        told = [*differences(what, law), *tree_differences(what)]
        made.append(
            Export(
                "vllm",
                mode,
                {},
                (f"--speculative-config '{json.dumps(config)}'",),
                f"{key} = {json.dumps(value)}",
                "unconditional rates of the drafts alone"
                if mode == "rates"
                else "the length counts the bonus token",
                law,
                tuple(told),
            )
        )
    return tuple(made)


def _sglang(what: Wanted) -> tuple[Export, ...]:
    algorithm = {"ngram": "NGRAM", "one_pass": "DFLASH", "tree": "EAGLE3"}
    tau = _number(what.acceptance_length)
    length, law = engine_setting("sglang", tau), engine_unconditional("sglang", tau, what.gamma)
    arguments = [f"--speculative-algorithm {algorithm.get(what.method, 'STANDALONE')}"]
    if what.method != "ngram":
        arguments.append(f"--speculative-draft-model-path {what.draft}")
    told = [
        *differences(what, law),
        "one length is drawn for the whole batch of an engine step, so sequences accept in step:"
        " averages hold, but a batch fluctuates more than independent requests would",
        "the default SIMULATE_ACC_METHOD, multinomial, rounds a normal of deviation 1 clipped to"
        " [1, steps + 1] and misses the mean near both ends: match-expected is set",
        "builds before the SGLANG_ prefix read SIMULATE_ACC_LEN and SIMULATE_ACC_METHOD",
    ]
    if not what.is_chain:
        told.append(
            "EAGLE chooses the nodes of its tree itself, round by round: as many as here, with as"
            " many choices a node as here at most"
        )
    return (
        Export(
            "sglang",
            "match-expected",
            {
                "SGLANG_SIMULATE_ACC_LEN": f"{length!r}",
                "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            },
            (
                *arguments,
                f"--speculative-num-steps {what.gamma}",
                f"--speculative-eagle-topk {what.tree_width}",
                f"--speculative-num-draft-tokens {(what.tree_nodes or what.gamma) + 1}",
            ),
            f"SGLANG_SIMULATE_ACC_LEN = {length!r}",
            "the length counts the bonus token; num-draft-tokens counts the root (gamma + 1)",
            law,
            tuple(told),
        ),
    )


def _tensorrt_llm(what: Wanted) -> tuple[Export, ...]:
    tau = _number(what.acceptance_length)
    forced = _number(engine_setting("tensorrt-llm", tau))
    if forced == 0:
        wrong = "0 accepted tokens cannot be forced: the variable's 0 means off"
        raise ScenarioError(Fault(wrong, "an acceptance length above 1", field="tensorrt-llm"))
    law = engine_unconditional("tensorrt-llm", tau, what.gamma)
    told = [*differences(what, law), *tree_differences(what), *one_pass_differences(what)]
    if forced == int(forced):
        setting = f"{forced:.0f}"
    else:
        setting = f"{forced!r}"
        told.append(
            "a fractional value needs a recent one-model worker; the two-model path and older"
            f" builds read {setting} as 0 (off)"
        )
    told.append("key names of speculative_config vary by version: check them against yours")
    kind = {"ngram": "NGram", "draft_model": "DraftTarget"}.get(what.method, "Eagle3")
    model = "" if what.method == "ngram" else f", speculative_model: {what.draft}"
    return (
        Export(
            "tensorrt-llm",
            "forced",
            {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": setting},
            (),
            f"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS = {setting}",
            "counts accepted drafts only: acceptance length − 1",
            law,
            tuple(told),
            f"speculative_config: {{decoding_type: {kind}, max_draft_len: {what.gamma}{model}}}",
        ),
    )


def _llama_cpp(what: Wanted) -> tuple[Export, ...]:
    tau = _number(what.acceptance_length)
    length, law = (
        engine_setting("llama.cpp", tau),
        engine_unconditional("llama.cpp", tau, what.gamma),
    )
    drafting: tuple[str, ...] = ("--spec-type ngram-simple",)
    if what.method != "ngram":
        drafting = (f"--model-draft {what.draft}", "--spec-type draft-simple")
    # p-min above 0 would stop drafting early, and then fewer than γ tokens are proposed.
    drafting += (f"--spec-draft-n-max {what.gamma}", "--spec-draft-p-min 0")
    listed = ",".join(f"{rate!r}" for rate in _rates(what))
    modes = (
        ("rates", f"--spec-synth-rates {listed}", what.unconditional),
        ("length", f"--spec-synth-len {length!r}", law),
    )
    return tuple(
        Export(
            "llama.cpp",
            mode,
            {},
            (*drafting, flag),
            flag,
            "unconditional rates of the drafts alone"
            if mode == "rates"
            else "the length counts the target's own token (the bonus)",
            law,
            (*differences(what, law), *tree_differences(what), *one_pass_differences(what)),
        )
        for mode, flag, law in modes
    )


ENGINES: dict[str, Callable[[Wanted], tuple[Export, ...]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "tensorrt-llm": _tensorrt_llm,
    "llama.cpp": _llama_cpp,
}
"""Engine name → the ways to tell it; a new engine is one function and one line here."""
