"""`specplan memory`: what fits with and without the draft, against arithmetic and the reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from specplan.cli import app
from specplan.results.memory.answer import memory_answer
from specplan.results.prediction import predict_answer
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
}  # fmt: skip
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
    "intermediate_size": 28672,
}  # fmt: skip
SMALL = LLAMA_8B | {
    "hidden_size": 2048, "num_hidden_layers": 16, "intermediate_size": 8192,
}  # fmt: skip


@pytest.fixture
def configs(tmp_path: Path) -> dict[str, str]:
    found = {}
    for name, fields in (("8b", LLAMA_8B), ("70b", LLAMA_70B), ("small", SMALL)):
        path = tmp_path / name / "config.json"
        path.parent.mkdir()
        path.write_text(json.dumps(fields), encoding="utf-8")
        found[name] = str(path)
    return found


def answered(*arguments: str) -> dict[str, Any]:
    shown = CliRunner().invoke(app, ["memory", *arguments, "--json"])
    assert shown.exit_code == 0, shown.output
    value: dict[str, Any] = json.loads(shown.stdout)
    return value


def test_c59_concurrency_lost_to_the_copies_of_the_draft() -> None:
    # sgl-project/sglang#32468: 409,552 tokens with the draft, 519,753 without, 8K each
    value = answered("--context", "8192", "--set", "kv_cache.tokens=409552",
                     "--set", "kv_cache.plain_tokens=519753")  # fmt: skip
    assert value["max_concurrency"] == [{"context": 8192, "plain_decoding": 63, "speculation": 49}]
    assert value["draft_costs"]["kv_tokens"] == pytest.approx(519_753 - 409_552, abs=16)
    # ... and the cap reaches the batch of a simulation, with speculation and without
    sets = ["kv_cache={tokens: 409552, plain_tokens: 519753}"]
    assert load("toy-20ms", sets).kv_blocks == 409_552 // 16
    assert load("toy-20ms", [*sets, "speculation.gamma=0"]).kv_blocks == 519_753 // 16


def test_c61_the_gpu_that_holds_the_draft_limits(configs: dict[str, str]) -> None:
    # vllm-project/vllm#9995: 70B over 4 H100, the 8B draft on the first; .99 ran out of memory
    value = answered("--gpu", "h100-sxm", "--model", configs["70b"], "--draft", configs["8b"],
                     "--tensor-parallel", "4", "--set", "kv_cache.draft_place=first",
                     "--set", "kv_cache.utilization=0.99")  # fmt: skip
    drafting = value["ways"][1]
    assert drafting["limiting_gpu"] == 0
    assert drafting["bytes"]["target"] / 1e9 == pytest.approx(35, abs=0.5)
    assert drafting["bytes"]["draft"] == 16_060_522_496
    # 16.06 GB that nobody counted fit beside at most 1 − 16.06/85.9 = 81.3 % of 80 GiB
    assert value["draft_costs"]["utilization_if_not_counted"] == pytest.approx(0.813, abs=1e-3)


def test_c62_the_memory_of_a_draft_in_tokens() -> None:
    # ggml-org/llama.cpp#10664: 20.57 → 22.12 GiB; 64 layers, 8 KV heads of 128, fp16: 256 KiB
    sets = ("memory=22.12 GiB", "draft_weights=1.55 GiB", "bytes_per_token=256 KiB")
    value = answered(*(word for one in sets for word in ("--set", f"kv_cache.{one}")))
    assert value["draft_costs"]["kv_tokens"] == pytest.approx(1.55 * 2**30 / 2**18, abs=16)
    assert value["draft_costs"]["weights_bytes"] / 2**30 == pytest.approx(22.12 - 20.57, abs=0.01)


def test_a_sized_cache_by_hand(configs: dict[str, str]) -> None:
    # .9 · 80 GiB − 16,060,522,496 − 3.5 GiB = 57,490,898,944 bytes, in blocks of 16 · 131,072
    value = answered("--gpu", "H100 SXM", "--model", configs["8b"], "--context", "1000")
    (plain,) = value["ways"]
    assert plain["kv_bytes_per_token"] == 131_072
    assert plain["blocks"] == int((0.9 * 80 * 2**30 - 16_060_522_496 - 3.5 * 2**30) // 2_097_152)
    assert value["max_concurrency"][0]["plain_decoding"] == plain["blocks"] // 63
    assert value["evidence"].startswith("datasheet (h100-sxm × 1, 80 GiB each")
    assert "assumed: 90 % of it, reserve 3.5 GiB" in value["evidence"]


def test_a_scenario_takes_gpu_and_models_from_its_rooflines(configs: dict[str, str]) -> None:
    on_four = "gpu: h100-sxm, tensor_parallel: 4"
    sets = [
        f"target.round={{roofline: {{{on_four}, model: {configs['70b']}}}}}",
        f"draft.step={{roofline: {{{on_four}, model: {configs['small']}}}}}",
        "target.step={constant: 30 ms}",
        "cluster.gpus_per_replica=4",
        "kv_cache.utilization=80 %",
    ]
    drafting, plain = load("toy-20ms", sets), load("toy-20ms", [*sets, "speculation.method=none"])
    target = 80 * 2 * 8 * 128 * 2 / 4
    left = 0.8 * 80 * 2**30 - 3.5 * 2**30
    weights = (2 * 128256 * 8192 + 80 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672)) / 2
    weights += 2 * 161 * 8192
    assert plain.kv_blocks == int((left - weights) // (16 * target))
    assert drafting.kv_blocks is not None
    assert drafting.kv_blocks < plain.kv_blocks
    shown = answered(*[word for one in sets for word in ("--set", one)], "toy-20ms")
    assert [way["blocks"] for way in shown["ways"]] == [plain.kv_blocks, drafting.kv_blocks]
    # predict states where the cache is from
    handoff = predict_answer(drafting, None, force=False).json["handoff"]
    assert handoff["inputs"]["kv_cache"]["evidence"] == "datasheet"
    away = load("toy-20ms", [*sets, "draft.placement=dedicated", "draft.transfer=0 ms"])
    assert away.kv_blocks == plain.kv_blocks


def test_the_mtp_module_of_a_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B | {"num_nextn_predict_layers": 1}), encoding="utf-8")
    value = answered("--gpu", "h100-sxm", "--model", str(path), "--draft", "mtp")
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert value["ways"][1]["bytes"]["draft"] == 2 * (layer + 2 * 4096 * 4096 + 3 * 4096)
    assert value["ways"][1]["kv_bytes_per_token"] == 131_072 * 33 / 32
    roofline = f"{{roofline: {{gpu: h100-sxm, model: {path}, mtp: true}}}}"
    step_s = float(load("toy-20ms", [f"draft.step={roofline}"]).draft_step().seconds(1, 1))
    # layer, projection and head at .9 · 3.35 TB/s and the latencies: five GEMMs, attention, norms
    read_s = 2 * (layer + 2 * 4096 * 4096 + 4096 * 128256) / (0.9 * 3.35e12)
    assert step_s == pytest.approx(read_s + 5 * 4e-6 + 19.5e-6, rel=0.02)


def test_a_draft_that_does_not_fit_is_the_answer_no(configs: dict[str, str]) -> None:
    arguments = ["memory", "--gpu", "l4", "--model", configs["8b"], "--draft", configs["8b"]]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert "0 with the draft" in shown.stdout
    assert "leave\n" in shown.stdout or "leave nothing" in shown.stdout


def test_the_page_holds_the_bar(configs: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "memory.html"
    answered("--gpu", "h100-sxm", "--model", configs["8b"], "--draft", configs["small"],
             "--html", str(page))  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "KV of the draft" in text
    assert "weights of the target" in text


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ([], "nothing says whose memory"),
        (["target.gpu=l4"], "there is no kv_cache, so no limit"),
        (["kv_cache.model=8b"], "there is no GPU to size it from"),
        (["kv_cache.model=8b", "target.gpu=h10"], r"no GPU `h10` .*did you mean `h100-sxm`"),
        (["kv_cache.model=70b", "target.gpu=l4"], "GPU 0: target 141.1 GB and"),
        (["kv_cache.model=8b", "target.gpu=l4", "kv_cache.draft=mtp"], "has no MTP module"),
        (["kv_cache.tokens=100", "kv_cache.model=8b"], "model does not apply to tokens"),
        (["kv_cache.utilization=90 %", "target.gpu=l4"], "no capacity given"),
    ],
)
def test_bad_input(configs: dict[str, str], sets: list[str], says: str) -> None:
    stated = [f"{a}={configs.get(b, b)}" for a, b in (one.split("=") for one in sets)]
    with pytest.raises(ScenarioError, match=says):
        memory_answer(sets=stated)


def test_gpus_that_contradict_each_other(configs: dict[str, str]) -> None:
    roofline = f"{{roofline: {{gpu: h100-sxm, model: {configs['70b']}, tensor_parallel: 4}}}}"
    sets = [f"target.round={roofline}", "target.step=30 ms", "target.gpu=a100-sxm"]
    with pytest.raises(ScenarioError) as error:
        load("toy-20ms", sets)
    assert "target.gpu: is a100-sxm, and target.round.roofline is of h100-sxm" in str(error.value)
    assert "cluster.gpus_per_replica: is 1, and target.round.roofline shares" in str(error.value)


def test_gpus_that_split_a_head_are_refused(configs: dict[str, str]) -> None:
    arguments = ("memory", "--gpu", "h100-sxm", "--model", configs["8b"], "--tensor-parallel", "3")
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 2
    assert "tensor_parallel is 3 (a divisor of the 32 heads of" in shown.stderr


def test_what_is_stated_is_not_called_assumed(configs: dict[str, str]) -> None:
    one = ("--gpu", "h100-sxm", "--model", configs["8b"])
    assert answered(*one)["evidence"].endswith("assumed: 90 % of it, reserve 3.5 GiB)")
    half = answered(*one, "--set", "kv_cache.utilization=80%")["evidence"]
    assert half.endswith("stated: 80 % of it; assumed: reserve 3.5 GiB)")


def test_a_target_too_large_alone_is_not_blamed_on_its_draft(configs: dict[str, str]) -> None:
    arguments = ("--gpu", "h100-sxm", "--model", configs["70b"], "--draft", configs["8b"])
    shown = CliRunner().invoke(app, ["memory", *arguments])
    assert "GPU 0: target 141.1 GB and reserve 3.8 GB leave nothing" in shown.stderr
