"""The roofline with documented efficiencies against measured steps: nothing fitted, then two rows.

Apart, as the stacks differ: the modern engines of silicon_refs.csv, the RTX 4090's kernels, and the
old stack of Splitwise, whose launch overhead no kernel measurement knows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from specplan.models.cost import Cost
from specplan.models.hardware import Model
from specplan.models.layers import Attention, Layer, Mlp
from specplan.models.roofline import Efficiency, Roofline, roofline_of
from specplan.models.roofline_fit import fit_roofline
from specplan.scenarios.gpus import find_gpu, gpu_table
from specplan.scenarios.model_config import read_model

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="shared/data is not here")

LLAMA_2_70B = Model("Llama-2-70B", 8192, 32000, (Layer(Attention(64, 8, 128), Mlp(28672), 80),))
BLOOM_MLP = Mlp(57344, gated=False)
BLOOM = Model("BLOOM-176B", 14336, 250880, (Layer(Attention(112, 112, 128), BLOOM_MLP, 70),), True)


def shape(gpu: str, model: Model, shards: int) -> Roofline:
    return roofline_of(find_gpu(gpu), model, shards, Efficiency())


def seconds(shape: Roofline, batch: float, context: float, prefill: float = 0) -> float:
    return float(Cost("roofline", shape.coefficients()).seconds(batch, 1, context, prefill))


def tpot_s(row: pd.Series, shape: Roofline, batch: int) -> float:
    """Time per token of a closed loop of `batch` streams: the step and the others' prefills.

    While one answer is produced every other stream is prefilled once. Where all start together (a
    wave: the measured TTFT lies between the mean and the end of prefilling all), half of that comes
    before the first token.
    """
    context = row.isl + row.osl / 2
    step = seconds(shape, batch, context)
    if row["mode"] == "disagg":
        return step
    prefill = seconds(shape, batch, context, row.isl) - step
    together = (batch + 1) / 2 * prefill <= row.silicon_ttft_ms / 1e3 <= batch * prefill
    return float(step + (batch - 1) / row.osl * prefill * (0.5 if together else 1.0))


@pytest.fixture(scope="module")
def dense_errors() -> pd.Series:
    table = pd.read_csv(DATA / "steptime" / "aiconfigurator" / "silicon_refs.csv")
    rows = table[table.model_path == "Qwen/Qwen3-32B"]  # the dense rows
    config = read_model(DATA / "models" / "Qwen--Qwen3-32B_config.json")
    errors = {}
    for _, row in rows.iterrows():
        disagg = row["mode"] == "disagg"
        batch = int(row.decode_batch_size if disagg else row.batch_size)
        shards = int(row.decode_tp_size if disagg else row.tp_size)
        dtype = row.precision if isinstance(row.precision, str) else "bf16"
        gpu = row.system.replace("_", "-")
        predicted = tpot_s(row, shape(gpu, config.with_dtype(dtype), shards), batch)
        key = f"{row.system} {row.backend} {row['mode']}"
        errors[key] = predicted * 1e3 / row.silicon_tpot_ms - 1
    return pd.Series(errors)


def test_dense_rows_of_modern_engines(dense_errors: pd.Series) -> None:
    """Rows whose concurrency was recorded: median ≤ 15 %, p90 ≤ 35 %; the other two are no steps.

    Two of the five dense rows come from a gap analysis without `silicon_concurrency`. What is in
    their batch columns is what the configurator chose, not what ran: their first tokens took 16 and
    54 s, a hundred times one prefill, so far more requests were there than places. A time per token
    that holds waiting for a place is no step, and no roofline can tell how many waited: 424 streams
    on 8 H100 are said to take 113 ms a step, where weights and cache can be read in 21 ms. So they
    are not comparable, and p90 over all five (51 %) is a figure of those two, not of the roofline.
    """
    assert len(dense_errors) == 5
    unrecorded = ["gb200 trtllm agg", "h100_sxm sglang disagg"]
    recorded = dense_errors.drop(unrecorded).abs()
    assert recorded.median() <= 0.15
    assert np.quantile(recorded, 0.9) <= 0.35
    assert dense_errors.abs().median() <= 0.15  # with them, too
    assert np.quantile(dense_errors.abs(), 0.9) > 0.35  # with them, not: nobody shall claim it
    assert (dense_errors[unrecorded] < -0.2).all()  # both are slower than a step of their batch


def test_which_dense_rows_recorded_their_concurrency() -> None:
    table = pd.read_csv(DATA / "steptime" / "aiconfigurator" / "silicon_refs.csv")
    rows = table[table.model_path == "Qwen/Qwen3-32B"]
    stated = rows.silicon_data_source.str.contains("silicon_concurrency=")
    assert rows[~stated].system.tolist() == ["gb200", "h100_sxm"]
    assert (rows[~stated].silicon_ttft_ms > 16_000).all()
    assert (rows[stated].silicon_ttft_ms < 2_600).all()


MIXTURES = {
    "deepseek-ai/DeepSeek-V3": "deepseek-ai--DeepSeek-V3",
    "deepseek-ai/DeepSeek-R1": "deepseek-ai--DeepSeek-V3",
    "Qwen/Qwen3-235B-A22B-FP8": "Qwen--Qwen3-235B-A22B",
}


def test_mixtures_of_experts() -> None:
    """Tensor-parallel rows with a recorded concurrency: median 24 %, the worst 76 %.

    Attention data-parallel rows are apart: expert parallelism is not priced. Part of what is left
    is not the roofline's: some rows ran with multi-token prediction and do not say so. DeepSeek on
    8 H200 under TensorRT-LLM, 16 streams, takes 20.4 ms in one row, as predicted, in another 11.4.
    """
    table = pd.read_csv(DATA / "steptime" / "aiconfigurator" / "silicon_refs.csv")
    errors: list[float] = []
    for _, row in table[table.model_path.isin(MIXTURES)].iterrows():
        decode = "decode_" if row["mode"] == "disagg" else ""
        gpu, replicas = row.system.replace("_", "-"), row[f"{decode}attention_dp_size"]
        recorded = "silicon_concurrency=" in row.silicon_data_source
        if gpu in gpu_table() and recorded and not replicas > 1:  # NaN is none
            model = read_model(DATA / "models" / f"{MIXTURES[row.model_path]}_config.json")
            shards = int(row[f"{decode}tp_size"])
            priced = shape(gpu, model.with_dtype(row.precision), shards)
            predicted = tpot_s(row, priced, int(row[f"{decode}batch_size"]))
            errors.append(predicted * 1e3 / row.silicon_tpot_ms - 1)
    assert len(errors) == 12
    assert np.median(np.abs(errors)) <= 0.25
    assert min(errors) >= -0.4
    assert max(errors) <= 0.8


def rtx_4090_rows() -> pd.DataFrame:
    """Sum the measured kernels of 32 layers and the head: a step of Llama-3.1-8B, bf16."""
    folder = DATA / "steptime" / "llmservingsim" / "RTX4090_Llama-3.1-8B_bf16_tp1"
    dense = pd.read_csv(folder / "dense.csv").pivot_table(
        index="tokens", columns="layer", values="time_us"
    )
    sequences = pd.read_csv(folder / "per_sequence.csv")
    head = sequences[sequences.layer == "lm_head"].set_index("sequences").time_us
    attention = pd.read_csv(folder / "attention.csv")
    rows = attention[(attention.prefill_chunk == 0) & attention.n_decode.isin(dense.index)]
    rows = rows[rows.n_decode.isin(head.index)].reset_index(drop=True)
    x = dense.loc[rows.n_decode].reset_index(drop=True)
    gemms = x.qkv_proj + x.o_proj + x.gate_up_proj + x.down_proj
    layer = gemms + x.act_fn + 2 * x.layernorm + x.rotary_emb + rows.time_us
    ends = x.embedding + x.final_layernorm + head.loc[rows.n_decode].reset_index(drop=True)
    return rows.assign(measured_s=(32 * layer + ends) * 1e-6)


def test_rtx_4090_kernels() -> None:
    rows = rtx_4090_rows()
    llama = read_model(DATA / "models" / "meta-llama--Meta-Llama-3.1-8B_config.json")
    datasheet = shape("rtx-4090", llama, 1)
    whole = np.array(
        [seconds(datasheet, b, c) for b, c in zip(rows.n_decode, rows.kv_decode, strict=True)]
    )
    work, measured = whole - datasheet.fixed_s, rows.measured_s.to_numpy()
    error = np.abs(whole / measured - 1)
    assert np.median(error) <= 0.05
    assert np.quantile(error, 0.9) <= 0.10
    two = [int(rows.index[(rows.n_decode == b) & (rows.kv_decode == 1024)][0]) for b in (1, 128)]
    fit = fit_roofline(work[two], datasheet.fixed_s, measured[two])
    fitted = np.maximum(fit.slowdown * work + datasheet.fixed_s, fit.floor_s)
    assert np.median(np.abs(np.delete(fitted / measured - 1, two))) <= 0.03


@pytest.mark.parametrize(
    ("hardware", "gpu"), [("a100-80gb", "a100-sxm"), ("h100-80gb", "h100-sxm")]
)
def test_old_stack_with_two_rows_fitted(hardware: str, gpu: str) -> None:
    table = pd.read_csv(DATA / "steptime" / "splitwise_sim_perf_model.csv")
    keys = ["model", "tensor_parallel", "prompt_size", "batch_size", "token_size"]
    rows = table[table.hardware == hardware].groupby(keys).token_time.median().reset_index()
    models = {"llama2-70b": LLAMA_2_70B, "bloom-176b": BLOOM}
    shapes = [
        shape(gpu, models[m], int(n)) for m, n in zip(rows.model, rows.tensor_parallel, strict=True)
    ]
    context = rows.prompt_size + rows.token_size / 2
    whole = np.array(
        [seconds(s, b, c) for s, b, c in zip(shapes, rows.batch_size, context, strict=True)]
    )
    fixed = np.array([s.fixed_s for s in shapes])
    measured = rows.token_time.to_numpy() / 1e3
    # Nothing fitted, the roofline is the floor that this stack's launches keep it far from.
    assert np.mean(whole < measured) >= 0.95
    first = (rows.model == "llama2-70b") & (rows.prompt_size == 512) & (rows.token_size == 128)
    two = [
        int(rows.index[first & (rows.batch_size == 1) & (rows.tensor_parallel == n)][0])
        for n in (2, 8)
    ]
    fit = fit_roofline((whole - fixed)[two], fixed[two], measured[two])
    # One stream on two GPUs waits for memory, on eight for the host: ~30 ms a pass on H100.
    assert fit.floor_s == pytest.approx(measured[two[1]])
    fitted = np.maximum(fit.slowdown * (whole - fixed) + fixed, fit.floor_s)
    assert np.median(np.abs(np.delete(fitted / measured - 1, two))) <= 0.07
