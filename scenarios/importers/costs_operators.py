"""aiconfigurator's operator tables (GEMM and decode attention, ms) put together to target passes.

V(b, w, c) = layers · (Σ GEMM(m = b·w) + attention(b, c)) + head(b·w). The attention was measured
with one query a sequence, so a wider pass pays for its GEMMs only; norms, sampling and launches are
not in the tables. Latencies between the measured sizes are interpolated, never beyond them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from specplan.models.layers import Attention
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.costs_passes import Pass, PassTimes, checked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specplan.models.hardware import Model
    from specplan.models.layers import Layer

KIND = "aiconfigurator"
WIDTHS = (1, 2, 4, 8)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
CONTEXTS = (512.0, 2048.0, 8192.0)
_GEMM_TYPES = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8"}

Table = dict[tuple[float, ...], float]


def is_gemm(row: Mapping[str, Any]) -> bool:
    """Return whether the row is a GEMM of aiconfigurator."""
    return {"gemm_dtype", "m", "n", "k", "latency"} <= row.keys()


def is_attention(row: Mapping[str, Any]) -> bool:
    """Return whether the row is a decode attention of aiconfigurator."""
    return {"num_heads", "num_key_value_heads", "step", "latency", "batch_size"} <= row.keys()


@dataclass(frozen=True)
class Gemms:
    """GEMM seconds by (m, n, k), with interpolation between the measured sizes."""

    gemm: Table
    file: str

    def seconds(self, m: float, n: float, k: float) -> float:
        """Price a GEMM between the measured sizes, in seconds."""
        return self._between((m, n, k))

    def _between(self, at: tuple[float, ...]) -> float:
        """Interpolate linearly, one axis after the other, between neighbours that were measured."""
        table = self.gemm
        if at in table:
            return table[at]
        for axis, name in enumerate(("m", "n", "k")):
            others = [key for key in table if key[:axis] == at[:axis]]
            values = sorted({key[axis] for key in others})
            if at[axis] in values:
                continue
            above = bisect_left(values, at[axis])
            if above in (0, len(values)):
                span = f"{values[0]:g} to {values[-1]:g}" if values else "nothing"
                wrong = f"{name} = {at[axis]:g} is outside the table, which holds {span}"
                raise ScenarioError(Fault(wrong, "a size between the measured ones", self.file))
            low, high = values[above - 1], values[above]
            share = (at[axis] - low) / (high - low)
            ends = [self._between((*at[:axis], value, *at[axis + 1 :])) for value in (low, high)]
            return (1 - share) * ends[0] + share * ends[1]
        raise ScenarioError(Fault(f"{at} was not measured", "a table without holes", self.file))

    def layers_s(self, model: Model, rows: float) -> float:
        """Price all GEMMs of a pass over `rows` positions; a wide head in parts of equal width."""
        widest = max(n for _, n, _ in self.gemm)
        parts = ceil(model.vocab / widest)
        total = parts * self.seconds(rows, model.vocab / parts, model.hidden)
        for layer in model.layers:
            total += layer.count * sum(self.seconds(rows, n, k) for n, k in _shapes(model, layer))
        return total


def _shapes(model: Model, layer: Layer) -> list[tuple[float, float]]:
    """Return (n, k) of a layer's GEMMs: qkv, output, gate and up, down."""
    attention, inner = layer.attention, layer.mlp.intermediate
    if not isinstance(attention, Attention) or layer.mlp.experts:
        right = "a dense model with grouped-query attention"
        raise ScenarioError(Fault(f"{model.name}: experts or another attention", right))
    own = attention.heads * attention.head_dim
    qkv = own + 2 * attention.kv_heads * attention.head_dim
    up = (2 if layer.mlp.gated else 1) * inner
    return [(qkv, model.hidden), (model.hidden, own), (up, model.hidden), (model.hidden, inner)]


def read_operators(
    gemm: Sequence[Mapping[str, Any]],
    attention: Sequence[Mapping[str, Any]],
    model: Model,
    file: str,
) -> PassTimes:
    """Put passes of `model` together: batch 1…128, width 1…8, and contexts where measured.

    Raises ScenarioError: a table is missing, its types or sizes do not cover the model, or the
    model is not dense.
    """
    dtype = _GEMM_TYPES.get(model.mlp_dtype)
    heads = model.layers[0].attention
    if not isinstance(heads, Attention):
        raise ScenarioError(Fault(f"{model.name}: another attention", "grouped-query attention"))
    gemms: Table = {
        (float(row["m"]), float(row["n"]), float(row["k"])): float(row["latency"]) * 1e-3
        for row in gemm
        if row["gemm_dtype"] == dtype
    }
    kept: Table = {
        (float(row["batch_size"]), float(row["isl"]) + float(row["step"])): float(row["latency"])
        * 1e-3
        for row in attention
        if int(row["num_heads"]) == heads.heads
        and int(row["num_key_value_heads"]) == heads.kv_heads
        and int(row["head_dim"]) == heads.head_dim
        and row["kv_cache_dtype"] == _GEMM_TYPES.get(model.kv_dtype)
    }
    if not gemms or not kept:
        which = (
            f"GEMMs in {model.mlp_dtype}"
            if not gemms
            else (f"attention of {heads.heads} heads over {heads.kv_heads}, {model.kv_dtype} cache")
        )
        right = "both gemm_perf and generation_attention_perf of one GPU"
        raise ScenarioError(Fault(f"no {which} in the tables", right, file))
    table = Gemms(gemms, file)
    by_rows = {
        rows: table.layers_s(model, rows)
        for rows in sorted({batch * width for batch in BATCHES for width in WIDTHS})
    }
    passes = tuple(
        Pass(
            batch,
            width,
            context,
            by_rows[batch * width] + model.layer_count * kept[batch, context],
        )
        for batch in BATCHES
        for context in CONTEXTS
        for width in WIDTHS
        if (batch, context) in kept
    )
    notes = (
        f"put together from operators for {model.name}: GEMMs and decode attention, no norms, "
        "sampling or launches",
        "attention was measured with one query a sequence: wider passes pay for their GEMMs only",
    )
    return checked(PassTimes(file, KIND, passes, notes, evidence="analytical"), file)
