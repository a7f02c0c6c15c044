"""The command about memory: what fits on the GPUs of one engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specplan.commands.shared import AsJson, ForceFile, Sets, new_path, scenario_names, show

if TYPE_CHECKING:
    from specplan.results.answer import Answer


def memory(  # noqa: PLR0917
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A scenario with kv_cache; absent: the options say all.",
            autocompletion=scenario_names,
        ),
    ] = None,
    context: Annotated[
        list[int] | None,
        typer.Option(
            metavar="TOKENS",
            help="Length of a sequence, prompt and answer. Repeatable; absent: the scenario's "
            "mean request, or 8192.",
        ),
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="GPU", help="Sets target.gpu.")] = "",
    model: Annotated[
        str, typer.Option(metavar="CONFIG", help="The target's config.json: kv_cache.model.")
    ] = "",
    draft: Annotated[
        str,
        typer.Option(metavar="CONFIG|mtp", help="The draft's config.json: kv_cache.draft."),
    ] = "",
    tensor_parallel: Annotated[
        int | None, typer.Option(metavar="GPUS", help="Sets cluster.gpus_per_replica.")
    ] = None,
    sets: Sets = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=new_path, help="Write a page with the bar."),
    ] = None,
    as_json: AsJson = False,
    force: ForceFile = False,
) -> None:
    """Show what fits in memory, with and without speculation.

    Weights of target and draft, the reserve, the KV cache that is left, and how many sequences of
    a length it holds at once; then what the draft costs. The exit code is 1 when not one sequence
    fits.

    Example: specplan memory llama31-8b-eagle3-h100 --context 8192
    """

    def answer() -> Answer:
        from specplan.results.memory.answer import memory_answer

        options = {
            "target.gpu": gpu,
            "kv_cache.model": model,
            "kv_cache.draft": draft,
            "cluster.gpus_per_replica": tensor_parallel,
        }
        stated = [f"{path}={value}" for path, value in options.items() if value not in {"", None}]
        return memory_answer(
            name, contexts=context or (), sets=[*stated, *(sets or ())], html=html, force=force
        )

    show(answer, as_json)
