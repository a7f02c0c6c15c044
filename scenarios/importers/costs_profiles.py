"""Step times by batch (splitwise-sim) and LLMServingSim's profile of one layer's operators."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specplan.models.hardware import Model

_EVERY_LAYER = {
    "layernorm": 2,  # before attention and before the feed-forward part
    "qkv_proj": 1,
    "rotary_emb": 1,
    "o_proj": 1,
    "gate_up_proj": 1,
    "act_fn": 1,
    "down_proj": 1,
}
_ONCE = ("embedding", "final_layernorm")
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
_WIDTHS = (1, 2, 4, 8)
_CONTEXTS = (512.0, 2048.0, 8192.0)


def is_splitwise(row: Mapping[str, Any]) -> bool:
    """Return whether the row is of splitwise-sim's performance model."""
    return {"token_time", "prompt_size", "batch_size", "tensor_parallel"} <= row.keys()


def read_splitwise(rows: Sequence[Mapping[str, Any]], file: str) -> list[PassTimes]:
    """Return the median decode step of each batch and prompt, one result for each system.

    The context of a step is the prompt and half of the output; times are in milliseconds.
    """
    repeats: dict[str, dict[tuple[float, float], list[float]]] = {}
    gpus: dict[str, int] = {}
    for row in rows:
        system = f"{row['model']} {row['hardware']} tp{row['tensor_parallel']}"
        place = (float(row["batch_size"]), float(row["prompt_size"]) + float(row["token_size"]) / 2)
        gpus[system] = int(row["tensor_parallel"])
        repeats.setdefault(system, {}).setdefault(place, []).append(float(row["token_time"]))
    notes = (
        "medians over repeats; an older stack without captured graphs",
        "plain steps only: what a wider verify pass costs was not measured",
    )
    return [
        checked(
            PassTimes(
                file,
                "splitwise",
                tuple(
                    Pass(batch, 1.0, context, median(times) * 1e-3)
                    for (batch, context), times in by_place.items()
                ),
                notes,
                label=system,
                tensor_parallel=gpus[system],
            ),
            file,
        )
        for system, by_place in repeats.items()
    ]


def is_profile(row: Mapping[str, Any]) -> bool:
    """Return whether the row is of one of LLMServingSim's three profiles."""
    names = row.keys()
    return "time_us" in names and bool(
        {"layer", "tokens"} <= names or {"layer", "sequences"} <= names or "n_decode" in names
    )


class Profile:
    """Microseconds of one layer's operators, interpolated between profiled sizes."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], file: str) -> None:
        self.file = file
        self.curves: dict[str, list[tuple[float, float]]] = {}
        self.attention: dict[float, list[tuple[float, float]]] = {}
        for row in rows:
            us = float(row["time_us"])
            if "n_decode" in row:
                if float(row["prefill_chunk"]) == 0:
                    point = (float(row["kv_decode"]), us)
                    self.attention.setdefault(float(row["n_decode"]), []).append(point)
            else:
                size = float(row["tokens"] if "tokens" in row else row["sequences"])
                self.curves.setdefault(str(row["layer"]), []).append((size, us))
        names = (*_EVERY_LAYER, *_ONCE, "lm_head", "sampler")
        missing = [name for name in names if name not in self.curves]
        if missing or not self.attention:
            lacking = ", ".join(missing) or "attention"
            right = "dense.csv, per_sequence.csv and attention.csv of one folder"
            raise ScenarioError(Fault(f"no rows of {lacking}", right, file))

    def us(self, name: str, size: float) -> float:
        """Read an operator's time at a size; refuses sizes that were not profiled."""
        return self._at(sorted(self.curves[name]), size, name)

    def attention_us(self, batch: float, context: float) -> float:
        """Read one layer's decode attention over `context` cached tokens a sequence."""
        if batch not in self.attention:
            right = f"profiled: {', '.join(f'{b:g}' for b in sorted(self.attention))}"
            raise ScenarioError(Fault(f"attention at batch {batch:g}", right, self.file))
        return self._at(sorted(self.attention[batch]), context, f"attention at batch {batch:g}")

    def _at(self, curve: list[tuple[float, float]], size: float, name: str) -> float:
        sizes, times = zip(*curve, strict=True)
        if not sizes[0] <= size <= sizes[-1]:
            right = f"{sizes[0]:g} to {sizes[-1]:g} was profiled"
            raise ScenarioError(Fault(f"{name} of size {size:g}", right, self.file))
        return float(np.interp(size, sizes, times))

    def pass_s(self, layers: int, batch: float, width: float, context: float) -> float:
        """Price a whole pass: `layers` times one layer, embedding, head and sampler, in seconds."""
        rows = batch * width
        layer = sum(count * self.us(name, rows) for name, count in _EVERY_LAYER.items())
        once = sum(self.us(name, rows) for name in _ONCE)
        head = self.us("lm_head", rows) + self.us("sampler", rows)
        return 1e-6 * (layers * (layer + self.attention_us(batch, context)) + once + head)


def read_profile(rows: Sequence[Mapping[str, Any]], model: Model, file: str) -> PassTimes:
    """Put whole passes together from the profile of one layer.

    Batches 1…128, widths 1…8 and three contexts, where the profile reaches. Raises ScenarioError:
    one of the three files is missing.
    """
    profile = Profile(rows, file)
    most = min(max(size for size, _ in curve) for curve in profile.curves.values())
    passes = tuple(
        Pass(batch, width, context, profile.pass_s(model.layer_count, batch, width, context))
        for context in _CONTEXTS
        for batch in _BATCHES
        for width in _WIDTHS
        if batch * width <= most
    )
    notes = (
        f"{model.layer_count} times the profile of one layer, run eagerly: launches are not in it",
        "decode attention was profiled with one query a sequence: wider passes pay for the rest "
        "only",
    )
    return checked(PassTimes(file, "llmservingsim", passes, notes, evidence="analytical"), file)
