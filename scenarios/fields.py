"""The kinds of value a scenario is made of: quantities with units, counts, shares, choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from annotated_types import Ge, Gt, Le
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from specplan.scenarios.units import (
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration,
    parse_fraction,
    parse_rate,
)

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue


def fault(wrong: str, right: str) -> PydanticCustomError:
    """Make the error of a validator: what is wrong with the value, and what would be right."""
    return PydanticCustomError("specplan", "{wrong} ({right})", {"wrong": wrong, "right": right})


def _one_line(text: str) -> str:
    if not text.isprintable():  # it is shown in one line of a terminal
        raise fault(f"{text!r} holds a control character", "a name on one line")
    return text


Name = Annotated[str, AfterValidator(_one_line)]


def _read(parse: Callable[[object], float]) -> BeforeValidator:
    def read(value: object) -> float:
        try:
            return parse(value)
        except UnitError as error:
            raise fault(error.wrong, error.right) from None

    return BeforeValidator(read)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise fault(f"`{value}` is not a whole number", "a number such as `128`")
    return int(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise fault(f"`{value}` is not a number", "a number such as `1.5`")
    return float(value)


class Typed(str):
    """Text from the command line: paths in it start from the current folder."""

    __slots__ = ()


def _path(value: object, info: ValidationInfo) -> str:
    """Make a path absolute: relative ones start at the scenario file (`context["folder"]`)."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise fault(f"`{value}` is not a file name", "a path such as `traces/azure.csv`")
    folder = (info.context or {}).get("folder", "") if not isinstance(value, Typed) else ""
    return str(Path(folder, value).absolute())


def _quantity(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "number"], "pattern": pattern, "examples": [example]})


_NUMBER = r"^\s*[0-9.]+([eE][-+]?[0-9]+)?\s*"
Duration = Annotated[
    float,
    _read(parse_duration),
    PlainSerializer(format_duration, when_used="json"),
    _quantity(_NUMBER + r"(ns|us|µs|μs|ms|s|min|h)$", "20 ms"),
]
Rate = Annotated[
    float,
    _read(parse_rate),
    PlainSerializer(format_rate, when_used="json"),
    _quantity(_NUMBER + r"/\s*(s|min|h)$|^inf$", "8/s"),
]
Bytes = Annotated[
    float,
    _read(parse_bytes),
    PlainSerializer(format_bytes, when_used="json"),
    _quantity(_NUMBER + r"(B|[KMGT]i?B|kB)$", "40 GiB"),
]
Fraction = Annotated[float, _read(parse_fraction), _quantity(_NUMBER + r"%$", "80 %")]
Number = Annotated[float, BeforeValidator(_number)]
Positive = Annotated[Number, Gt(0)]
Whole = Annotated[int, BeforeValidator(_whole)]
Gamma = Annotated[Whole, Ge(0), Le(1000)]
Tokens = Annotated[Whole, Ge(0), Le(10_000_000)]
Count = Annotated[Whole, Ge(1), Le(10_000_000)]
Requests = Annotated[Whole, Ge(1), Le(10_000_000_000)]
FilePath = Annotated[str, BeforeValidator(_path), WithJsonSchema({"type": "string"})]


class Section(BaseModel):
    """A block of the scenario: frozen, and every key it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Choice(Section):
    """A block in which exactly one of `alternatives` is written.

    `bare` names the alternative that a value which is not a block stands for (`20 ms` is
    `{constant: 20 ms}`), `words` those that may be written as a word alone, and `belongs` the
    further keys that mean something to some alternatives only.
    """

    alternatives: ClassVar[tuple[str, ...]]
    bare: ClassVar[str | None] = None
    words: ClassVar[tuple[str, ...]] = ()
    belongs: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @property
    def kind(self) -> str:
        """The alternative that is written."""
        return next(name for name in self.alternatives if getattr(self, name) is not None)

    @classmethod
    def spell_out(cls, data: Any) -> Any:
        """Turn a short form into the block it stands for; raises PydanticCustomError."""
        if isinstance(data, BaseModel | Mapping):
            return data
        if isinstance(data, str) and data in cls.words:
            return {data: True if cls.model_fields[data].annotation == bool | None else {}}
        if cls.bare is None or data is None:
            listed = ", ".join(f"`{name}`" for name in cls.words or cls.alternatives)
            raise fault(f"`{data}` does not say what it is", f"one of {listed}")
        return {cls.bare: data}

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, data: Any) -> Any:
        return cls.spell_out(data)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        written = [name for name in self.alternatives if getattr(self, name) is not None]
        if not written:
            raise fault("nothing is chosen", f"one of {', '.join(self.alternatives)}")
        if len(written) > 1:
            raise fault(f"{' and '.join(written)} exclude each other", "one of them")
        for name, owners in self.belongs.items():
            if name in self.model_fields_set and written[0] not in owners:
                wrong = f"{name} does not apply to {written[0]}"
                raise fault(wrong, f"only to {' and '.join(owners)}")
        return self

    @model_serializer(mode="wrap")
    def _short_form(self, handler: SerializerFunctionWrapHandler) -> Any:
        """Write what was chosen and what differs from its default, as short as it was read."""
        whole = handler(self)
        said = {
            name: whole[name]
            for name, value in self
            if name in whole
            and (name == self.kind or value != type(self).model_fields[name].default)
        }
        if self.bare is not None and list(said) == [self.bare]:
            return said[self.bare]
        return self.kind if list(said) == [self.kind] and said[self.kind] is True else said

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Admit the short forms next to the block."""
        block = handler.resolve_ref_schema(handler(core_schema))
        shorts: list[JsonSchemaValue] = [{"enum": list(cls.words)}] if cls.words else []
        if cls.bare is not None:
            choices = block["properties"][cls.bare].get("anyOf", [block["properties"][cls.bare]])
            shorts += [choice for choice in choices if choice.get("type") != "null"]
        inner = {key: block.pop(key) for key in list(block) if key not in {"title", "description"}}
        block["anyOf"] = [*shorts, inner]
        return block
