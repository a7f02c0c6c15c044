"""`specplan init`: a commented scenario that runs, from a few answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specplan.scenarios.errors import Fault, ScenarioError, nearest, shortened
from specplan.scenarios.load import validated
from specplan.scenarios.source import parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Question:
    """What is asked, and the answer that stands where none is given."""

    key: str
    text: str
    default: str


QUESTIONS = (
    Question("name", "A short name for the scenario", "my-scenario"),
    Question("step", "One plain decode step of the target at your batch (a duration)", "10 ms"),
    Question("round", "One verify pass over γ + 1 tokens (a duration; the step if unknown)", ""),
    Question("method", "Who drafts: draft_model, one_pass, ngram, or none", "draft_model"),
    Question("draft_step", "One draft step (a duration; 0 ms for ngram)", "1 ms"),
    Question("gamma", "Tokens drafted in a round (num_speculative_tokens)", "4"),
    Question(
        "acceptance",
        "What is known of acceptance: {acceptance_length: 2.9} as vLLM and SGLang print it, "
        "{unconditional: [..]} per position, or {alpha: 0.7}",
        "{alpha: 0.7}",
    ),
    Question("arrivals", "Load: {streams: 8}, {rate: 4/s}, or {trace: FILE}", "{streams: 1}"),
    Question("prompt_tokens", "Prompt tokens (a number, or `trace`)", "0"),
    Question("prefill_per_token", "Prefill time of one prompt token (a duration)", "20 us"),
    Question("output_tokens", "Output tokens (a number, or `trace`)", "256"),
    Question("max_num_seqs", "Sequences that run at once on one engine", "64"),
    Question("replicas", "Engines", "1"),
)
# What the files of an engine may tell, and nobody is asked.
_TOLD = {
    "overhead": "0 ms",
    "extra_draft_step": "false",
    "draft_probability": "",
    "evidence": '"assumed: answers to specplan init"',
}

_NO_SHARE = "# draft_probability: 0.43"
# Where an answer stands in the scenario, if not under its own name.
_PLACES: dict[tuple[str, ...], str] = {
    ("target", "prefill"): "prefill_per_token",
    ("draft", "step"): "draft_step",
}
_TEMPLATE = """\
# A scenario of specplan. Try:
#   specplan predict {file}      the closed form: is it faster, and why
#   specplan simulate {file}     requests that arrive, wait and share GPUs
#   specplan predict {file} --set speculation.gamma=3
# docs/scenario.md lists every field. Durations and rates carry units; `#` begins a comment.
name: {name}
seed: 1                          # equal seeds compare scenarios on equal luck

target:                          # what one pass of the target model costs
  step: {step}
  round: {round}
  # A duration knows no load. A cost that grows with the batch (workload.arrivals.streams, at
  # most scheduler.max_num_seqs) is a sum:
  # round: {{base: 6 ms, per_token: 21 us, per_context_token: 0.04 us}}
  # or one that was measured (columns batch, width, ms):
  # round: {{table: costs.csv}}
  prefill: {{per_token: {prefill_per_token}}}

draft:                           # what proposes tokens
  step: {draft_step}
  placement: colocated           # or dedicated, shared, parallel
  # transfer: 50 us              # needed for dedicated and shared

speculation:
  method: {method}
  gamma: {gamma}
  overhead: {overhead}                 # per round: scheduling, sampling, launches
{extra_draft_step}  acceptance: {acceptance}
  # extend: last_ratio           # within the braces: acceptance beyond the γ that was measured
  # acceptance: {{unconditional: [0.7, 0.45, 0.3, 0.2]}}     # vLLM's per-position rates
  {draft_probability}      # n-gram: share of rounds that propose anything

workload:
  arrivals: {arrivals}
  requests: 1000
  prompt_tokens: {prompt_tokens}
  output_tokens: {output_tokens}
  # output_tokens: {{lognormal: {{mean: 256, sigma: 0.8}}}}

scheduler:
  max_num_seqs: {max_num_seqs}               # the largest batch
  max_num_batched_tokens: 8192

# kv_cache: {{tokens: 366480}}     # vLLM's log: GPU KV cache size

cluster:
  replicas: {replicas}
  router: least_outstanding

slo: {{ttft_p99: 500 ms, tpot_p99: 40 ms}}

record:                          # shown in every report; gaps are named
  # target: model and revision, and the sampling rules
  # proposal: draft mechanism and revision
  # acceptance_rule: exact rejection sampling, greedy match, lossy threshold
  evidence: {evidence}
"""


def starter(answers: Mapping[str, str] | None = None, file: str = "scenario.yaml") -> str:
    """Write a commented scenario from answers to `QUESTIONS`; what is not answered has a default.

    `overhead`, `extra_draft_step`, `draft_probability` and `evidence` may be answered, too. The
    text is validated before it is returned. Raises ScenarioError for an unknown question and for
    answers that make no scenario; it names the answer, as there is no file yet.

    >>> "gamma: 5" in starter({"gamma": "5"})
    True
    """
    given = {key: value.strip() for key, value in (answers or {}).items() if value.strip()}
    known = {question.key: question.default for question in QUESTIONS} | _TOLD
    unknown = [key for key in given if key not in known]
    if unknown:
        close = nearest(unknown[0], known)
        right = f"did you mean `{close}`?" if close else f"one of {', '.join(known)}"
        raise ScenarioError(Fault("unknown question", right, field=unknown[0]))
    filled = known | given
    filled["round"] = filled["round"] or filled["step"]
    share = filled["draft_probability"]
    filled["draft_probability"] = f"draft_probability: {share}" if share else _NO_SHARE
    extra = filled["extra_draft_step"]
    filled["extra_draft_step"] = "" if extra == "false" else f"  extra_draft_step: {extra}\n"
    several = [key for key, value in given.items() if "\n" in value]
    if several:
        raise ScenarioError(Fault("has several lines", "an answer on one line", field=several[0]))
    text = _TEMPLATE.format(file=file, **filled)
    if "trace" in filled["arrivals"]:  # all of the trace, not the first thousand of its rows
        text = text.replace("  requests: 1000\n", "")
    for key, value in given.items():  # what is no YAML would break the lines around it
        try:
            parse_source(f"{key}: {value}\n", file)
        except ScenarioError as error:
            wrong, right = error.faults[0].wrong, error.faults[0].right
            raise ScenarioError(Fault(wrong, right, _said(key, value))) from None
    try:
        validated(parse_source(text, file))
    except ScenarioError as error:
        raise ScenarioError(_of_answers(error.faults, given)) from None
    return text


def _said(key: str, value: str) -> str:
    return f"{key}={shortened(value)}"


def _of_answers(faults: Sequence[Fault], given: Mapping[str, str]) -> list[Fault]:
    """Place faults at the answers that made them, each once."""
    found: dict[Fault, None] = {}
    for fault in faults:
        path = tuple(fault.field.split("."))
        key = _PLACES.get(path[:2]) or next((part for part in path if part in given), "")
        if key not in given and path[:2] == ("target", "round"):
            key = "step"  # the verify pass took its answer
        at, field = (_said(key, given[key]), "") if key in given else (fault.file, fault.field)
        found[Fault(fault.wrong, fault.right, at, field=field)] = None
    return list(found)
