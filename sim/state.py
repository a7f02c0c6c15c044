"""What one simulation holds in memory: requests, lanes and replicas as rows of NumPy records.

A *replica* is one engine: a queue, a KV cache, its GPUs. A *lane* is one running batch of a
replica; there are two where a dedicated draft GPU is kept busy by ping-pong, otherwise one.
All times are seconds of simulated time, all counts tokens, sequences or KV blocks.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specplan.sim.compiled import interpreted

# numba compiles a function once more for every literal it is called with; NumPy integers are none.
COMPLETED, ABORTED, REJECTED, UNFINISHED = np.arange(4)
NOBODY = np.int64(-1)

REQUEST = np.dtype(
    [
        ("arrival_s", "f8"),
        ("admitted_s", "f8"),
        ("first_token_s", "f8"),
        ("last_chunk_s", "f8"),
        ("finish_s", "f8"),
        ("deadline_s", "f8"),  # the client hangs up; inf: never
        ("request", "i8"),
        ("key", "u8"),  # of its luck
        ("prompt_tokens", "i8"),
        ("output_tokens", "i8"),
        ("left", "i8"),  # output tokens still to commit
        ("to_prefill", "i8"),  # positions still to prefill before it decodes
        ("cached_tokens", "i8"),  # prompt positions found in the prefix cache
        ("rounds", "i8"),
        ("drafted_tokens", "i8"),
        ("accepted_tokens", "i8"),
        ("blocks", "i8"),  # KV blocks held by it alone
        ("shared", "i8"),  # leading prompt blocks it holds through the prefix cache
        ("next", "i8"),  # the request behind it in its queue
        ("alpha", "f8"),  # its own acceptance, where requests differ; NaN: its law's list
        ("preemptions", "i8"),
        ("cls", "i8"),
        ("priority", "i8"),  # 0 is served first
        ("law", "i8"),  # row of the acceptance table
        ("replica", "i8"),
        ("status", "i8"),
        # This step's plan for it:
        ("chunk", "i8"),  # prompt positions in the pass
        ("proposed", "i8"),  # draft depth g; -1: not in this step
        ("accepted", "i8"),
        ("gamma", "i8"),  # its own γ under a schedule that adapts per request
        ("caught_up", "i8"),  # 0: the draft has not ingested its own last token
    ],
    align=True,
)

LANE = np.dtype(
    [
        ("clock_s", "f8"),  # when its next step may start
        ("replica", "i8"),
        ("running", "i8"),
        ("finished_last_step", "i8"),
        ("gamma_held", "i8"),  # γ a policy keeps; of goodput, for how many steps yet
        ("hold_steps", "i8"),
        ("batch_held", "i8"),  # the batch that a schedule with hysteresis goes by
        ("steps_asked", "i8"),  # in a row, for another γ than the one that is held
        # Where GPUs are shared (`sim.contention`):
        ("stage", "i8"),
        ("asked_s", "f8"),  # since when it waits
        ("drafted_s", "f8"),  # when its drafts are at the target
        ("gamma_learned", "i8"),  # state of the Hugging Face heuristic between requests
        # The planned step:
        ("start_s", "f8"),
        ("draft_prefill_s", "f8"),
        ("draft_s", "f8"),
        ("prefill_s", "f8"),
        ("verify_s", "f8"),
        ("overhead_s", "f8"),
        ("decodes", "i8"),
        ("drafting", "i8"),
        ("tokens", "i8"),
        ("proposed_tokens", "i8"),
    ],
    align=True,
)

REPLICA = np.dtype(
    [
        ("draft_free_s", "f8"),  # its draft GPU is busy until then
        ("target_free_s", "f8"),
        ("free_blocks", "i8"),
        ("cached_blocks", "i8"),  # KV blocks of the prefix cache, and those nobody runs with
        ("idle_blocks", "i8"),
        ("oldest_idle", "i8"),
        ("newest_idle", "i8"),
        ("waiting", "i8"),
        ("inbox_head", "i8"),  # assigned arrivals whose time has not come
        ("inbox_tail", "i8"),
        ("assigned", "i8"),
        ("finished", "i8"),
        ("earliest_finish_s", "f8"),  # of those whose end SimPy has not seen yet
        # Totals of the run:
        ("prefill_s", "f8"),
        ("draft_prefill_s", "f8"),
        ("draft_s", "f8"),
        ("verify_s", "f8"),
        ("overhead_s", "f8"),
        ("wasted_draft_s", "f8"),
        ("engine_steps", "i8"),
        ("rounds", "i8"),
        ("drafted_tokens", "i8"),
        ("accepted_tokens", "i8"),
        ("discarded_tokens", "i8"),  # drafted ahead in `parallel` placement and thrown away
        ("preemptions", "i8"),
        ("gaps", "i8"),
        ("gaps_s", "f8"),
        ("gaps_squared", "f8"),
        ("gap_min_s", "f8"),
        ("gap_max_s", "f8"),
        ("samples", "i8"),
        ("sample_every", "i8"),
        ("spans", "i8"),
    ],
    align=True,
)

CONFIG = np.dtype(
    [
        ("mask", "i8"),  # rows of the request ring, minus one
        ("lookahead", "i8"),  # positions a sequence may write beyond its output: the widest pass
        ("prefill_chunk", "i8"),  # most prompt positions of one request in one pass
        ("max_num_seqs", "i8"),
        ("lanes", "i8"),  # per replica
        ("max_num_batched_tokens", "i8"),
        ("chunked_prefill", "i8"),
        ("prefill_first", "i8"),
        ("has_prompts", "i8"),
        ("blocks", "i8"),  # KV blocks of a replica; 0: unlimited
        ("block_tokens", "i8"),
        ("watermark_blocks", "i8"),
        ("prefix_tokens", "i8"),  # prompt tokens that a hash id stands for; 0: no prefix cache
        ("prefix_blocks", "i8"),  # KV blocks of those
        ("gamma", "i8"),
        ("gamma_min", "i8"),
        ("gamma_max", "i8"),
        ("policy", "i8"),
        ("hold_steps", "i8"),
        ("hysteresis", "i8"),  # running sequences
        ("patience", "i8"),  # engine steps
        ("placement", "i8"),
        ("pool_gpus", "i8"),  # draft GPUs that all replicas share
        ("draft_batch", "i8"),  # sequences that one of them serves in a step; 0: all
        ("engines_per_gpu", "i8"),
        ("transfer_s", "f8"),
        ("overhead_s", "f8"),
        ("enabled_factor", "f8"),  # on decode passes of the target while speculation is configured
        ("draft_call_s", "f8"),  # fixed cost of drafting in a step in which anybody drafts
        ("one_pass", "i8"),
        ("lengths_vary", "i8"),  # a proposal may end before γ: Tables.proposing
        ("extra_draft_step", "i8"),
        ("stop_if_accepted", "f8"),  # chance that drafting ends after a token that will be kept
        ("stop_if_rejected", "f8"),
        ("gamma_increase", "i8"),
        ("gamma_decrease", "i8"),
        ("joint_prefill", "i8"),  # the target's round cost prices prompt positions too
        ("context_matters", "i8"),
        ("check_blocks", "i8"),
        ("warmup_requests", "i8"),  # gaps between chunks count from this request on
        ("warmup_s", "f8"),  # and of arrivals from this moment on
        ("spans_from_s", "f8"),  # where the timeline begins
    ],
    align=True,
)

SAMPLE = np.dtype(
    [("time_s", "f8"), ("running", "i8"), ("waiting", "i8"), ("kv_blocks", "i8"), ("replica", "i8")]
)
SPAN = np.dtype(
    [
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("replica", "i4"),
        ("gpu", "i4"),  # 0 target, 1 draft
        ("phase", "i4"),  # index into PHASES
        ("sequences", "i4"),
    ]
)
PHASES = ("prefill", "draft", "verify", "overhead")
PREFILL, DRAFT, VERIFY, OVERHEAD = np.arange(4)
TARGET_GPU, DRAFT_GPU = np.arange(2)

PREFIX = np.dtype(
    [
        ("holders", "i8"),  # requests that run with the block; −1: it is not kept
        ("older", "i8"),  # its neighbours among those that nobody runs with
        ("newer", "i8"),
    ]
)

GPU = np.dtype(
    [
        ("free_s", "f8"),  # it is busy until then
        ("busy_s", "f8"),
        ("waiting", "i8"),  # lanes; those for any draft GPU are counted at the first
    ]
)

COLOCATED, DEDICATED, SHARED, PARALLEL = range(4)
PLACEMENTS = ("colocated", "dedicated", "shared", "parallel")


class Tables(NamedTuple):
    """What does not change during a run."""

    costs: NDArray[np.float64]  # all cost models, one behind the other
    cost_index: NDArray[np.int64]  # (costs, 7): where each begins, see `sim.pricing`
    unconditional: NDArray[np.float64]  # (laws, γ_max + 1): h, h A_1, h A_2, …; h: n-gram hit
    proposing: NDArray[np.float64]  # (γ_max + 1,): 1, S_1, S_2, …: rounds that propose so many
    nodes: NDArray[np.int64]  # (γ_max + 1,): drafted tokens down to depth g; a chain has g
    gamma_by_batch: NDArray[np.int64]  # (max_num_seqs + 1,)
    tokens_by_gamma: NDArray[np.float64]  # (γ_max + 1,): E, for the goodput policy
    recorded: NDArray[np.int64]  # accepted lengths to replay; empty: none
    prefix_ids: NDArray[np.int64]  # hash ids of all prompts, numbered 0, 1, …
    prefix_starts: NDArray[np.int64]  # (prompts + 1,): where each prompt's begin
    by_depth: NDArray[np.int64]  # scratch: sequences still drafting at each depth


class Engine(NamedTuple):
    """What changes: rows that the compiled loop reads and writes."""

    requests: Any  # rows of REQUEST, a ring: row = request & mask
    lanes: Any  # rows of LANE
    replicas: Any  # rows of REPLICA
    running: NDArray[np.int64]  # (lanes, max_num_seqs): requests in order of admission
    queues: NDArray[np.int64]  # (replicas, priorities, 2): first and last waiting request
    cached: Any  # (replicas, hash ids) of PREFIX
    batch_time_s: NDArray[np.float64]  # (max_num_seqs + 1,)
    gaps: NDArray[np.float64]  # (2, bins): count and sum of the gaps between chunks, by length
    samples: Any  # (replicas, SAMPLES) of SAMPLE
    spans: Any  # (replicas, spans kept) of SPAN
    ended: NDArray[np.int64]  # [0]: how many; then the requests that ended, for SimPy to see
    kept_rounds: NDArray[np.int64]  # (γ_max + 1,): rounds that drafted, by tokens kept
    second_tokens: NDArray[np.int64]  # (seconds,): output tokens in each second of simulated time
    gpus: Any  # rows of GPU: the draft pool, then targets that engines take turns on


def rows(count: int | tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Allocate zeroed rows, whose fields the loop reads as attributes.

    numba does that with plain structured arrays, which it also recognises much faster; run as plain
    Python, the loop needs record arrays.
    """
    made = np.zeros(count, dtype)
    return made.view(np.recarray) if interpreted else made
