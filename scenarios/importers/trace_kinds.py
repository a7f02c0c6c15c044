"""The public trace formats: what gives a file away, and which of its fields are read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One family of files: the fields that give it away, and the three that are read.

    `ticks` is how many ticks of its clock are a second; 0 for times of day, None for no time.
    """

    name: str
    fields: frozenset[str]
    time: str
    prompt: str
    output: str
    ticks: int | None
    hash_block_tokens: int = 0


def kind(name: str, read: str, ticks: int | None, also: str = "", block: int = 0) -> Kind:
    """Describe a kind; `read` names time, prompt and output field, apart by bars."""
    time, prompt, output = (part.strip() for part in read.split("|"))
    fields = {time, prompt, output, *also.split("|")} - {""}
    return Kind(name, frozenset(fields), time, prompt, output, ticks, block)


# Of several kinds that fit, the first counts: those with more fields stand before those with fewer.
KINDS = (
    kind("azure", "TIMESTAMP|ContextTokens|GeneratedTokens", 0),
    kind("burstgpt", "Timestamp|Request tokens|Response tokens", 1, "Model|Total tokens"),
    kind("vidur", "arrived_at|num_prefill_tokens|num_decode_tokens", 1),
    kind("splitwise", "arrival_timestamp|prompt_size|token_size", 1),
    kind("bailian", "timestamp|input_length|output_length", 1, "chat_id|turn", block=16),
    kind("mooncake", "timestamp|input_length|output_length", 1000, block=512),
    kind("llmservingsim", "arrival_time_ns|input_toks|output_toks", 10**9),
    kind("llmservingsim-bench", "queued_ts|input_toks|output_toks", 1),
    kind("dsdsim", "arrival_ms|prompt_tokens|target_tokens", 1000),
    kind("specplan", "arrival_s|prompt_tokens|output_tokens", 1),
)
LENGTHS_ONLY = (
    kind("vidur lengths", "|num_prefill_tokens|num_decode_tokens", None),
    kind("lengths", "|prompt_tokens|output_tokens", None),
    kind("llmservingsim lengths", "|input_toks|output_toks", None),
    kind("mooncake lengths", "|input_length|output_length", None),
)
