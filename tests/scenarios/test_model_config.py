"""Real configs to bytes and parameters: expectations worked out by hand from their fields."""

import json
from pathlib import Path

import pytest

from specplan.models.layers import LatentAttention, LinearAttention
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.model_config import mtp_head, read_model

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"
real = pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here")

# All configs of shared/data/models: 15, and with `hf_quant_config.json`, which the NVIDIA model's
# cache type stands in, 16 files. Layers × 2 (key and value) × KV heads × head_dim × bytes, each
# factor as the config says.
KV_BYTES_PER_TOKEN = {
    "Qwen--Qwen3-0.6B": 28 * 2 * 8 * 128 * 2,
    "Qwen--Qwen3-1.7B": 28 * 2 * 8 * 128 * 2,
    "Qwen--Qwen3-8B": 36 * 2 * 8 * 128 * 2,
    "Qwen--Qwen3-32B": 64 * 2 * 8 * 128 * 2,  # explicit head_dim: 5120 / 64 heads would be 80
    "Qwen--Qwen3-30B-A3B": 48 * 2 * 4 * 128 * 2,
    "Qwen--Qwen3-235B-A22B": 94 * 2 * 4 * 128 * 2,
    "Qwen--Qwen3.5-27B": 16 * 2 * 4 * 256 * 2,  # every 4th of 64 layers; the others keep a state
    "deepseek-ai--DeepSeek-V3": 61 * (512 + 64) * 2,  # MLA: latent + rope, not 128 heads
    "google--gemma-4-26B-A4B": 25 * 2 * 8 * 256 * 2 + 5 * 2 * 2 * 512 * 2,  # sliding + global
    "meta-llama--Meta-Llama-3.1-8B": 131_072,
    "meta-llama--Meta-Llama-3.1-70B": 327_680,
    "mistralai--Mixtral-8x7B-v0.1": 32 * 2 * 8 * 128 * 2,
    "nvidia--Llama-3.1-70B-Instruct-FP8": 163_840,  # hf_quant_config.json: the cache is fp8
    "openai--gpt-oss-120b": 36 * 2 * 8 * 64 * 2,
    "openai--gpt-oss-20b": 24 * 2 * 8 * 64 * 2,
}
# Beyond the window only the global layers still grow.
KV_BYTES_PER_TOKEN_BEYOND_WINDOW = {
    "google--gemma-4-26B-A4B": 5 * 2 * 2 * 512 * 2,
    "openai--gpt-oss-120b": 18 * 2 * 8 * 64 * 2,
    "openai--gpt-oss-20b": 12 * 2 * 8 * 64 * 2,
    "meta-llama--Meta-Llama-3.1-8B": 131_072,
}
# Published sizes, in 10⁹ parameters (model cards; DeepSeek-V3: arXiv 2412.19437, 671B).
PARAMETERS_1E9 = {
    "Qwen--Qwen3-0.6B": 0.596,
    "Qwen--Qwen3-8B": 8.191,
    "Qwen--Qwen3-32B": 32.762,
    "Qwen--Qwen3-30B-A3B": 30.53,
    "Qwen--Qwen3-235B-A22B": 235.09,
    "deepseek-ai--DeepSeek-V3": 671.03,
    "meta-llama--Meta-Llama-3.1-8B": 8.030,
    "meta-llama--Meta-Llama-3.1-70B": 70.554,
    "mistralai--Mixtral-8x7B-v0.1": 46.703,
    "openai--gpt-oss-120b": 116.83,
    "openai--gpt-oss-20b": 20.91,
}


def config(name: str) -> Path:
    return MODELS / f"{name}_config.json"


@real
@pytest.mark.parametrize("name", KV_BYTES_PER_TOKEN)
def test_kv_bytes_per_token(name: str) -> None:
    assert read_model(config(name)).kv_bytes_per_token() == KV_BYTES_PER_TOKEN[name]


@real
def test_every_config_has_an_expectation() -> None:
    names = {path.name.removesuffix("_config.json") for path in MODELS.glob("*_config.json")}
    assert {name for name in names if not name.endswith("_hf_quant")} == set(KV_BYTES_PER_TOKEN)


@real
@pytest.mark.parametrize("name", KV_BYTES_PER_TOKEN_BEYOND_WINDOW)
def test_kv_growth_beyond_the_window(name: str) -> None:
    grows = read_model(config(name)).kv_bytes_per_token(windowed=False)
    assert grows == KV_BYTES_PER_TOKEN_BEYOND_WINDOW[name]


@real
@pytest.mark.parametrize("name", PARAMETERS_1E9)
def test_published_sizes(name: str) -> None:
    assert read_model(config(name)).parameters() / 1e9 == pytest.approx(
        PARAMETERS_1E9[name], rel=5e-4
    )


@real
def test_llama_8b_to_the_last_parameter() -> None:
    # 128256·4096·2 + 32·(4096·4096·2 + 2·4096·1024 + 3·4096·14336 + 2·4096) + 4096
    model = read_model(config("meta-llama--Meta-Llama-3.1-8B"))
    assert model.parameters() == 8_030_261_248
    assert model.weights_bytes() == 16_060_522_496


@real
def test_quantised_weights() -> None:
    # fp8 layers, 16-bit embedding and head: 68.4 · 10⁹ + 2 · 2 · 128256 · 8192 bytes, and norms
    fp8 = read_model(config("nvidia--Llama-3.1-70B-Instruct-FP8"))
    layers = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672)
    assert fp8.weights_bytes() == layers + 2 * 2 * 128256 * 8192 + 2 * 161 * 8192
    # gpt-oss: only experts are mxfp4 (4.25 bits), attention is bf16; the model card says 60.8 GiB
    oss = read_model(config("openai--gpt-oss-120b"))
    assert (oss.attention_dtype, oss.expert_dtype) == ("bf16", "mxfp4")
    assert oss.weights_bytes() / 2**30 == pytest.approx(60.8, rel=0.01)


@real
def test_attention_kinds() -> None:
    deepseek = read_model(config("deepseek-ai--DeepSeek-V3"))
    assert [layer.count for layer in deepseek.layers] == [3, 58]  # first_k_dense_replace 3
    assert isinstance(deepseek.layers[0].attention, LatentAttention)
    assert deepseek.layers[1].mlp.intermediate == 2048  # one shared expert
    qwen = read_model(config("Qwen--Qwen3.5-27B"))
    counts = {type(layer.attention): layer.count for layer in qwen.layers}
    assert counts[LinearAttention] == 48
    # one layer's state: 48 heads · 128 · 128 · 4 bytes + (2·16·128 + 48·128) · 3 · 2 bytes
    assert qwen.state_bytes() == 48 * (3_145_728 + 61_440)


@real
@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("deepseek-v3-671b-eagle3", 2 * 8 * 128 * 2),
        ("glm-5.2-dspark", 5 * 2 * 16 * 64 * 2),
        ("gpt-oss-120B-eagle3", 2 * 8 * 64 * 2),
        ("llama3-70B-ealge3", 2 * 8 * 128 * 2),
        ("llama3-8B-eagle3", 2 * 8 * 128 * 2),
        ("qwen2.5-0.5b-dflash", 5 * 2 * 2 * 64 * 2),
        ("qwen3-30B-A3B-eagle3", 2 * 4 * 128 * 2),
        ("qwen3-8b-eagle3", 2 * 8 * 128 * 2),
    ],
)
def test_kv_bytes_of_draft_heads(name: str, kv_bytes: int) -> None:
    assert read_model(MODELS / "draft_heads" / f"{name}.json").kv_bytes_per_token() == kv_bytes


@real
def test_draft_heads() -> None:
    eagle = read_model(MODELS / "draft_heads" / "llama3-8B-eagle3.json")
    # q, k, v take 2·4096 inputs; fc is 3·4096 × 4096; the head has 32,000 rows; embedding borrowed
    attention = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096
    fused, mlp, head = 3 * 4096 * 4096, 3 * 4096 * 14336, 32000 * 4096
    assert eagle.parameters() == attention + fused + mlp + head + 3 * 4096
    assert eagle.kv_bytes_per_token() == 2 * 8 * 128 * 2
    dflash = read_model(MODELS / "draft_heads" / "qwen2.5-0.5b-dflash.json")
    assert (dflash.layer_count, dflash.fused_states, dflash.own_head) == (5, 5, False)


@real
def test_mtp_module() -> None:
    # DeepSeek-V3's README: 11.5B for the module beside the shared embedding and head
    head = mtp_head(config("deepseek-ai--DeepSeek-V3"))
    assert head.parameters() / 1e9 == pytest.approx(11.5, rel=0.02)
    with pytest.raises(ScenarioError, match=r"has no MTP module \(`num_nextn_predict_layers`"):
        mtp_head(config("meta-llama--Meta-Llama-3.1-8B"))


def write(folder: Path, **fields: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


def test_missing_fields_all_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, model_type="llama", num_hidden_layers=2, num_attention_heads=8)
    with pytest.raises(ScenarioError) as error:
        read_model(path)
    fields = {fault.field for fault in error.value.faults}
    assert fields == {"hidden_size", "intermediate_size", "vocab_size"}
    assert "an integer `vocab_size` at the top level of the file" in str(error.value)


def test_missing_field_of_a_nested_config(tmp_path: Path) -> None:
    inner = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 9}
    path = write(tmp_path, model_type="qwen3_5", text_config=inner)
    with pytest.raises(ScenarioError, match="an integer `intermediate_size` at `text_config`"):
        read_model(path)


def test_heads_that_do_not_go_into_each_other(tmp_path: Path) -> None:
    fields = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 9}
    fields |= {"num_attention_heads": 8, "intermediate_size": 64}
    with pytest.raises(ScenarioError, match=r"num_key_value_heads: is 5 \(a divisor of the 8"):
        read_model(write(tmp_path, **fields, num_key_value_heads=5))
    with pytest.raises(ScenarioError, match=r"head_dim: is missing \(a `head_dim`, or a"):
        read_model(write(tmp_path, **{**fields, "hidden_size": 65}))
    assert read_model(write(tmp_path, **{**fields, "hidden_size": 65, "head_dim": 16}))


def test_unknown_model_type_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"model_type: 'qwen3moe' is not known .*'qwen3_moe'"):
        read_model(write(tmp_path, model_type="qwen3moe"))
    with pytest.raises(ScenarioError, match="model_type: is missing"):
        read_model(write(tmp_path, hidden_size=64))


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "is not JSON"), ("[1]", "is not an object"), (None, "cannot be read: No such file")],
)
def test_files_that_are_no_config(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=says):
        read_model(path)


def test_wrong_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        model_type="qwen3_moe",
        hidden_size=-64,
        vocab_size="many",
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        num_experts=4,
        num_experts_per_tok=8,
        layer_types=["full_attention"] * 2,
    )
    with pytest.raises(ScenarioError) as error:
        read_model(path)
    says = str(error.value)
    assert "hidden_size: is -64 (an integer, 1 or more)" in says
    assert "vocab_size: is 'many' (an integer, 1 or more)" in says
    assert "num_experts_per_tok: is 8 (at most the 4 experts)" in says
    assert "layer_types: has 2 entries (1, as num_hidden_layers says)" in says


def test_fields_that_may_be_absent_are_read_strictly_too(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        model_type="llama",
        hidden_size=64,
        vocab_size=9,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        head_dim="16",
        num_key_value_heads=[2],
        architectures=5,
    )
    with pytest.raises(ScenarioError) as error:
        read_model(path)
    assert [str(fault).removeprefix(f"{path}: ") for fault in error.value.faults] == [
        "head_dim: is '16' (an integer, 0 or more)",  # once, not once for each layer
        "num_key_value_heads: is [2] (an integer, 0 or more)",
        "architectures: is 5 (a list)",
    ]
