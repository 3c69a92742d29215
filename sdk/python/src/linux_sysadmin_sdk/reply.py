"""The shapes of an answer. A tool returns a dict or a dataclass, a list, or one of these."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

from .choices import SEVERITIES, one_of


@dataclasses.dataclass
class Noted:
    """One object with notes for the caller, such as "already enabled: nothing was changed"."""

    data: Any
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Listing:
    """A list of items. The host applies `limit` and `filter`, unless the module has applied them and gives a `total`."""

    #: The items, the most important first.
    items: list
    #: The number of all items, where the module itself has applied `limit` and `filter`.
    total: int | None = None
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Analysis:
    """One object with an interpretation: what the facts mean, in a sentence or two, and how severe that is."""

    data: Any
    summary: str
    #: `info`, `warning`, `high` or `critical`.
    severity: str = "info"

    def __post_init__(self) -> None:
        one_of("a severity", self.severity, SEVERITIES)


@dataclasses.dataclass
class Reply:
    """An answer in the contract's form."""

    data: str
    total: int | None = None
    summary: str | None = None
    severity: str | None = None
    notes: list[str] = dataclasses.field(default_factory=list)


def reply(answer: Any, shape: str, limit: int | None, search: str | None) -> Reply:
    """The answer in the contract's form. A list is cut to the limit where no filter has to see the rest of it."""
    if shape == "listing":
        listing = answer if isinstance(answer, Listing) else Listing(answer)
        if not isinstance(listing.items, (list, tuple)):
            raise TypeError(f"expected a list, as the tool's type hint says, found {type(listing.items).__name__}")
        items, total = list(listing.items), listing.total
        if total is None and limit is not None and search is None:
            items, total = items[:limit], len(items)
        return Reply(to_json(items), total=total, notes=listing.notes)
    if isinstance(answer, (list, tuple, Listing)):
        raise TypeError("expected one object: a tool that returns a list says so by its type hint")
    if shape == "analysis":
        if not isinstance(answer, Analysis):
            raise TypeError(f"expected an Analysis, as the tool's type hint says, found {type(answer).__name__}")
        return Reply(to_json(answer.data), summary=answer.summary, severity=answer.severity)
    if isinstance(answer, Analysis):
        raise TypeError("expected one object: a tool that returns an Analysis says so by its type hint")
    if isinstance(answer, Noted):
        return Reply(to_json(answer.data), notes=answer.notes)
    return Reply(to_json(answer))


def to_json(data: Any) -> str:
    """The data as JSON. Dataclasses are objects, and enumerations are their values."""
    return json.dumps(data, default=_plain, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"expected data that JSON can hold, found {type(value).__name__}")
