"""The block about a tree: its nodes, a full tree, or the best tree for a budget of nodes."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar, Self

from annotated_types import Ge, Le
from pydantic import Field, field_validator, model_validator

from specplan.models.trees import full_tree, optimal_tree
from specplan.scenarios.fields import Choice, Whole, fault

Paths = tuple[tuple[int, ...], ...]
DEEPEST = 64  # levels of any tree that is made here
LARGEST_BUDGET = 256  # the dynamic program takes ranks · budget² steps a level


class Tree(Choice):
    """A tree of proposals: its nodes, a full tree, or the best tree for a budget of nodes."""

    alternatives: ClassVar = ("nodes", "width", "budget")
    belongs: ClassVar = {"depth": ("width", "budget")}

    nodes: (
        Annotated[
            tuple[
                Annotated[tuple[Annotated[Whole, Ge(0), Le(255)], ...], Field(min_length=1)], ...
            ],
            Field(min_length=1, max_length=4096),
        ]
        | None
    ) = Field(
        default=None,
        description="Each node by the ranks on its path from the root, as in Medusa's choices: "
        "`[[0], [1], [0, 0]]`.",
    )
    width: Annotated[Whole, Ge(1), Le(64)] | None = Field(
        default=None, description="Children of every node of a full tree."
    )
    budget: Annotated[Whole, Ge(2), Le(LARGEST_BUDGET)] | None = Field(
        default=None,
        description="Positions of a verify pass at most, the root (last committed token) "
        "included: of all trees with so many nodes, the one that keeps most tokens for "
        "`speculation.acceptance.ranks` (Sequoia's dynamic program).",
    )
    depth: Annotated[Whole, Ge(1), Le(DEEPEST)] | None = Field(
        default=None,
        description=f"Levels of a full tree; of a budget's tree, the most (absent: {DEEPEST}).",
    )

    @field_validator("nodes")
    @classmethod
    def _rooted(cls, nodes: Paths | None) -> Paths | None:
        known = set(nodes or ())
        if len(known) < len(nodes or ()):
            raise fault("a node is listed twice", "each path once")
        for node in nodes or ():
            if len(node) > 1 and node[:-1] not in known:
                raise fault(
                    f"node {list(node)} has no parent", f"list {list(node[:-1])} as a node, too"
                )
        return nodes

    @model_validator(mode="after")
    def _full(self) -> Self:
        if self.budget is None and (self.width is None) != (self.depth is None):
            raise fault("a full tree needs width and depth", "`{width: 2, depth: 3}`")
        if self.width and self.depth and self.width**self.depth > 4096:
            raise fault(
                f"a full tree of width {self.width} and depth {self.depth} is too large",
                "at most 4096 leaves; list the `nodes` of a pruned tree",
            )
        return self

    def paths(self, ranks: tuple[float, ...] = ()) -> Paths:
        """Every node as the ranks on its path, parents before children.

        ranks: the acceptance of each rank, by which a budget is spent; without them it is empty.

        >>> Tree(budget=4).paths((0.6, 0.2))
        ((0,), (0, 0), (0, 0, 0))
        """
        if self.nodes is not None:
            return tuple(sorted(self.nodes, key=lambda node: (len(node), node)))
        if self.budget is not None:
            return _best_paths(ranks, self.budget, self.depth or DEEPEST) if ranks else ()
        return tuple(full_tree(self.width or 0, self.depth or 0))


@lru_cache(maxsize=256)  # asked for at every γ and every price of a scenario
def _best_paths(ranks: tuple[float, ...], budget: int, depth: int) -> Paths:
    return tuple(optimal_tree(ranks, budget, depth))
