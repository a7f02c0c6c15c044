"""A Hugging Face `config.json` (and `hf_quant_config.json` beside it) to a `hardware.Model`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specplan.models.hardware import Model
from specplan.models.layers import (
    AnyAttention,
    Attention,
    LatentAttention,
    Layer,
    LinearAttention,
    Mlp,
)
from specplan.scenarios.config_fields import ConfigFields, read_config_json
from specplan.scenarios.errors import Fault, ScenarioError, nearest

if TYPE_CHECKING:
    from pathlib import Path

# Model types whose configs this module has been checked against or whose fields are the same.
MODEL_TYPES = (
    "deepseek_v2",
    "deepseek_v3",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "glm4",
    "glm4_moe",
    "gpt_oss",
    "kimi_k2",
    "llama",
    "mistral",
    "mixtral",
    "phi3",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_5",
    "qwen3_5_text",
)
_STORED = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_QUANTIZED = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "nvfp4": "fp4",
    "awq": "int4",
    "gptq": "int4",
}
_MOST_LAYERS = 10_000
_HEADS_FUSED_BY_EAGLE3 = 3  # low, middle and high hidden states (EAGLE-3, arXiv 2503.01840, §3.1)


def read_model(path: Path) -> Model:
    """Read the architecture and storage of a model from its Hugging Face `config.json`.

    Storage types come from `quantization_config`, from `hf_quant_config.json` beside the file, or
    from `dtype`/`torch_dtype`. EAGLE-3, DFlash and DSpark draft heads are read as well.

    Raises ScenarioError for a file that is not a config, an unknown `model_type` (with the nearest
    known one) and missing fields (with where each would be), all at once.
    """
    config = ConfigFields(read_config_json(path), str(path))
    model_type = str(config.whole.get("model_type", config.get("model_type", default="")))
    if model_type not in MODEL_TYPES:
        _refuse_type(config, model_type)
    layers = tuple(Layer(*kinds, count) for kinds, count in Counter(_layers(config)).items())
    model = Model(
        name=path.stem.removesuffix("config").rstrip("_-") or path.parent.name,
        hidden=config.count("hidden_size"),
        vocab=config.count("vocab_size"),
        layers=layers,
        tied_embeddings=bool(
            config.get("tie_word_embeddings", default=model_type.startswith("gemma"))
        ),
        **_storage(config, path),
        **_draft_head(config),
    )
    if config.faults:
        raise ScenarioError(config.faults)
    return model


def mtp_head(config_path: Path) -> Model:
    """Read the multi-token-prediction module that a config announces, as a draft head.

    One more layer like the target's last, a projection of embedding and hidden state (2h → h), and
    the target's own embedding and head (DeepSeek-V3, arXiv 2412.19437, §2.2).

    Raises ScenarioError where the config announces none.
    """
    target = read_model(config_path)
    config = ConfigFields(read_config_json(config_path), str(config_path))
    modules = config.optional("num_nextn_predict_layers", "mtp_num_hidden_layers")
    if config.faults:
        raise ScenarioError(config.faults)
    if not modules:
        right = "`num_nextn_predict_layers` or `mtp_num_hidden_layers`, 1 or more"
        raise ScenarioError(Fault("this model has no MTP module", right, file=str(config_path)))
    kinds = _layers(config)
    full = [kind for kind in kinds if not isinstance(kind[0], LinearAttention)]
    return replace(
        target,
        name=f"{target.name} MTP",
        layers=(Layer(*full[-1], 1),),
        tied_embeddings=False,
        fused_states=2,
        own_embedding=False,
        own_head=False,
    )


def _refuse_type(config: ConfigFields, model_type: str) -> None:
    if not model_type:
        right = "`model_type` at the top level, as in a model's config.json"
        raise ScenarioError(Fault("is missing", right, file=config.file, field="model_type"))
    close = nearest(model_type, MODEL_TYPES)
    right = f"did you mean {close!r}? known: {', '.join(MODEL_TYPES)}"
    if close is None:
        right = f"known: {', '.join(MODEL_TYPES)}"
    raise ScenarioError(
        Fault(f"{model_type!r} is not known", right, file=config.file, field="model_type")
    )


def _layers(config: ConfigFields) -> list[tuple[AnyAttention, Mlp]]:
    count = config.count("num_hidden_layers")
    if count > _MOST_LAYERS:
        config.fault("num_hidden_layers", f"is {count}", f"at most {_MOST_LAYERS}")
        return []
    kinds = config.listed("layer_types")
    if not kinds:
        # Only these alternate by a rule that the config implies; everyone else writes layer_types.
        window = (
            config.get("sliding_window") if config.get("use_sliding_window", default=True) else None
        )
        kinds = ["sliding_attention" if window else "full_attention"] * count
    if len(kinds) != count:
        config.fault(
            "layer_types", f"has {len(kinds)} entries", f"{count}, as num_hidden_layers says"
        )
    return [(_attention(config, kind), _mlp(config, index)) for index, kind in enumerate(kinds)]


def _attention(config: ConfigFields, kind: str) -> AnyAttention:
    heads = config.count("num_attention_heads")
    if kind == "linear_attention":
        return LinearAttention(
            config.count("linear_num_key_heads"),
            config.count("linear_num_value_heads"),
            config.count("linear_key_head_dim"),
            config.count("linear_value_head_dim"),
            config.count("linear_conv_kernel_dim"),
        )
    if config.optional("kv_lora_rank"):
        return LatentAttention(
            heads,
            config.optional("q_lora_rank"),
            config.count("kv_lora_rank"),
            config.count("qk_rope_head_dim"),
            config.count("qk_nope_head_dim"),
            config.count("v_head_dim"),
        )
    head_dim = config.optional("head_dim")
    if not head_dim:
        head_dim, left = divmod(config.count("hidden_size"), heads)
        if left and config.optional("hidden_size"):
            right = f"a `head_dim`, or a hidden_size that {heads} heads share"
            config.fault("head_dim", "is missing", right)
    kv_heads = config.optional("num_key_value_heads", default=heads) or heads
    sliding = kind in {"sliding_attention", "chunked_attention"}
    shared = bool(config.get("attention_k_eq_v", default=False)) and not sliding
    if not sliding:
        head_dim = config.optional("global_head_dim", default=head_dim)
        if shared:
            kv_heads = config.optional("num_global_key_value_heads", default=kv_heads)
    if heads % kv_heads:
        config.fault("num_key_value_heads", f"is {kv_heads}", f"a divisor of the {heads} heads")
    window = config.count("sliding_window", "attention_chunk_size") if sliding else 0
    gate = bool(config.get("attn_output_gate", default=False))
    return Attention(heads, kv_heads, head_dim, window, gate, shared)


def _mlp(config: ConfigFields, index: int) -> Mlp:
    experts = config.optional("n_routed_experts", "num_experts", "num_local_experts")
    sparse = bool(experts) and index >= config.optional("first_k_dense_replace")
    sparse = sparse and index not in config.listed("mlp_only_layers")
    every = config.optional("decoder_sparse_step", "moe_layer_freq", default=1) or 1
    sparse = sparse and (index + 1) % every == 0
    if not sparse:
        return Mlp(config.count("intermediate_size"))
    width = config.optional("moe_intermediate_size") or config.count("intermediate_size")
    shared = config.optional("shared_expert_intermediate_size")
    shared = shared or width * config.optional("n_shared_experts")
    if config.get("enable_moe_block"):  # Gemma 4 runs a dense block beside the experts
        shared = config.count("intermediate_size")
    top_k = config.count("num_experts_per_tok", "top_k_experts", "experts_per_token")
    if top_k > experts:
        config.fault("num_experts_per_tok", f"is {top_k}", f"at most the {experts} experts")
    return Mlp(shared, experts, top_k, width)


def _storage(config: ConfigFields, path: Path) -> dict[str, Any]:
    """Say in which type each part of the model is stored, as arguments of Model."""
    named = str(config.get("dtype", "torch_dtype", default="bfloat16"))
    wide = _STORED.get(named)
    if wide is None:
        config.fault("dtype", f"{named!r} is not known", f"one of {', '.join(_STORED)}")
        wide = "bf16"
    types = {f"{part}_dtype": wide for part in ("attention", "mlp", "expert", "head", "kv")}
    method, kept, kv_method = _quantization(config, path)
    if not method:
        return types
    narrow = _QUANTIZED.get(method)
    if narrow is None:
        right = f"one of {', '.join(_QUANTIZED)}"
        config.fault("quantization_config.quant_method", f"{method!r} is not known", right)
        return types
    types |= {"mlp_dtype": narrow, "expert_dtype": narrow}
    if not any("attn" in module for module in kept):
        types["attention_dtype"] = narrow
    if kv_method:
        types["kv_dtype"] = _QUANTIZED.get(kv_method, wide)
    return types


def _quantization(config: ConfigFields, path: Path) -> tuple[str, list[str], str]:
    """Find the quantisation method, the modules that are kept wide, and the cache's method."""
    inside = config.whole.get("quantization_config")
    if isinstance(inside, dict):
        method = str(inside.get("quant_method", "")).lower()
        if method in {"modelopt", "compressed-tensors"}:
            method = str(inside.get("quant_algo", method)).lower()
        kept = inside.get("modules_to_not_convert") or inside.get("ignore") or []
        return method, _texts(kept), ""
    beside = path.with_name(path.name.removesuffix("config.json") + "hf_quant_config.json")
    if beside.is_file():
        quantization = read_config_json(beside).get("quantization", {})
        if not isinstance(quantization, dict):
            right = "a block with quant_algo"
            raise ScenarioError(Fault("is no block", right, str(beside), field="quantization"))
        return (
            str(quantization.get("quant_algo") or "").lower(),
            _texts(quantization.get("exclude_modules")),
            str(quantization.get("kv_cache_quant_algo") or "").lower(),
        )
    return "", [], ""


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _draft_head(config: ConfigFields) -> dict[str, Any]:
    """Recognise a draft head by its architecture, as arguments of Model."""
    architecture = str((config.listed("architectures") or [""])[0])
    if architecture.endswith("Eagle3"):
        return {
            "input_width": 2,
            "fused_states": _HEADS_FUSED_BY_EAGLE3,
            "output_vocab": config.optional("draft_vocab_size"),
            "own_embedding": False,
        }
    if architecture in {"DFlashDraftModel", "DSparkDraftModel"}:
        own = config.get("dflash_config", default={})
        states = own.get("target_layer_ids") if isinstance(own, dict) else None
        fused = len(states) if isinstance(states, list) else 0
        return {"fused_states": fused, "own_embedding": False, "own_head": False}
    return {}
