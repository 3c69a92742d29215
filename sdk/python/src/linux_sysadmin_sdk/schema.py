"""JSON Schemas of arguments, made from type hints, and the values of the hints' types, made from arguments.

Schemas are kept short, because every byte of them is in the context of every model."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from typing import Any

from .problem import Problem

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclasses.dataclass(frozen=True)
class Arg:
    """What a hint says beside its type: `Annotated[int, Arg("How many", minimum=1)]`. A text alone is a description."""

    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    pattern: str | None = None

    def keywords(self) -> dict[str, Any]:
        """The keywords of JSON Schema."""
        names = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "minLength": self.min_length,
            "maxLength": self.max_length,
            "minItems": self.min_items,
            "maxItems": self.max_items,
            "pattern": self.pattern,
            "description": self.description,
        }
        return {name: value for name, value in names.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An argument of a tool, or a field of an object."""

    name: str
    hint: Any
    default: Any = inspect.Parameter.empty

    @property
    def is_required(self) -> bool:
        """Whether a caller has to give it."""
        return self.default is inspect.Parameter.empty


def parameters(function: Any) -> list[Parameter]:
    """The arguments of a tool: the parameters of its function, without the context."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    for parameter in inspect.signature(function).parameters.values():
        where = f"parameter `{parameter.name}` of `{function.__name__}`"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{where}: expected a parameter that can be given by its name")
        if parameter.name not in hints:
            raise TypeError(f"{where}: expected a type hint, which says what a caller may give")
        found.append(Parameter(parameter.name, hints[parameter.name], parameter.default))
    return found


def of_parameters(found: list[Parameter]) -> dict[str, Any]:
    """The schema of an object with these members."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for parameter in found:
        member = of(parameter.hint)
        # What is left out is nothing anyway.
        if not parameter.is_required and parameter.default not in (None, False, "", (), [], {}):
            member["default"] = _plain(parameter.default)
        schema["properties"][parameter.name] = member
    required = [parameter.name for parameter in found if parameter.is_required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def of(hint: Any) -> dict[str, Any]:
    """The schema of a type hint."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = of(inner[0])
        for extra in inner[1:]:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, Arg):
                schema.update(extra.keywords())
        return schema
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is Any:
        return {}
    if origin is typing.Literal:
        return _of_choices(list(inner))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _of_choices([member.value for member in hint])
    if origin in (typing.Union, types.UnionType):
        return _of_union([of(one) for one in inner if one is not types.NoneType])
    if hint is list or origin is list:
        return {"type": "array", "items": of(inner[0])} if inner else {"type": "array"}
    if hint is dict or origin is dict:
        if inner and inner[0] is not str:
            raise TypeError(f"expected texts as the keys of {hint}, as JSON has them")
        return {"type": "object", "additionalProperties": of(inner[1])} if inner else {"type": "object"}
    if dataclasses.is_dataclass(hint):
        return of_parameters(_fields(hint))
    raise TypeError(
        f"expected a type hint of str, int, float, bool, list, dict, Literal, Enum, a dataclass, or one of them `| None`; found {hint}"
    )


def value(hint: Any, given: Any, path: str) -> Any:
    """The value of the hint's type that JSON gives. The host has checked the value against the schema before."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return value(inner[0], given, path)
    if hint is Any:
        return given
    if origin in (typing.Union, types.UnionType):
        return _value_of_union(inner, given, path)
    if origin is typing.Literal:
        return _checked(given in inner, given, " or ".join(map(repr, inner)), path)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        known = {member.value: member for member in hint}
        return known[_checked(given in known, given, " or ".join(map(repr, known)), path)]
    if hint is list or origin is list:
        _checked(isinstance(given, list), given, "a list", path)
        return [value(inner[0], one, f"{path}[{at}]") for at, one in enumerate(given)] if inner else given
    if hint is dict or origin is dict:
        _checked(isinstance(given, dict), given, "an object", path)
        return {key: value(inner[1], one, f"{path}.{key}") for key, one in given.items()} if inner else given
    if dataclasses.is_dataclass(hint):
        return hint(**values(_fields(hint), given, path))
    if hint is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    is_right = isinstance(given, hint) and (hint is bool or not isinstance(given, bool))
    return _checked(is_right, given, f"a value of type {_PLAIN[hint]}", path)


def values(found: list[Parameter], given: Any, path: str = "") -> dict[str, Any]:
    """The values of these members, by name. A member that isn't given is left out, so that its default holds."""
    _checked(isinstance(given, dict), given, "an object", path or "the arguments")
    prefix = f"{path}." if path else ""
    names = {parameter.name for parameter in found}
    for name in given:
        if name not in names:
            raise _wrong(f"{prefix}{name} is no argument; expected one of {', '.join(sorted(names)) or 'none'}")
    for parameter in found:
        if parameter.is_required and parameter.name not in given:
            raise _wrong(f"{prefix}{parameter.name} is missing")
    return {
        parameter.name: value(parameter.hint, given[parameter.name], f"{prefix}{parameter.name}")
        for parameter in found
        if parameter.name in given
    }


def _of_choices(choices: list[Any]) -> dict[str, Any]:
    kinds = {_PLAIN.get(type(choice)) for choice in choices}
    if len(kinds) != 1 or None in kinds:
        raise TypeError(f"expected choices of one plain type, found {choices}")
    return {"type": kinds.pop(), "enum": choices}


def _of_union(members: list[dict[str, Any]]) -> dict[str, Any]:
    """`X | None` is `X`, because a caller leaves out what is none. Other unions have one list of types where that says all."""
    if len(members) == 1:
        return members[0]
    if all(list(member) == ["type"] for member in members):
        return {"type": [member["type"] for member in members]}
    return {"anyOf": members}


def _value_of_union(hints: tuple[Any, ...], given: Any, path: str) -> Any:
    if given is None and types.NoneType in hints:
        return None
    problem = None
    for hint in hints:
        if hint is types.NoneType:
            continue
        try:
            return value(hint, given, path)
        except Problem as wrong:
            problem = wrong
    raise problem or _wrong(f"{path}: expected no {given!r}")


def _fields(hint: Any) -> list[Parameter]:
    hints = typing.get_type_hints(hint, include_extras=True)
    found = []
    for field in dataclasses.fields(hint):
        default = inspect.Parameter.empty
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found.append(Parameter(field.name, hints[field.name], default))
    return found


def _plain(default: Any) -> Any:
    return default.value if isinstance(default, enum.Enum) else default


def _checked(is_right: bool, given: Any, expected: str, path: str) -> Any:
    if not is_right:
        raise _wrong(f"{path}: expected {expected}, found {given!r}")
    return given


def _wrong(message: str) -> Problem:
    return Problem.validation("INVALID_ARGUMENTS", message)
