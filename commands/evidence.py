"""Commands about acceptance: law, acceptance import, convert, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, ForceFile, ScenarioName, Sets, new_path, old_path, show

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def law(  # noqa: PLR0917
    source: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="p and q by position: YAML, JSON or a scenario."),
    ] = None,
    p: Annotated[
        list[str] | None,
        typer.Option("--p", metavar="P,P,…", help="Target law. Repeat for positions."),
    ] = None,
    q: Annotated[
        list[str] | None,
        typer.Option("--q", metavar="Q,Q,…", help="Draft law. Repeat for positions."),
    ] = None,
    bonus: Annotated[
        str | None,
        typer.Option(metavar="P,P,…", help="Target law after the last draft; absent: its p."),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Applied to both laws; 0 is greedy.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="0 keeps all tokens.")] = 0,
    top_p: Annotated[float, typer.Option(help="1 keeps all tokens.")] = 1.0,
    min_p: Annotated[float, typer.Option(help="0 keeps all tokens.")] = 0.0,
    lenience: Annotated[
        float, typer.Option(help="l of min(1, p/(l q)); below 1 changes the output law.")
    ] = 1.0,
    gamma: Annotated[int | None, typer.Option(help="Repeat a single position so often.")] = None,
    draws: Annotated[int, typer.Option(help="Rounds of a Monte Carlo run; 0: exact only.")] = 0,
    seed: Annotated[int, typer.Option(help="Start of the Monte Carlo run.")] = 1,
    rule: Annotated[
        str,
        typer.Option(help="exact, or a wrong one to see it fail: unchanged_target, skip_rejected."),
    ] = "exact",
    as_json: AsJson = False,
) -> None:
    """Show what accept and reject make of p and q.

    Acceptance, residual and output law at each position, exactly and by Monte Carlo. The exit code
    is 1 when the output is not the target law, by the sums or by the run.

    Example: specplan law --p .6,.3,.1 --q .5,.25,.25 --draws 100000
    """

    def answer() -> Answer:
        from specplan.results.acceptance.law_answer import law_answer
        from specplan.results.acceptance.law_question import law_question, stated_laws

        question = law_question(
            stated_laws(source, p or (), q or (), bonus),
            (temperature, top_k, top_p, min_p),
            lenience=lenience,
            gamma=gamma,
            draws=draws,
            seed=seed,
            rule=rule,
        )
        return law_answer(question)

    show(answer, as_json)


def acceptance_import(  # noqa: PLR0917
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            parser=old_path,
            help="Metrics, logs, benchmark results, of any kind.",
        ),
    ],
    model: Annotated[str, typer.Option(help="Keep one model of several.")] = "",
    gamma: Annotated[
        int | None,
        typer.Option(min=1, help="Keep one draft length; state it where a file lacks it."),
    ] = None,
    label: Annotated[str, typer.Option(help="Keep one condition or run of several.")] = "",
    delta: Annotated[
        bool, typer.Option("--delta", help="Two scrapes of one server, the earlier first.")
    ] = False,
    separate: Annotated[
        bool, typer.Option("--separate", help="Scrapes of several servers, added up.")
    ] = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            parser=new_path,
            help="Write the block into this new file.",
        ),
    ] = None,
    force: ForceFile = False,
) -> None:
    """Read what engines write and print a block for a scenario.

    The kind of a file is seen from its content. What was dropped, and why, stands in comments.
    The exit code is 1 when the files say nothing about acceptance.

    Example: specplan acceptance import before.prom after.prom --delta
    """

    def answer() -> Answer:
        from specplan.results.acceptance.import_answer import import_answer

        return import_answer(
            files,
            model=model,
            gamma=gamma,
            label=label,
            delta=delta,
            separate=separate,
            output=output,
            force=force,
        )

    show(answer, as_json)


def convert(context: typer.Context, sets: Sets = None, as_json: AsJson = False) -> None:
    """Turn any acceptance figure into all others.

    Figures are written NAME=VALUE (or --NAME VALUE); a scenario may stand in their place. What can
    be read in several ways is shown in each, with what would settle it.

    Named by what they are: alpha, acceptance_length (with the bonus), accepted_per_round (without:
    TensorRT-LLM), acceptance_rate (accepted/drafted), efficiency (also the old SGLang rate),
    share_of_output, conditional, unconditional, histogram. Unknown meaning: length, rate,
    positions. Counters: accepted, drafted, drafts, emitted, requests, accepted_per_position,
    drafted_per_position; without them draft_probability, the share of rounds that draft. Sweeps:
    lengths_by_gamma, rates_by_gamma (1:1.8,2:2.4). Clocks: itl, tpot, speedup, round_cost,
    tokens_per_s. Beside them: gamma or block_size, engine, fill, dataset, batch (of sequences kept
    in step, as padded batches are). By themselves: speedups and token_shares of several kinds of
    text.

    Example: specplan acceptance convert gamma=4 acceptance_length=3.3
    """

    def answer() -> Answer:
        from specplan.results.acceptance.convert_answer import convert_words_answer

        return convert_words_answer(context.args, sets or ())

    show(answer, as_json)


def export(
    scenario: ScenarioName,
    engine: Annotated[
        str | None, typer.Option(help="vllm, sglang, tensorrt-llm or llama.cpp; absent: all.")
    ] = None,
    draft: Annotated[str | None, typer.Option(help="Draft model named in the settings.")] = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Give engine settings that reproduce an acceptance.

    Example: specplan acceptance export toy-20ms --engine vllm
    """

    def answer() -> Answer:
        from specplan.results.acceptance.export_answer import export_answer
        from specplan.scenarios.load import load

        return export_answer(load(scenario, sets or ()), engine, draft)

    show(answer, as_json)
