"""The cost blocks: what one pass through the target or the draft costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from specplan.scenarios.fields import (
    Choice,
    Count,
    Duration,
    FilePath,
    Fraction,
    Positive,
    Section,
)

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Evidence = Literal["measured", "fitted", "datasheet", "assumed", "analytical"]
WeightDtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4", "mxfp4", "int4"]
KvDtype = Literal["fp32", "bf16", "fp16", "fp8", "int8"]


class LinearCost(Section):
    """A sum: base, and so much for each sequence, position and cached token of a pass."""

    base: Duration = Field(default=0.0, description="Every pass that does any work.")
    per_sequence: Duration = Field(default=0.0, description="Each sequence in the pass.")
    per_token: Duration = Field(
        default=0.0,
        description="Each position the pass computes: batch × width while decoding, and each "
        "prompt token while prefilling.",
    )
    per_context_token: Duration = Field(
        default=0.0, description="Each cached token read, summed over the sequences of the pass."
    )


class RooflineCost(Section):
    """The larger of compute time and memory time, from a GPU's datasheet and a model's config."""

    gpu: str = Field(description="Name in the bundled table of GPUs, such as `h100-sxm`.")
    model: FilePath = Field(
        description="The model's Hugging Face `config.json`, relative to this file."
    )
    mtp: bool = Field(
        default=False,
        description="Price the multi-token-prediction module that this config announces, and not "
        "the model: for `draft.step`.",
    )
    dtype: WeightDtype | None = Field(
        default=None, description="Type in which weights are stored; absent: what the config says."
    )
    kv_dtype: KvDtype | None = Field(
        default=None, description="Type of the KV cache; absent: what the config says."
    )
    tensor_parallel: Count = Field(default=1, description="GPUs that share one pass.")
    memory_efficiency: Fraction | None = Field(
        default=None, description="Share of the datasheet's bandwidth reached; absent: 0.90."
    )
    compute_efficiency: Fraction | None = Field(
        default=None, description="Share of the datasheet's FLOP/s reached; absent: 0.80."
    )
    slowdown: Positive = Field(
        default=1.0,
        description="Multiplies what grows with the work: how far a stack stays behind these "
        "efficiencies, as `specplan calibrate --gpu` fits it; `launch_floor` is its companion.",
    )


class CostBlock(Choice):
    """The cost of one pass; a bare duration is a constant cost."""

    alternatives: ClassVar = ("constant", "linear", "table", "roofline")
    bare: ClassVar = "constant"
    belongs: ClassVar = {
        "outside": ("table",),
        "pads_batch": ("table",),
        "relative_to": ("table",),
    }

    constant: Duration | None = Field(
        default=None, description="The same duration for every pass; `20 ms` alone says this."
    )
    linear: LinearCost | None = Field(
        default=None,
        description="A sum of terms; its keys may also stand directly in the block: "
        "`{base: 6 ms, per_token: 21 us}`.",
    )
    table: FilePath | None = Field(
        default=None,
        description="Measured pass times: CSV, JSON or Parquet with batch, width, maybe "
        "context_tokens, and ms, us or s (or ms_per_token …); relative to this file; "
        "interpolated.",
    )
    relative_to: Duration | None = Field(
        default=None,
        description="table: the plain step that a column `relative` or `relative_per_token` counts "
        "instead of a time.",
    )
    outside: Literal["refuse", "hold", "extend"] = Field(
        default="refuse",
        description="table: beyond its edges, refuse, hold the edge's value, or extend its slope.",
    )
    pads_batch: bool = Field(
        default=False,
        description="table: a batch costs what the next measured one does (captured graphs).",
    )
    roofline: RooflineCost | None = Field(
        default=None, description="Computed from a GPU's datasheet and a model's config."
    )
    launch_floor: Duration = Field(
        default=0.0, description="No pass gets below this, however little it does."
    )
    overhead: Duration = Field(default=0.0, description="Added to every pass.")
    evidence: Evidence | None = Field(
        default=None,
        description="Where the numbers are from; absent: measured for table, datasheet for "
        "roofline, assumed for others.",
    )
    source: str = Field(default="", description="Who measured or published them, and where.")

    @classmethod
    def spell_out(cls, data: Any) -> Any:
        """Let a bare duration stand for a constant, and the keys of `linear` for the block."""
        if not isinstance(data, Mapping) or any(name in data for name in cls.alternatives):
            return super().spell_out(data)
        terms = {key: data[key] for key in data if key in LinearCost.model_fields}
        if not terms:
            return data
        return {key: data[key] for key in data if key not in terms} | {"linear": terms}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Admit the keys of `linear` in the block, too."""
        block = super().__get_pydantic_json_schema__(core_schema, handler)
        *_, whole = block["anyOf"]
        kept = {
            name: field
            for name, field in whole["properties"].items()
            if name not in (*cls.alternatives, *cls.belongs)
        }
        terms = LinearCost.model_json_schema()["properties"]
        block["anyOf"].append({**whole, "properties": {**terms, **kept}, "minProperties": 1})
        return block
