"""llama.cpp's server responses (`timings`) and collections of them (InventiveHQ's runs).

Timings count tokens, not rounds: each round emits one token of the target, and the prefill the
first, so all rounds = predicted_n − 1 − draft_n_accepted. Rounds that drafted nothing (n-gram
without a match, p_min) cannot be told apart there; the log's `statistics` line can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.documents import Record

KIND = "llamacpp-timings"
_HIDDEN = (
    "timings do not count rounds: τ is over all rounds, including any without a draft, and γ is "
    "your --draft-max; the server log's `statistics` line tells them apart"
)


def timings_of(record: Record) -> Record | None:
    """Return the `timings` object of a response, or the object itself where it is one."""
    if isinstance(record.value.get("timings"), dict):
        return record.record("timings")
    return record if {"predicted_n", "predicted_ms"} <= record.value.keys() else None


def matches(record: Record) -> bool:
    """Return whether the object is a response of llama-server."""
    timings = timings_of(record)
    return timings is not None and "predicted_n" in timings.value


def is_collection(record: Record) -> bool:
    """Return whether the object is a collection of runs as InventiveHQ publishes it."""
    runs = record.value.get("runs")
    return isinstance(runs, dict) and any(
        isinstance(part, dict) and isinstance(part.get("runs"), list) for part in runs.values()
    )


def read(records: Sequence[Record]) -> list[Evidence]:
    """Return responses added up: those with a draft, and those without."""
    timings = [one for record in records if (one := timings_of(record))]
    drafted = [one for one in timings if one.count("draft_n")]
    plain = [one for one in timings if not one.count("draft_n")]
    found: list[Evidence] = []
    if drafted:
        skipped = (
            (f"{len(plain)} response{'s' * (len(plain) > 1)} without a draft",) if plain else ()
        )
        found.append(_added(drafted, dropped=skipped))
    elif plain:
        found.append(_plain(plain))
    return found


def read_collection(record: Record) -> list[Evidence]:
    """Return one piece of evidence for each run of the collection that was measured."""
    found = []
    platforms = record.record("runs")
    for name in platforms.value if platforms else ():
        platform = platforms.record(name) if platforms else None
        if platform is None:
            continue
        meta = platform.record("meta")
        target = meta.text("target") if meta else ""
        for run in platform.records("runs"):
            label = " ".join(filter(None, (name, run.text("backend"), run.text("method"))))
            found.append(_run(run, target, label))
    return found


def _run(run: Record, model: str, label: str) -> Evidence:
    rows = run.records("records")
    timed = [row for row in rows if row.value.get("predicted_ms") is not None]
    dropped = (f"{len(rows) - len(timed)} records without predicted_ms",) * (len(rows) > len(timed))
    drafted = [row for row in timed if row.count("draft_n")]
    if not timed:
        source = Source(run.file, KIND, run.path, run.line, "llama.cpp")
        return Evidence(source, model, label=label, dropped=dropped)
    if run.text("method") == "baseline" or not (drafted or _may_draft(run)):
        return _plain(timed, model, label, dropped)
    return _added(timed, model, label, dropped)


def _may_draft(run: Record) -> bool:
    return "ngram" in run.text("method")


def _added(
    rows: Sequence[Record], model: str = "", label: str = "", dropped: tuple[str, ...] = ()
) -> Evidence:
    """Return the counts of several responses as one piece of evidence."""
    predicted = sum(row.count("predicted_n") or 0 for row in rows)
    drafted = sum(row.count("draft_n") or 0 for row in rows)
    accepted = sum(row.count("draft_n_accepted") or 0 for row in rows)
    first = rows[0]
    rounds = predicted - len(rows) - accepted
    if rounds <= 0 or accepted > drafted:
        raise first.fault(
            "draft_n_accepted",
            f"{accepted:g} of {drafted:g} drafted tokens accepted in {predicted:g} predicted",
            "fewer: each round emits one token of the target",
        )
    source = Source(
        first.file,
        KIND,
        where=first.path.rpartition(".records")[0]
        or f"{len(rows)} response{'s' * (len(rows) > 1)}",
        line=first.line,
        engine="llama.cpp",
    )
    seconds = sum(row.seconds("predicted_ms") or 0.0 for row in rows)
    latency = Latency(
        round_s=seconds / rounds or None,
        token_s=seconds / predicted or None,
        concurrency=1,
        requests=len(rows),
        output_tokens=predicted / len(rows),
    )
    if drafted < rounds:
        why = (
            f"{drafted:g} tokens drafted in {rounds:g} rounds: most rounds had no draft, and "
            "timings do not say how many; the server log's `statistics` line does"
        )
        return Evidence(
            source, model, label=label, latency=latency, dropped=dropped, warnings=(why,)
        )
    return checked(
        Evidence(
            source,
            model=model,
            label=label,
            drafting_rounds=rounds,
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            acceptance_length=1 + accepted / rounds,
            latency=latency,
            dropped=dropped,
            warnings=(_HIDDEN,),
        )
    )


def _plain(
    rows: Sequence[Record], model: str = "", label: str = "", dropped: tuple[str, ...] = ()
) -> Evidence:
    """Return the decode step of responses without a draft."""
    first = rows[0]
    predicted = sum(row.count("predicted_n") or 0 for row in rows)
    seconds = sum(row.seconds("predicted_ms") or 0.0 for row in rows)
    if not predicted:
        raise first.fault("predicted_n", "0 tokens predicted", "a response with tokens")
    where = first.path.rpartition(".records")[0] or f"{len(rows)} response{'s' * (len(rows) > 1)}"
    return Evidence(
        Source(first.file, KIND, where, first.line, "llama.cpp"),
        model=model,
        label=label,
        gamma=0,
        latency=Latency(
            round_s=seconds / predicted or None,
            token_s=seconds / predicted or None,
            concurrency=1,
            requests=len(rows),
            output_tokens=predicted / len(rows),
        ),
        dropped=dropped,
        warnings=("draft_n is absent or null: nothing was drafted",),
    )
