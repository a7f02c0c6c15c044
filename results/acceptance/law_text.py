"""What `specplan law` prints: one table a position, then what the numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from specplan.results.tables import columns

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

TOKENS_SHOWN = 20
"""Rows a table holds; the JSON always has all of them."""

_COLUMNS = ("token", "p", "q", "accept", "accepted mass", "residual", "output", "p redrawn")


def law_text(json: dict[str, Any]) -> RenderableType:
    """Render the object of `law_answer.law_answer`."""
    parts: list[RenderableType] = []
    for number, row in enumerate(json["positions"], start=1):
        parts += [_table(row, number), _sentences(row)]
    if len(json["conditional"]) > 1:
        listed = ", ".join(f"{value:.4g}" for value in json["conditional"])
        parts.append(
            Text(
                f"conditional acceptance {listed}: {json['tokens_per_round']:.4g} tokens per round"
            )
        )
    if "monte_carlo" in json:
        parts.append(_experiment(json["monte_carlo"]))
    return Group(*parts)


def _table(row: dict[str, Any], number: int) -> Table:
    rows = []
    order = sorted(range(len(row["p"])), key=lambda x: -max(row["p"][x], row["q"][x]))
    for token in sorted(order[:TOKENS_SHOWN]):
        residual = row["residual"]
        cells = (
            row["p"][token],
            row["q"][token],
            row["acceptance"][token],
            row["accepted_mass"][token],
            None if residual is None else residual[token],
            row["output"][token],
            row["unchanged_target"]["output"][token],
        )
        rows.append([str(token), *("–" if cell is None else f"{cell:.4f}" for cell in cells)])
    table = columns(_COLUMNS, rows)
    table.title, table.title_justify = f"position {number}", "left"
    if len(order) > TOKENS_SHOWN:
        table.caption = f"the {TOKENS_SHOWN} likeliest of {len(order)} tokens; --json has all"
    return table


def _sentences(row: dict[str, Any]) -> Text:
    proof, shortcut, greedy = row["proof"], row["unchanged_target"], row["greedy"]
    does = "corrects" if row["beta_exact"] == row["beta"] else "is drawn from and does not correct"
    residual = (
        f"on rejection ({row['rejected_mass']:.6g}) the residual {does}"
        if row["residual"] is not None
        else "p = q: nothing is rejected and the residual does not exist"
    )
    verdict = "the target law" if proof["equals_target"] else "NOT the target law"
    agree = "accepts" if greedy["acceptance"] else "rejects"
    return Text(
        f"{_acceptance(row)}; {residual}\n"
        f"output law sums to {proof['output_sum']:.12g}, largest difference from p "
        f"{proof['largest_error']:.3g}: {verdict}\n"
        f"drawing from p instead of the residual is off by {shortcut['largest_error']:.4g} on one "
        f"token, {shortcut['total_variation']:.4g} in total variation\n"
        f"independent matching Σ p q would accept {row['independent_matching']:.6g}; greedy "
        f"{agree} (argmax {greedy['target_token']} of p, {greedy['draft_token']} of q)\n"
    )


def _acceptance(row: dict[str, Any]) -> str:
    exact = f"β = Σ min(p, q) = {row['beta_exact']:.6g}"
    if row["beta_exact"] == row["beta"]:
        return exact
    return f"lenient acceptance Σ q min(1, p/(l q)) = {row['beta']:.6g} beside {exact}"


def _experiment(run: dict[str, Any]) -> Text:
    exact = run.get("tokens_per_round_exact")
    beside = "" if exact is None else f" (exact {exact:.4f})"
    if not run["target_law_preserved"]:
        verdict = "REFUTES the target law"
    elif not run["degrees_of_freedom"]:
        verdict = "nothing to test (one token is certain, or too few --draws)"
    elif run["rule"] == "exact":
        verdict = "agrees with the target law"
    else:
        verdict = "does not refute the target law yet (more --draws)"
    statistic = "∞" if run["chi_square"] is None else f"{run['chi_square']:.2f}"
    return Text(
        f"Monte Carlo, rule {run['rule']}, γ {run['gamma']}, {run['draws']:,} rounds, seed "
        f"{run['seed']}: {run['tokens_per_round']:.4f} tokens per round{beside}\n"
        f"χ² {statistic} on {run['degrees_of_freedom']} degrees of freedom, p-value "
        f"{run['p_value']:.3g}: {verdict}"
    )
