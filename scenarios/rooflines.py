"""A roofline cost from what a scenario names: a GPU and a model's config file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.models import cost as costs
from specplan.models.roofline import Efficiency
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.gpus import find_gpu
from specplan.scenarios.model_config import mtp_head, read_model

if TYPE_CHECKING:
    from pathlib import Path

    from specplan.models.cost import Cost


def roofline_cost(
    gpu: str,
    config: Path,
    *,
    mtp: bool = False,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    tensor_parallel: int = 1,
    compute_efficiency: float | None = None,
    memory_efficiency: float | None = None,
    slowdown: float = 1.0,
) -> Cost:
    """Price passes of the model in `config` on `tensor_parallel` GPUs by the roofline.

    `mtp` prices the multi-token-prediction module that the config announces instead. `dtype` None
    keeps what the config says; an efficiency of None is the documented default of
    `models.roofline.Efficiency`. One that is given holds for every type and for experts.

    Raises ScenarioError for an unknown GPU or model type, missing config fields, and a
    tensor-parallel size that does not divide the heads.
    """
    try:
        efficiency = Efficiency()
        if compute_efficiency is not None:
            efficiency = replace(
                efficiency, compute=compute_efficiency, compute_narrow=compute_efficiency
            )
        if memory_efficiency is not None:
            efficiency = replace(efficiency, memory=memory_efficiency, experts=memory_efficiency)
        return costs.roofline(
            find_gpu(gpu),
            mtp_head(config) if mtp else read_model(config),
            dtype,
            kv_dtype,
            tensor_parallel=tensor_parallel,
            efficiency=efficiency,
            slowdown=slowdown,
        )
    except ValueError as error:
        wrong, _, right = str(error).rstrip(")").partition(" (")
        raise ScenarioError(Fault(wrong, right, file=str(config))) from error
