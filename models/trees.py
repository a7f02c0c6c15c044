"""Trees of proposals: the law of the accepted depth, and the best tree for a budget of nodes.

A node is the ranks on its path from the root: (0,) the draft's first choice, (0, 1) the second
choice after it. `ranks` (choices,) is the chance that the child of each rank is the one accepted,
given its parent was (Sequoia's acceptance vector, Chen et al. 2024); at most one child is.
The root is the last committed token: the target verifies len(nodes) + 1 positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import ROUNDING, probabilities

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Node = tuple[int, ...]


def checked_ranks(ranks: ArrayLike) -> Floats:
    """Return ranks (choices,) once they are probabilities of events that exclude each other."""
    chances = np.atleast_1d(probabilities(ranks, "rank acceptance"))
    if chances.sum() > 1 + ROUNDING:
        raise ValueError(
            f"rank acceptances sum to {chances.sum():g}; at most one child is accepted"
        )
    return chances


def tree_unconditional(ranks: ArrayLike, nodes: Iterable[Node]) -> Floats:
    """A_i = Σ over nodes at depth i of Π ranks on the path: chance to accept depth i or more.

    tokens per round = 1 + Σ A_i (Sequoia, Chen et al. 2024, Eq. 1). A chain is the one-child tree.
    → (depth,). Raises ValueError on a node without its parent, listed twice, or of unknown rank.

    >>> tree_unconditional([0.6, 0.2], [(0,), (1,), (0, 0)]).round(12).tolist()
    [0.8, 0.36]
    """
    chances = checked_ranks(ranks)
    known: dict[Node, float] = {(): 1.0}
    for node in sorted((tuple(node) for node in nodes), key=len):
        if node in known:
            raise ValueError(f"node {list(node)} is listed twice; list each path once")
        if node[:-1] not in known:
            raise ValueError(f"node {list(node)} has no parent; list {list(node[:-1])}, too")
        if not 0 <= node[-1] < len(chances):
            raise ValueError(
                f"node {list(node)} uses rank {node[-1]} and {len(chances)} rank acceptances are "
                f"given; it needs ranks 0..{node[-1]}"
            )
        known[node] = known[node[:-1]] * float(chances[node[-1]])
    unconditional = np.zeros(max(map(len, known)))
    for node, chance in known.items():
        if node:
            unconditional[len(node) - 1] += chance
    return unconditional


def full_tree(width: int, depth: int) -> list[Node]:
    """Every node of a tree in which each node above the last level has `width` children.

    >>> full_tree(2, 1)
    [(0,), (1,)]
    """
    level: list[Node] = [()]
    nodes: list[Node] = []
    for _ in range(depth):
        level = [(*node, rank) for node in level for rank in range(width)]
        nodes += level
    return nodes


@dataclass(frozen=True, slots=True, eq=False)
class TreeTable:
    """Most tokens per round for every depth and budget, and the choices that reach them.

    - tokens (depths+1, width+1): F[d, n] with at most n nodes (root included) and d levels below it
    - share (depths+1, choices+1, width+1): nodes given to the child of rank k when m are left for
      the children of rank k and later; 0 = no such child
    """

    tokens: Floats
    share: NDArray[np.int64]

    def tree(self, width: int, depth: int) -> list[Node]:
        """Return the nodes of the best tree of `width` nodes (root included) and `depth` levels."""
        nodes: list[Node] = []
        pending: list[tuple[Node, int, int]] = [((), width, depth)]
        while pending:
            node, size, levels = pending.pop()
            left, rank = size - 1, 0
            while left > 0 and (own := int(self.share[levels, rank, left])) > 0:
                child = (*node, rank)
                nodes.append(child)
                pending.append((child, own, levels - 1))
                left, rank = left - own, rank + 1
        return sorted(nodes, key=lambda node: (len(node), node))


def tree_table(ranks: ArrayLike, width: int, max_depth: int) -> TreeTable:
    """Solve Sequoia's dynamic program for all budgets up to `width` and depths up to `max_depth`.

    F[d, n] = 1 + C[d, 0, n−1]; C[d, k, m] = max(0, max_s ranks_k·F[d−1, s] + C[d, k+1, m−s])
    (Chen et al. 2024, §3.1): a child of rank k needs those of smaller rank beside it. Depth counts
    levels below the root; Sequoia's own code counts the root, too.

    >>> tree_table([0.6, 0.2], 3, 4).tokens[4].round(6).tolist()
    [0.0, 1.0, 1.6, 1.96]
    """
    chances = checked_ranks(ranks)
    if width < 1 or max_depth < 0:
        raise ValueError(f"width is {width} and max_depth {max_depth}; at least 1 and 0")
    tokens = np.ones((max_depth + 1, width + 1))
    tokens[:, 0] = 0.0
    share = np.zeros((max_depth + 1, len(chances) + 1, width + 1), dtype=np.int64)
    left, given = np.arange(width), np.arange(1, width)
    rest = left[:, None] - given  # nodes for the later ranks; `width` where more than left is given
    rest[rest < 0] = width
    deepest = max_depth if width > 1 else 0  # a root alone has no levels
    for depth in range(1, deepest + 1):
        later = np.zeros(width + 1)
        for rank in range(len(chances) - 1, -1, -1):
            later[width] = -np.inf
            sums = chances[rank] * tokens[depth - 1, 1:width] + later[rest]
            pick = sums.argmax(axis=1)
            best = np.append(sums[left, pick], 0.0)
            share[depth, rank] = np.where(best > ROUNDING, np.append(pick + 1, 0), 0)
            later = np.where(best > ROUNDING, best, 0.0)
        tokens[depth, 1:] = 1 + later[:-1]
        if np.array_equal(tokens[depth], tokens[depth - 1]):  # no tree gains from more levels
            tokens[depth + 1 :], share[depth + 1 :] = tokens[depth], share[depth]
            break
    return TreeTable(tokens, share)


def optimal_tree(ranks: ArrayLike, width: int, max_depth: int | None = None) -> list[Node]:
    """Return the nodes of the tree with most tokens per round that the target verifies in `width`.

    width counts the root, as the verify pass does; max_depth absent = as deep as nodes allow.

    >>> optimal_tree([0.6, 0.2], 4)
    [(0,), (0, 0), (0, 0, 0)]
    """
    depth = width - 1 if max_depth is None else min(max_depth, width - 1)
    return tree_table(ranks, width, depth).tree(width, depth)


@dataclass(frozen=True, slots=True, eq=False)
class TreeChoice:
    """The tree that commits tokens fastest for given costs; width counts the root."""

    nodes: list[Node]
    width: int
    depth: int
    tokens_per_round: float
    tpot_s: float


def fastest_tree(
    ranks: ArrayLike,
    verify_s: ArrayLike,
    draft_level_s: float,
    *,
    max_depth: int,
    overhead_s: float = 0.0,
) -> TreeChoice:
    """Minimise (depth·d + V(n) + overhead)/F[depth, n] over depths and widths (Sequoia §3.3).

    verify_s (widths,): seconds of the pass at width 1, 2, …; width 1 is plain decoding, without
    overhead. inf marks a width that is not available.

    >>> fastest_tree([0.6, 0.2], [1.0, 1.0, 1.1, 1.8], 0.1, max_depth=3).nodes
    [(0,), (0, 0)]
    """
    seconds = np.asarray(verify_s, dtype=np.float64)
    width = len(seconds)
    table = tree_table(ranks, width, min(max_depth, max(width - 1, 0)))
    depths = np.arange(table.tokens.shape[0])[:, None]
    rounds = depths * draft_level_s + seconds + overhead_s * (depths > 0)
    per_token = rounds / table.tokens[:, 1:]
    depth, column = np.unravel_index(int(np.argmin(per_token)), per_token.shape)
    best = per_token[depth, column]
    return TreeChoice(
        table.tree(int(column) + 1, int(depth)),
        int(column) + 1,
        int(depth),
        float(table.tokens[depth, column + 1]),
        float(best),
    )
