"""Trees: Sequoia's values, and the dynamic program against every tree there is."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from specplan.models.acceptance import unconditional_from_alpha
from specplan.models.trees import (
    fastest_tree,
    full_tree,
    optimal_tree,
    tree_table,
    tree_unconditional,
)

# Sequoia acceptance-rate-vector.pt @0ff3ff71, printed to 4 digits: hence 1.5e-4 below, not 1e-5.
SEQUOIA = [0.6342, 0.1079, 0.057, 0.0225, 0.0195, 0.015, 0.0045, 0.003]
SEQUOIA_TOKENS = {
    1: 1.0,
    2: 1.63418,
    3: 2.03637,
    4: 2.29143,
    8: 2.73217,
    16: 3.13029,
    32: 3.50074,
    64: 3.85231,
}
ranks = st.lists(st.floats(0, 1), min_size=1, max_size=3).map(
    lambda values: (np.array(values) / max(1.0, sum(values))).tolist()
)


def test_sequoia_tokens_by_nodes() -> None:
    # published.json sequoia-tree, max_depth 10 with the root: 9 levels below it
    table = tree_table(SEQUOIA, 64, 9)
    for width, tokens in SEQUOIA_TOKENS.items():
        assert_allclose(table.tokens[9, width], tokens, atol=1.5e-4)
        nodes = table.tree(width, 9)
        assert len(nodes) == width - 1
        assert_allclose(1 + tree_unconditional(SEQUOIA, nodes).sum(), tokens, atol=1.5e-4)


def test_sequoia_demo_picks_four_nodes() -> None:
    # sequoia-tree demo: .3 a draft level; Sequoia charges one for the root, too
    verify_s = np.full(32, np.inf)
    verify_s[[0, 1, 3, 7, 15, 31]] = [10, 10, 10, 12, 14, 18]
    choice = fastest_tree(SEQUOIA, verify_s + 0.3, 0.3, max_depth=9)
    assert (choice.width, choice.depth + 1) == (4, 4)
    assert_allclose(choice.tpot_s, 4.887774, atol=2e-4)
    assert_allclose((10 + 0.0) / choice.tpot_s, 2.045921, atol=1e-4)


def test_a_chain_is_the_one_child_tree() -> None:
    chain = [(0,) * depth for depth in range(1, 6)]
    assert_allclose(tree_unconditional([0.7], chain), unconditional_from_alpha(0.7, 5), rtol=1e-12)


def test_full_tree_by_hand() -> None:
    assert len(full_tree(2, 3)) == 2 + 4 + 8
    assert_allclose(tree_unconditional([0.5, 0.3], full_tree(2, 3)), [0.8, 0.64, 0.512], rtol=1e-12)


def every_tree(choices: int, width: int) -> list[frozenset[tuple[int, ...]]]:
    """Every prefix-closed set of nodes in which a child of rank k has all siblings below k."""
    trees = {frozenset[tuple[int, ...]]()}
    for _ in range(width - 1):
        grown = set(trees)
        for tree, parent in [(known, node) for known in trees for node in (*known, ())]:
            for rank in range(choices):
                beside = all((*parent, lower) in tree for lower in range(rank))
                if beside and (*parent, rank) not in tree:
                    grown.add(tree | {(*parent, rank)})
        trees = grown
    return list(trees)


@settings(max_examples=25)
@given(ranks, st.integers(1, 5), st.integers(1, 4))
def test_optimal_tree_beats_every_tree(chances: list[float], width: int, depth: int) -> None:
    best = max(
        1 + tree_unconditional(chances, tree).sum()
        for tree in every_tree(len(chances), width)
        if max(map(len, tree), default=0) <= depth
    )
    nodes = optimal_tree(chances, width, depth)
    assert len(nodes) < width or width == 1
    assert max(map(len, nodes), default=0) <= depth
    assert_allclose(1 + tree_unconditional(chances, nodes).sum(), best, atol=1e-8)


@given(ranks, st.integers(2, 20))
def test_more_nodes_never_accept_less(chances: list[float], width: int) -> None:
    table = tree_table(chances, width, 6)
    assert (np.diff(table.tokens[:, 1:], axis=1) >= -1e-12).all()
    assert (np.diff(table.tokens[:, 1:], axis=0) >= -1e-12).all()
    assert table.tokens.max() <= 7


def test_expensive_verification_leaves_plain_decoding() -> None:
    choice = fastest_tree([0.9], [1.0, 3.0, 6.0], 0.1, max_depth=3)
    assert (choice.nodes, choice.width, choice.tpot_s) == ([], 1, 1.0)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([(0,), (1, 0)], r"node \[1, 0\] has no parent; list \[1\], too"),
        ([(0,), (0,)], r"node \[0\] is listed twice"),
        ([(2,)], r"uses rank 2 and 2 rank acceptances"),
    ],
)
def test_broken_trees_are_refused(nodes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tree_unconditional([0.6, 0.2], nodes)


def test_ranks_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"sum to 1\.2; at most one child"):
        optimal_tree([0.7, 0.5], 4)
    for bad in itertools.chain([-0.1], [1.5]):
        with pytest.raises(ValueError, match="rank acceptance is"):
            optimal_tree([bad], 4)
