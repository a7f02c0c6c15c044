"""Which kind a file is, by its content, and the evidence that it holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers import (
    aiperf,
    amusd,
    console,
    golden_al,
    guidellm,
    inference_perf,
    llamacpp,
    llamacpp_log,
    llmservingsim,
    sglang,
    sglang_log,
    trtllm,
    vllm_bench,
    vllm_log,
    vllm_metrics,
    vllm_request,
)
from specplan.scenarios.importers.documents import Document, Record, read_documents
from specplan.scenarios.importers.evidence import Evidence, checked
from specplan.scenarios.importers.files import read_head, whole_text
from specplan.scenarios.importers.lines import find_lines
from specplan.scenarios.importers.refusals import KNOWN, refusal, refused_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


_JSON_START = re.compile(rb'\s*(?:\{\s*["}]|\{\s*$|\[\s*(?:[{\[\]"]|$))')
_ALIAS = re.compile(rb"(?m)^[^#\n]*[&*]\w")
_PROMETHEUS = re.compile(
    rb"(?:^|\n)(?:# (?:HELP|TYPE) |(?:vllm|llamacpp|sglang):[A-Za-z0-9_:]+(?:\{| +[-+0-9]))"
)


def _each(read: Callable[[Record], Evidence]) -> Callable[[list[Record]], list[Evidence]]:
    return lambda records: [read(record) for record in records]


def _flat(read: Callable[[Record], list[Evidence]]) -> Callable[[list[Record]], list[Evidence]]:
    return lambda records: [one for record in records for one in read(record)]


# Asked in this order; the first that knows an object reads all of its kind in the file.
_JSON_KINDS: tuple[
    tuple[Callable[[Record], bool], Callable[[list[Record]], list[Evidence]]], ...
] = (
    (aiperf.is_request, aiperf.read_requests),
    (aiperf.is_summary, _each(aiperf.read_summary)),
    (vllm_request.matches, vllm_request.read),
    (sglang.is_response, _each(sglang.read_response)),
    (sglang.is_bench, _each(sglang.read_bench)),
    (sglang.is_one_batch, _each(sglang.read_one_batch)),
    (trtllm.matches, _each(trtllm.read)),
    (llamacpp.is_collection, _flat(llamacpp.read_collection)),
    (llamacpp.matches, llamacpp.read),
    (guidellm.matches, _flat(guidellm.read)),
    (inference_perf.matches, _each(inference_perf.read)),
    (amusd.matches, amusd.read),
    (llmservingsim.matches, lambda records: [llmservingsim.read(records)]),
    (vllm_bench.is_run, _each(vllm_bench.read_run)),
)


def read_file(path: Path, model: str = "") -> list[Evidence]:
    """Return the evidence of a file of any kind.

    Raises ScenarioError: nothing can be imported; the fault says why and what would be right.
    """
    found = [checked(one) for one in _read_kind(path, model)]
    if not any(one.says_anything for one in found):
        said = next((text for one in found for text in (*one.warnings, *one.dropped)), "")
        wrong = "neither acceptance nor a time in it" + (f": {said}" if said else "")
        raise ScenarioError(Fault(wrong, KNOWN, str(path), found[0].source.line if found else 1))
    return [
        one if one.says_anything or one.warnings or one.dropped else replace(one, warnings=_EMPTY)
        for one in found
    ]


_EMPTY = ("neither acceptance nor a time in it",)


def _read_kind(path: Path, model: str) -> list[Evidence]:
    head = read_head(path)
    if _JSON_START.match(head):
        return (_is_wrapped_log(head, str(path)) and _read_log(path)) or _read_json(path)
    if is_prometheus(head):
        return vllm_metrics.evidence(read_scrape(path, model))
    if console.TITLE.encode() in head:
        return console.read(whole_text(path), str(path))
    found = _read_log(path)
    return found if found else _read_yaml(path, head)


def _is_wrapped_log(head: bytes, file: str) -> bool:
    """Return whether the lines are JSON objects of no known kind, as containers wrap a log."""
    try:
        first = json.loads(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    if not isinstance(first, dict):
        return False
    return not any(knows(Record(first, file, 1)) for knows, _ in _JSON_KINDS)


def _read_json(path: Path) -> list[Evidence]:
    file = str(path)
    try:
        documents, dropped = read_documents(whole_text(path), file)
    except ScenarioError:
        found = _read_log(path)  # a wrapped log may be cut anywhere
        if found:
            return found
        raise
    records = _records(documents, file)
    found = []
    left = records
    for knows, read in _JSON_KINDS:
        mine = [record for record in left if knows(record)]
        if mine:
            found += read(mine)
            left = [record for record in left if not knows(record)]
    if not found:
        found = _read_log(path)
        if not found:
            raise ScenarioError(refusal(records, file))
        return found
    if left:
        lines = ", ".join(str(record.line) for record in left[:5])
        dropped = (*dropped, f"{len(left)} objects of no known kind (line {lines})")
    return [replace(one, dropped=(*one.dropped, *dropped)) for one in found]


def _records(documents: Sequence[Document], file: str) -> list[Record]:
    """Return the objects of the file; a list stands for its members."""
    found = []
    for document in documents:
        members = document.value if isinstance(document.value, list) else [document.value]
        found += [
            Record(member, file, document.line) for member in members if isinstance(member, dict)
        ]
    return found


def is_prometheus(head: bytes) -> bool:
    """Return whether the file begins like the text of /metrics."""
    return _PROMETHEUS.search(head) is not None


def read_scrape(path: Path, model: str = "") -> vllm_metrics.Scrape:
    """Return the scrape in a file of Prometheus text.

    Raises ScenarioError: as `vllm_metrics.read_scrape`, and for SGLang's gauges.
    """
    text = whole_text(path)
    if "sglang:spec_accept_length" in text:
        found = re.search(r"sglang:spec_accept_length(?:\{[^}]*\})? +([0-9.eE+-]+)", text)
        shown = f" (now {found[1]})" if found else ""
        raise ScenarioError(
            Fault(
                f"SGLang's gauges hold the acceptance of the last interval only{shown}",
                "its log, whose Decode batch lines cover the whole run",
                str(path),
                field="sglang:spec_accept_length",
            )
        )
    return vllm_metrics.read_scrape(text, str(path), model)


_LOG_MARKERS = (*vllm_log.MARKERS, *sglang_log.MARKERS, *llamacpp_log.MARKERS)
_SGLANG_FROM = len(vllm_log.MARKERS)
_LLAMACPP_FROM = _SGLANG_FROM + len(sglang_log.MARKERS)


def _read_log(path: Path) -> list[Evidence]:
    """Return the evidence of a log of any engine, in one pass over its bytes."""
    file = str(path)
    vllm = vllm_log.LogReader(file)
    sgl, llama = sglang_log.LogReader(file), llamacpp_log.LogReader(file)
    for line, marker, text in find_lines(path, _LOG_MARKERS):
        if marker < _SGLANG_FROM:
            vllm.take(line, marker, text)
        elif marker < _LLAMACPP_FROM:
            sgl.take(line, text)
        else:
            llama.take(line, marker - _LLAMACPP_FROM, text)
    found = [*vllm.evidence(), *sgl.evidence(), *llama.evidence()]
    if not found and (complaint := vllm.complaint or sgl.complaint or llama.complaint):
        raise ScenarioError(complaint)
    return found


def _read_yaml(path: Path, head: bytes) -> list[Evidence]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    file = str(path)
    known = refused_text(head, file)
    if known:
        raise ScenarioError(known)
    unknown = Fault("no line in it is of a known kind", KNOWN, file, 1)
    if path.stat().st_size > len(head) + 3 or _ALIAS.search(head):  # golden files are tiny
        raise ScenarioError(unknown)
    text = whole_text(path)
    try:
        document = next(iter(YAML(typ="rt").load_all(text)))
    except (YAMLError, ValueError, RecursionError, StopIteration, AttributeError) as error:
        raise ScenarioError(unknown) from error
    if golden_al.matches(document):
        return golden_al.read(document, file, text)
    if isinstance(document, dict):
        named = {str(key): value for key, value in document.items()}
        raise ScenarioError(refusal([Record(named, file, 1)], file))
    raise ScenarioError(unknown)
