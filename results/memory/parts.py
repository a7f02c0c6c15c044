"""What lies in the memory of one engine's fullest GPU, without a draft and with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specplan.scenarios.memory import DoesNotFitError, pool_of

if TYPE_CHECKING:
    from specplan.scenarios.memory import Pool
    from specplan.scenarios.schema import Scenario

PLAIN, SPECULATION = "plain decoding", "speculation"


@dataclass(frozen=True)
class Held:
    """One way to decode: bytes by what holds them, and the pool that is left.

    `pool` is None where the parts leave nothing for it, and `refused` says why. `parts` are empty
    where the scenario states blocks or tokens: their bytes are not known.
    """

    name: str
    pool: Pool | None
    parts: dict[str, float]
    refused: str = ""


def held(scenario: Scenario) -> list[Held]:
    """List what one engine holds: plain, and with its draft where that takes memory from it.

    Raises ScenarioError where the plain cache cannot be sized, or a config cannot be read.
    """
    plain = pool_of(scenario, with_draft=False)
    if plain is None:
        return []
    found = [_held(scenario, PLAIN, plain)]
    if takes_memory(scenario):
        try:
            drafting = pool_of(scenario, with_draft=True)
        except DoesNotFitError as error:
            found.append(Held(SPECULATION, None, {}, error.faults[0].wrong))
        else:
            assert drafting is not None  # the cache is the same one
            found.append(_held(scenario, SPECULATION, drafting))
    return found


def takes_memory(scenario: Scenario) -> bool:
    """Tell whether the scenario says of a draft on the target's GPUs what it takes from them."""
    cache = scenario.kv_cache
    if cache is None or scenario.draft.placement != "colocated":
        return False
    if cache.stated:
        stated = (cache.plain_tokens, cache.draft_weights, cache.draft_bytes_per_token)
        return any(stated)
    return cache.draft is not None or scenario.draft.step.roofline is not None


def _held(scenario: Scenario, name: str, pool: Pool) -> Held:
    cache, drafting = scenario.kv_cache, name == SPECULATION
    if pool.memory is not None:
        share = pool.memory.shares[pool.memory.limiting_gpu]
        own = pool.memory.target.kv_bytes_per_token(len(pool.memory.shares))
        return Held(name, pool, {
            "target": share.target_bytes,
            "draft": share.draft_bytes,
            "reserve": share.reserve_bytes,
            "KV of the draft": pool.tokens * (share.kv_bytes_per_token - own),
            "KV of the target": pool.tokens * own,
        })  # fmt: skip
    if cache is None or cache.memory is None or cache.bytes_per_token is None:
        return Held(name, pool, {})
    return Held(name, pool, {
        "draft": drafting * cache.draft_weights,
        "KV of the draft": drafting * pool.tokens * cache.draft_bytes_per_token,
        "KV of the target": pool.tokens * cache.bytes_per_token,
    })  # fmt: skip
