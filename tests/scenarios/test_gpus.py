"""The bundled GPUs against the collected datasheets, and names that are not there."""

import csv
from pathlib import Path

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.gpus import find_gpu, gpu_table

SHEETS = Path(__file__).parents[3] / "shared" / "data" / "hardware" / "gpu_table.csv"

# Vendor datasheets, dense: GB/s, bf16 TFLOP/s.
KNOWN = {"a100-sxm": (2039, 312), "h100-sxm": (3350, 989), "l4": (300, 121), "mi300x": (5300, 1307)}


@pytest.mark.parametrize("name", KNOWN)
def test_datasheet_numbers(name: str) -> None:
    gpu = find_gpu(name)
    assert (gpu.bandwidth / 1e9, gpu.flops["bf16"] / 1e12) == KNOWN[name]


@pytest.mark.skipif(not SHEETS.is_file(), reason="shared/data/hardware is not here")
def test_every_collected_gpu_is_there_with_its_numbers() -> None:
    with SHEETS.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        name = row["gpu"].lower().removesuffix("-80gb").replace("rtx4090", "rtx-4090")
        gpu = find_gpu(name)
        assert gpu.bandwidth == pytest.approx(float(row["mem_bw_GBps"]) * 1e9)
        assert gpu.flops["bf16"] == pytest.approx(float(row["bf16_dense_TFLOPS"]) * 1e12)
        if row["fp8_dense_TFLOPS"]:
            assert gpu.flops["fp8"] == pytest.approx(float(row["fp8_dense_TFLOPS"]) * 1e12)
        assert gpu.memory_bytes == pytest.approx(float(row["memory_gb_nominal"]) * 1e9, rel=0.08)


def test_every_gpu_has_a_source_and_dense_rates() -> None:
    for gpu in gpu_table().values():
        assert gpu.source
        # a sparse number in the table would break the ratio of 2 between halved types
        assert gpu.flops.get("fp8", 2 * gpu.flops["bf16"]) == pytest.approx(
            2 * gpu.flops["bf16"], rel=0.02
        )


def test_names_are_forgiving_and_unknown_ones_refused() -> None:
    assert find_gpu("RTX_4090") is find_gpu("rtx-4090")
    with pytest.raises(
        ScenarioError, match=r"GPU 'h100-smx' is not known \(did you mean 'h100-sxm'"
    ):
        find_gpu("h100-smx")
    with pytest.raises(ScenarioError, match=r"GPU 'abacus' is not known \(known: a100-sxm"):
        find_gpu("abacus")
