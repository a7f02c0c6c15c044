"""A scenario file as text: its values, and where each of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

    from ruamel.yaml.error import StreamMark

MAX_BYTES = 1_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 40
LONGEST_NUMBER = 1000
_TAG = "tag:yaml.org,2002:"

Place = tuple[int, int]
Path_ = tuple[str, ...]


@dataclass
class Source:
    """The plain values of a file, and line and column (from 1) of every key and value by path."""

    name: str
    data: dict[str, Any]
    places: dict[Path_, Place] = field(default_factory=dict)
    keys: dict[Path_, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def read_source(path: Path) -> Source:
    """Read a YAML 1.2 file; raises ScenarioError with file, line and column of what is wrong."""
    return parse_source(_read_text(path), str(path))


def parse_source(text: str, name: str) -> Source:
    """Read YAML 1.2 text whose top level is a mapping.

    Duplicate keys, unknown tags, and documents that unfold to more than 100,000 values or 40
    levels are refused with their place.

    >>> parse_source("a: {b: 1}", "here.yaml").places["a", "b"]
    (1, 8)
    """
    node = _compose(text, name)
    source = Source(name, {})
    if node is None:
        raise ScenarioError(Fault("the file is empty", "start one with `specplan init`", name))
    if not isinstance(node, MappingNode):
        found = "a list" if isinstance(node, SequenceNode) else "a single value"
        place = _place(node.start_mark)
        right = "keys at the top level: name, target, draft, speculation, workload, …"
        raise ScenarioError(Fault(f"the file holds {found}", right, name, *place))
    source.data = _Reader(source).mapping(node, ())
    return source


def parse_value(text: str) -> Any:
    """Read one YAML value from the command line, plain.

    >>> parse_value("[0.8, 0.7]"), parse_value("20 ms"), parse_value("")
    ([0.8, 0.7], '20 ms', None)
    """
    node = _compose(text, "")
    source = Source("", {})
    value = None if node is None else _Reader(source).value(node, ())
    if source.faults:
        raise ScenarioError(source.faults)
    return value


def _read_text(path: Path) -> str:
    try:
        if path.is_dir():
            raise ScenarioError(Fault("is a folder", "the scenario file in it", str(path)))
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        wrong = f"cannot be read: {error.strerror or error}"
        raise ScenarioError(Fault(wrong, "a readable scenario file", str(path))) from None
    if len(raw) > MAX_BYTES:
        wrong = "is larger than 1 MB and no scenario"
        right = "traces and tables are named in a scenario: `arrivals: {trace: FILE}`"
        raise ScenarioError(Fault(wrong, right, str(path)))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        wrong = f"byte 0x{raw[error.start]:02x} is not UTF-8 text"
        raise ScenarioError(Fault(wrong, "a YAML text file", str(path), line, column)) from None


def _compose(text: str, name: str) -> Node | None:
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(mark) if mark else (None, None)
        if "another document" in (error.problem or ""):
            wrong = "a second YAML document begins here"
            raise ScenarioError(Fault(wrong, "one scenario a file", name, *place)) from None
        wrong = f"is not YAML: {error.problem or error.context}"
        raise ScenarioError(Fault(wrong, "`key: value` lines", name, *place)) from None
    except YAMLError as error:
        wrong = f"is not YAML: {' '.join(str(error).split())}"
        raise ScenarioError(Fault(wrong, "`key: value` lines", name)) from None
    except RecursionError:
        wrong = "is nested too deeply"
        raise ScenarioError(Fault(wrong, f"at most {MAX_DEPTH} levels", name)) from None
    return node


def _place(mark: StreamMark) -> Place:
    return mark.line + 1, mark.column + 1


class _Reader:
    """Turns nodes into plain values and notes their places; collects faults as it goes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.seen = 0

    def value(self, node: Node, path: Path_) -> Any:
        self.seen += 1
        place = _place(node.start_mark)
        if self.seen > MAX_VALUES or len(path) > MAX_DEPTH:
            wrong = "unfolds to too much (aliases of aliases?)"
            right = f"at most {MAX_VALUES} values and {MAX_DEPTH} levels"
            raise ScenarioError(Fault(wrong, right, self.source.name, *place, ".".join(path)))
        self.source.places[path] = place
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, str(i))) for i, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self.scalar(node, path)

    def mapping(self, node: MappingNode, path: Path_) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, ScalarNode) else None
            if key is None:
                self.fault(key_node, path, "a key is no word", "`key: value` with a plain word")
                continue
            place = (*path, key)
            if key in values:
                line = self.source.keys[place][0]
                self.fault(key_node, place, f"is written twice, first in line {line}", "once")
                continue
            self.source.keys[place] = _place(key_node.start_mark)
            values[key] = self.value(value_node, place)
        return values

    def scalar(self, node: ScalarNode, path: Path_) -> Any:
        text, tag = node.value, str(node.tag)
        try:
            match tag.removeprefix(_TAG):
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int":
                    if len(text) > LONGEST_NUMBER:  # Python itself would not print it again
                        raise ValueError
                    return int(text.replace("_", ""), 0 if text.lstrip("+-")[1:2].isalpha() else 10)
                case "float":
                    return _float(text)
                case "str" | "timestamp":
                    return text
        except ValueError:
            self.fault(node, path, f"`{text[:40]}` is not a number", "a number such as `1.5`")
            return None
        self.fault(node, path, f"the tag `{tag}` is not used here", "a plain value")
        return None

    def fault(self, node: Node, path: Path_, wrong: str, right: str) -> None:
        place = _place(node.start_mark)
        self.source.faults.append(Fault(wrong, right, self.source.name, *place, ".".join(path)))


def _float(text: str) -> float:
    plain = text.replace("_", "").lower()
    return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
