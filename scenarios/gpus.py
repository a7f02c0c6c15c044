"""The bundled table of GPUs (`gpus.yaml`): datasheet numbers by name, each with its source."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from specplan.models.hardware import Gpu
from specplan.scenarios.errors import Fault, ScenarioError, nearest


@cache
def gpu_table() -> dict[str, Gpu]:
    """Read all GPUs, by name."""
    text = files("specplan.scenarios").joinpath("gpus.yaml").read_text(encoding="utf-8")
    rows = YAML(typ="safe", pure=True).load(text)["gpus"]
    return {name: _gpu(name, row) for name, row in rows.items()}


def find_gpu(name: str) -> Gpu:
    """Look up one GPU; case and the difference of `-`, `_` and space do not matter.

    Raises ScenarioError for an unknown name, with the nearest known one and the list.

    >>> find_gpu("H100-SXM").bandwidth
    3350000000000.0
    """
    table, wanted = gpu_table(), gpu_name(name)
    if wanted not in table:
        close = nearest(wanted, table)
        hint = f"did you mean {close!r}? " if close else ""
        raise ScenarioError(
            Fault(f"GPU {name!r} is not known", f"{hint}known: {', '.join(table)}", field="gpu")
        )
    return table[wanted]


def gpu_name(name: str) -> str:
    """Spell a GPU's name as the table does: lower case, words joined by `-`.

    >>> gpu_name("H100 SXM"), gpu_name("RTX_4090")
    ('h100-sxm', 'rtx-4090')
    """
    return name.lower().replace("_", "-").replace(" ", "-")


def _gpu(name: str, row: dict[str, Any]) -> Gpu:
    in_gib = "memory_gib" in row
    return Gpu(
        name=name,
        memory_bytes=row["memory_gib"] * 2**30 if in_gib else row["memory_gb"] * 1e9,
        bandwidth=row["bandwidth"] * 1e9,
        flops={dtype: rate * 1e12 for dtype, rate in row["tflops"].items()},
        link_bandwidth=row["link"] * 1e9,
        source=row["source"],
    )
