"""Tables of pass times: small ones made here, real ones of ../shared read where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.costs_files import read_pass_times
from specplan.scenarios.model_config import read_model

if TYPE_CHECKING:
    from specplan.scenarios.importers.costs_passes import PassTimes

DATA = Path(__file__).parents[4] / "shared" / "data"
STEPS = DATA / "steptime"
LLAMA_8B = DATA / "models" / "meta-llama--Meta-Llama-3.1-8B_config.json"
NAMES = ["case", "requests", "median_us", "query_len", "kv_len", "sample_batch_tokens",
         "sample_steps_per_sec", "bias_seconds", "bs_probes", "alpha_seconds", "m_probes",
         "theta_seconds", "n_prompt", "n_gen", "avg_ns", "avg_ts", "n_ubatch", "avg_latency",
         "latencies"]  # fmt: skip
LLAMA_LIKE = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "vocab_size": 256, "torch_dtype": "bfloat16"}  # fmt: skip
real = pytest.mark.skipif(
    not DATA.is_dir(), reason="../shared/data (real files, never copied here) is absent"
)


def written(folder: Path, value: object, name: str = "a.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def only(*files: Path, **options: Any) -> PassTimes:
    found, others = read_pass_times(files, **options)
    assert not others
    assert len(found) == 1
    return found[0]


def case(name: str, batch: int, query: int, kv: int, us: float) -> dict[str, Any]:
    request = {"query_len": query, "kv_len": kv, "num_draft_tokens": query - 1, "chunked": False}
    return {"case": name, "requests": [request] * batch, "median_us": us, "ranks": []}


def test_bench_forward_is_in_microseconds_and_its_kv_holds_the_query(tmp_path: Path) -> None:
    times = only(written(tmp_path, [case("a", 2, 4, 104, 6000.0), case("b", 2, 1, 101, 5000.0)]))
    first = times.passes[0]
    assert (first.batch, first.width, first.context, first.seconds) == (2, 4, 100, 6e-3)
    ((batch, width, ratio),) = times.verify_ratios()
    assert (batch, width) == (2, 4)
    assert ratio == pytest.approx(1.2)
    assert any("drafter is in these times" in note for note in times.notes)


def test_bench_forward_leaves_mixed_cases_out(tmp_path: Path) -> None:
    mixed = case("mixed", 1, 4, 104, 6000.0)
    mixed["requests"] = case("", 1, 4, 9, 1.0)["requests"] + case("", 1, 1, 9, 1.0)["requests"]
    times = only(written(tmp_path, [mixed, case("b", 1, 1, 9, 5000.0)]))
    assert len(times.passes) == 1
    assert any("mixed" in note for note in times.notes)


@pytest.mark.parametrize(("us", "says"), [(0.0, "a duration of 0"), (-3.0, "a duration of -3")])
def test_bench_forward_of_no_time_is_refused(tmp_path: Path, us: float, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        read_pass_times([written(tmp_path, [case("a", 1, 1, 9, us)])])


def test_wider_passes_are_never_faster(tmp_path: Path) -> None:
    rows = [case("a", 1, 1, 9, 6000.0), case("b", 1, 4, 12, 4000.0)]
    with pytest.raises(ScenarioError, match="width 4 takes 4 ms and width 1 6 ms"):
        read_pass_times([written(tmp_path, rows)])


def test_sglang_step_rates_are_costs_by_tokens(tmp_path: Path) -> None:
    table = {"sample_batch_tokens": [1, 100], "sample_steps_per_sec": [200.0, 125.0]}
    fit = only(written(tmp_path, table)).fit()
    assert fit.base_s + fit.per_token_s == pytest.approx(5e-3)  # 1/200
    assert fit.base_s + 100 * fit.per_token_s == pytest.approx(8e-3)  # 1/125


def test_sglang_additive_tables_keep_sequences_and_tokens_apart(tmp_path: Path) -> None:
    table = {
        "bias_seconds": 5e-3,
        "bs_probes": [1, 8, 64],
        "alpha_seconds": [1e-5, 8e-5, 64e-5],
        "m_probes": [1, 64, 512],
        "theta_seconds": [2e-5, 128e-5, 1024e-5],
    }
    fit = only(written(tmp_path, table)).fit()
    assert fit.base_s == pytest.approx(5e-3, rel=1e-6)
    assert fit.per_sequence_s == pytest.approx(1e-5, rel=1e-6)
    assert fit.per_token_s == pytest.approx(2e-5, rel=1e-6)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"sample_batch_tokens": [1, 1], "sample_steps_per_sec": [2, 1]}, "not strictly rising"),
        ({"sample_batch_tokens": [1, 2], "sample_steps_per_sec": [2]}, "2 token counts and 1"),
        ({"sample_batch_tokens": [1, 2], "sample_steps_per_sec": [2, 0]}, "rates above 0"),
        ({"bias_seconds": 1, "bs_probes": [1], "alpha_seconds": [], "m_probes": [1],
          "theta_seconds": [1]}, "1 probes, 0 times"),
    ],
)  # fmt: skip
def test_broken_sglang_tables_are_refused(
    tmp_path: Path, table: dict[str, object], says: str
) -> None:
    with pytest.raises(ScenarioError, match=says):
        read_pass_times([written(tmp_path, table)])


def llama_row(prompt: int, gen: int, ns: float, depth: int = 0) -> dict[str, Any]:
    return {"model_type": "llama 8B Q4_0", "backends": "CUDA", "n_prompt": prompt, "n_gen": gen,
            "n_depth": depth, "n_ubatch": 512, "avg_ns": ns}  # fmt: skip


def llama_csv(*rows: dict[str, Any]) -> str:
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(",".join(f'"{value}"' for value in line) for line in lines)


def test_llama_bench_counts_whole_tests(tmp_path: Path) -> None:
    rows = [
        llama_row(0, 128, 128 * 10e6),
        llama_row(5, 0, 13e6),
        llama_row(2048, 0, 1e9),
        llama_row(512, 128, 1e9),
    ]
    for name, value in (
        ("a.json", json.dumps(rows)),
        ("a.jsonl", "\n".join(map(json.dumps, rows))),
        ("a.csv", llama_csv(*rows)),
    ):
        times = only(written(tmp_path, value, name))
        assert [one.width for one in times.passes] == [1, 5]
        assert [one.seconds for one in times.passes] == pytest.approx([10e-3, 13e-3])
        assert times.passes[0].context == 63.5
        assert any("n_ubatch" in note for note in times.notes)
        assert any("-pg" in note for note in times.notes)


def test_our_own_tables_of_pass_times_can_be_fitted(tmp_path: Path) -> None:
    rows = "batch,width,ms\n1,1,5.1\n1,5,5.5\n8,1,5.8\n8,5,9\n"
    fit = only(written(tmp_path, rows, "t.csv")).fit()
    assert fit.base_s == pytest.approx(5e-3, rel=1e-3)
    assert fit.per_token_s == pytest.approx(1e-4, rel=1e-3)


def test_operators_need_a_model(tmp_path: Path) -> None:
    rows = "framework,gemm_dtype,m,n,k,latency\nVLLM,bfloat16,1,64,64,0.01\n"
    with pytest.raises(ScenarioError, match=r"--model config\.json"):
        read_pass_times([written(tmp_path, rows, "g.csv")])


@pytest.mark.parametrize(
    "rows",
    [
        "gemm_dtype,m,n,k,latency\nbfloat16,a,b,c,d\n",
        "gemm_dtype,m,n,k,latency\nbfloat16,1\n",
        "layer,tokens,time_us\nqkv_proj,1,0.1\n",
        "model,hardware,token_time,prompt_size,batch_size,token_size,tensor_parallel\nm,h,x,1,1,1,1\n",
        "n_prompt,n_gen,avg_ns\n0,x,1\n",
        "n_prompt,n_gen,avg_ts\n0,128,0\n",
        "n_prompt,n_gen,avg_ns\n0,nan,1\n",
        "batch,width,ms\n1,1,0\n",
        "batch,width,ms\n1,1,3\n1,2,2\n",
    ],
)
def test_broken_tables_are_faults(tmp_path: Path, rows: str) -> None:
    config = written(tmp_path, LLAMA_LIKE, "config.json")
    with pytest.raises(ScenarioError):
        read_pass_times([written(tmp_path, rows, "t.csv")], read_model(config))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_table_or_a_fault_or_something_else(value: object) -> None:
    with TemporaryDirectory() as folder:
        path = written(Path(folder), value)
        try:
            found, _ = read_pass_times([path])
        except ScenarioError:
            return
        assert all(times.passes for times in found)


# Real files. Published: base 5.886 ms, 21.01 µs a position, 0.0393 µs a cached token (Llama-3.1-8B
# on an H100; SpecDecode-Bench predictor.py, arXiv 2601.11580).


@real
def test_the_bench_forward_sample_was_made_from_the_published_coefficients() -> None:
    fit = only(DATA / "constructed" / "vllm_bench_forward.json").fit()
    assert fit.base_s == pytest.approx(5.886e-3, rel=0.01)
    assert fit.per_token_s == pytest.approx(21.01e-6, rel=0.02)
    assert fit.per_context_token_s == pytest.approx(39.26e-9, rel=0.03)


@real
def test_the_sglang_sample_tables() -> None:
    fit = only(DATA / "constructed" / "sglang_dspark_sps_table.json").fit()
    assert fit.base_s + fit.per_token_s == pytest.approx(1 / 168.8904, rel=1e-3)
    added = only(DATA / "constructed" / "sglang_dspark_sps_additive_table.json")
    at_8 = next(one for one in added.passes if (one.batch, one.width) == (8, 8))
    assert at_8.seconds == pytest.approx(0.0059 + 0.00021 + 0.0013)


@real
def test_aiconfigurators_operators_make_the_pass_that_others_measured() -> None:
    folder = STEPS / "aiconfigurator"
    times = only(
        folder / "h100_sxm_vllm_0.14.0_gemm_perf.parquet",
        folder / "h100_sxm_vllm_0.14.0_generation_attention_perf.parquet",
        model=read_model(LLAMA_8B),
    )
    assert times.evidence == "analytical"
    assert times.fit().base_s == pytest.approx(5.886e-3, rel=0.05)


@real
def test_llmservingsims_profile_makes_32_layers() -> None:
    (folder,) = (STEPS / "llmservingsim").iterdir()
    times = only(folder, model=read_model(LLAMA_8B))
    plain = next(one for one in times.passes if one.batch == one.width == 1)
    # One layer at 1 token, µs: 2·1.85083 + 54.898 + 38.1313 + 247.292 + 2.592 and more.
    assert 1e6 * plain.seconds > 32 * 346.6 + 1096.93 + 25.001
    # 16.06 GB of bf16 weights at the 1,008 GB/s of an RTX 4090's datasheet cannot be beaten.
    assert plain.seconds > 15.0e9 / 1008e9
    assert plain.seconds == pytest.approx(16.06e9 / 1008e9, rel=0.2)


@real
def test_splitwise_is_one_result_a_system_in_milliseconds() -> None:
    found, _ = read_pass_times([STEPS / "splitwise_sim_perf_model.csv"])
    assert len(found) == 12
    a100 = next(one for one in found if one.label == "llama2-70b a100-80gb tp2")
    first = next(one for one in a100.passes if one.batch == 1 and one.context == 512 + 64)
    assert first.seconds == pytest.approx(54.86e-3, rel=0.01)  # its rows: 54.88, 54.86, 54.80, …
    assert any("wider verify pass" in note for note in a100.notes)
