"""A module: a list of tools, its grants, and the targets that it serves."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from . import schema
from .choices import DURATIONS, RISKS, one_of, privilege
from .command import CommandLine
from .context import Context
from .reply import Analysis, Listing, Reply, reply


@dataclasses.dataclass(frozen=True)
class CommandGrant:
    """A request for a command line."""

    pattern: str
    #: `read`, `dry-run` or `change`.
    effect: str
    rights: str
    risk: str
    reason: str


@dataclasses.dataclass(frozen=True)
class PathGrant:
    """A request for files."""

    glob: str
    write: bool
    rights: str
    reason: str


@dataclasses.dataclass
class Tool:
    """A tool: its name, its schema, its risk, and the function that it runs."""

    name: str
    summary: str
    function: Callable[..., Any]
    risk: str
    duration: str
    shape: str
    loses_nothing: bool
    idempotent: bool
    first: bool
    aliases: list[str]
    #: Pairs of an older name and the argument's name.
    argument_aliases: dict[str, str]
    #: Triples of an argument, an older value and the value.
    value_aliases: list[tuple[str, str, str]]
    parameters: list[schema.Parameter]
    #: The name of the parameter that takes the context, where there is one.
    context: str | None

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's own arguments."""
        return schema.of_parameters(self.parameters)

    def call(self, arguments: Any, context: Context) -> Reply:
        """Calls the function with arguments as JSON has them."""
        given = schema.values(self.parameters, arguments)
        if self.context:
            given[self.context] = context
        return reply(self.function(**given), self.shape, context.limit, context.filter)


class Module:
    """A module: everything that its component declares."""

    def __init__(
        self,
        name: str,
        *,
        version: str,
        domain: str,
        summary: str,
        homepage: str | None = None,
        license: str | None = None,
    ):
        if not re.fullmatch(r"[a-z0-9-]{1,63}", name):
            raise ValueError(f"expected a module's name of a-z, 0-9 and dashes, at most 63 of them; found {name!r}")
        self.name = name
        #: The semantic version.
        self.version = version
        #: The subject of its tools, such as `packages`.
        self.domain = domain
        #: One sentence on the module's purpose.
        self.summary = summary
        #: The address of the module's own site.
        self.homepage = homepage
        #: The license as an SPDX expression.
        self.license = license
        self.tools: dict[str, Tool] = {}
        self.commands: list[CommandGrant] = []
        self.paths: list[PathGrant] = []
        #: Requests for any program and for signals: whose rights they take at most, and the reason.
        self.any_programs: list[tuple[str, str]] = []
        self.signal_grants: list[tuple[str, str]] = []
        self.called_tools: list[str] = []
        #: Pairs of a fact and the values that it may have.
        self.conditions: list[tuple[str, list[str]]] = []

    def serves(self, fact: str, *any_of: str) -> None:
        """Limits the module to targets whose fact (a field of `Facts`, such as `package_manager`) has one of the values."""
        self.conditions.append((fact, list(any_of)))

    def read(self, line: CommandLine | str, reason: str, rights: str = "caller") -> None:
        """Requests a command line that looks."""
        self._command(line, "read", rights, "read-only", reason)

    def dry_run(self, line: CommandLine | str, reason: str, rights: str = "caller") -> None:
        """Requests a command line that is a program's own simulation of a change."""
        self._command(line, "dry-run", rights, "read-only", reason)

    def change(self, line: CommandLine | str, risk: str, reason: str, rights: str = "root") -> None:
        """Requests a command line as a step of plans, or as its undo. `risk` is the least risk of such a plan."""
        self._command(line, "change", rights, risk, reason)

    def _command(self, line: CommandLine | str, effect: str, rights: str, risk: str, reason: str) -> None:
        pattern = line.pattern if isinstance(line, CommandLine) else line
        one_of("a risk", risk, RISKS)
        self.commands.append(CommandGrant(pattern, effect, privilege(rights), risk, reason))

    def read_path(self, glob: str, reason: str, rights: str = "caller") -> None:
        """Requests to read files. `*` stays within a name, and `**` is any depth."""
        self.paths.append(PathGrant(glob, False, privilege(rights), reason))

    def write_path(self, glob: str, reason: str, rights: str = "root") -> None:
        """Requests files that plans may write and remove, and that the module may read."""
        self.paths.append(PathGrant(glob, True, privilege(rights), reason))

    def any_program(self, reason: str, rights: str = "caller") -> None:
        """Requests any program with any arguments, which amounts to full control of the account. The policy then decides
        which command lines look, which ones a person is asked about, and which are refused."""
        self.any_programs.append((privilege(rights), reason))

    def signals(self, reason: str, rights: str = "root") -> None:
        """Requests signals to processes, as steps of plans."""
        self.signal_grants.append((privilege(rights), reason))

    def calls_tool(self, name: str) -> None:
        """Requests a read-only tool of another module, by its exact name, for `Context.call_tools`."""
        self.called_tools.append(name)

    def tool(
        self,
        summary: str | None = None,
        *,
        name: str | None = None,
        risk: str = "read-only",
        duration: str = "quick",
        loses_nothing: bool = False,
        idempotent: bool = False,
        first: bool = False,
        aliases: tuple[str, ...] = (),
        argument_aliases: dict[str, str] | None = None,
        value_aliases: tuple[tuple[str, str, str], ...] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Adds a function as a tool. Its name is the function's; its arguments are the parameters, by their type hints.

        Without a summary, the first line of the function's docstring is taken. Every word of it takes room in the context
        of every model that may call the tool. A tool without a risk may only look."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            tool = name or function.__name__
            if not re.fullmatch(r"[a-z0-9_]{1,64}", tool):
                raise ValueError(f"expected a tool's name of a-z, 0-9 and _, at most 64 of them; found {tool!r}")
            if tool in self.tools:
                raise ValueError(f"expected one tool with the name {tool}")
            found = schema.parameters(function)
            contexts = [parameter.name for parameter in found if parameter.hint is Context]
            if len(contexts) > 1:
                raise TypeError(f"expected one parameter of type Context in {tool}, found {', '.join(contexts)}")
            docstring = inspect.getdoc(function) or ""
            self.tools[tool] = Tool(
                name=tool,
                summary=docstring.partition("\n")[0].rstrip(".") if summary is None else summary,
                function=function,
                risk=one_of("a risk", risk, RISKS),
                duration=one_of("a duration", duration, DURATIONS),
                shape=_shape(function),
                loses_nothing=loses_nothing,
                idempotent=idempotent,
                first=first,
                aliases=list(aliases),
                argument_aliases=dict(argument_aliases or {}),
                value_aliases=list(value_aliases),
                parameters=[parameter for parameter in found if parameter.hint is not Context],
                context=contexts[0] if contexts else None,
            )
            # A type that no schema can express is an error here, and not when the host asks for a description.
            _ = self.tools[tool].input_schema
            return function

        return add


def _shape(function: Callable[..., Any]) -> str:
    """The form of the answer, by the type hint of what the function returns."""
    hint = typing.get_type_hints(function).get("return")
    kind = typing.get_origin(hint) or hint
    if kind in (list, Listing):
        return "listing"
    return "analysis" if kind is Analysis else "single"
