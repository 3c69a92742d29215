"""The context of a call, through which a tool reaches the target's commands and files within the module's grants."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from .change import Applied, Change
from .choices import privilege
from .command import Command, Output
from .problem import Problem

#: The most bytes that one read of a file returns. The contract sets this limit.
_MOST = 1 << 20
#: The most commands that one call into the host takes. The contract sets this limit.
_AT_ONCE = 32


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts that the host has found out about the target. A fact that could not be found out is empty."""

    family: str = ""
    name: str = ""
    version: str = ""
    codename: str | None = None
    package_manager: str = ""
    init_system: str = ""
    firewall_backend: str = ""
    mac_system: str = ""
    mac_mode: str | None = None
    container_runtime: str = ""
    log_system: str = ""
    user_management: str = ""
    hostname: str = ""
    kernel: str = ""
    architecture: str = ""
    sudo_available: bool = False
    #: Further facts by name, such as `timezone` and `user`.
    extra: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """The metadata of a file. Symlinks are not followed."""

    size: int = 0
    mode: int = 0o644
    owner: str = "root"
    group: str = "root"
    modified_unix: int = 0
    is_dir: bool = False
    is_symlink: bool = False


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A call of another module's read-only tool."""

    tool: str
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


class Target(Protocol):
    """What answers for the target: the host, or in a module's own tests a `FakeTarget`."""

    def run_all(self, commands: list[Command]) -> list[Output | Problem]: ...
    def run_pipeline(self, commands: list[Command], seconds: int | None) -> list[Output]: ...
    def open(self, command: Command) -> Iterator[bytes]: ...
    def read_all(self, parts: list[tuple[str, int, int]], rights: str) -> list[bytes | Problem]: ...
    def stat_all(self, paths: list[str], rights: str) -> list[Metadata | None | Problem]: ...
    def list_all(self, paths: list[str], rights: str) -> list[list[str] | Problem]: ...
    def apply(self, change: Change) -> Applied: ...
    def facts(self) -> Facts: ...
    def call_tools(self, calls: list[ToolCall]) -> list[dict[str, Any] | Problem]: ...
    def redact(self, texts: list[str]) -> list[str]: ...
    def progress(self, fraction: float | None, message: str) -> None: ...


class Context:
    """The context of a call. The host hands one to every tool that has a parameter of this type."""

    def __init__(self, target: Target, limit: int | None = None, filter: str | None = None):
        self._target = target
        #: The most items that the caller wants of a listing. The host applies it; a tool may do so earlier to save work.
        self.limit = limit
        #: The text that items of a listing must hold. The host applies it; a tool may do so earlier to save work.
        self.filter = filter

    @property
    def facts(self) -> Facts:
        """The facts that the host found out about the target."""
        return self._target.facts()

    def run(self, command: Command) -> Output:
        """Runs one command that looks. An exit code other than 0 is not a problem here; `Output.success` makes it one."""
        return _value(self.run_all([command])[0])

    def run_all(self, commands: Iterable[Command]) -> list[Output | Problem]:
        """Runs independent commands at the same time. The results are in the order of the commands, and a command that
        couldn't be run has a problem in its place."""
        left, outputs = list(commands), []
        while left:
            outputs += self._target.run_all(left[:_AT_ONCE])
            left = left[_AT_ONCE:]
        return outputs

    def run_pipeline(self, commands: Iterable[Command], seconds: int | None = None) -> list[Output]:
        """Runs up to eight commands at once, each of which reads what the one before it prints. The outputs are in the order
        of the commands, and only the last one has stdout. `seconds` limits all of them."""
        return self._target.run_pipeline(list(commands), seconds)

    def open(self, command: Command) -> Iterator[bytes]:
        """The standard output of a command that looks, piece by piece, where it doesn't fit in memory. Closing the iterator
        ends the command. The exit code and standard error aren't available."""
        return self._target.open(command)

    def read(self, path: str, rights: str = "caller") -> str:
        """Reads a text file of the target. Bytes that aren't UTF-8 become U+FFFD. A file of 1 MiB or more is a problem."""
        return self.read_bytes(path, rights).decode("utf-8", "replace")

    def read_bytes(self, path: str, rights: str = "caller") -> bytes:
        """Reads the bytes of a file of the target, for a tool that writes it back."""
        return _value(self.read_all([path], rights)[0])

    def read_all(self, paths: Iterable[str], rights: str = "caller") -> list[bytes | Problem]:
        """Reads several files at the same time. The results are in the order of the paths."""
        paths = list(paths)
        contents = self._target.read_all([(path, 0, _MOST) for path in paths], privilege(rights))
        return [_whole(path, content) for path, content in zip(paths, contents)]

    def read_part(self, path: str, offset: int, length: int, rights: str = "caller") -> bytes:
        """Reads a part of a file, at most 1 MiB, and less at the end of the file. A negative offset counts from the end."""
        return _value(self._target.read_all([(path, offset, min(length, _MOST))], privilege(rights))[0])

    def stat(self, path: str, rights: str = "caller") -> Metadata | None:
        """The metadata of a path, `None` where it doesn't exist. A symlink isn't followed."""
        return _value(self.stat_all([path], rights)[0])

    def stat_all(self, paths: Iterable[str], rights: str = "caller") -> list[Metadata | None | Problem]:
        """The metadata of several paths, in their order."""
        return self._target.stat_all(list(paths), privilege(rights))

    def list_dir(self, path: str, rights: str = "caller") -> list[str]:
        """The names in a directory, sorted."""
        return _value(self._target.list_all([path], privilege(rights))[0])

    def apply(self, change: Change) -> Applied:
        """Hands the plan to the host, at most once in a call. It returns after the plan ran or was a dry run, and raises a
        `ChangeFailed` where it failed. If somebody refuses the plan, the host ends the call."""
        return self._target.apply(change)

    def call_tools(self, calls: Iterable[ToolCall]) -> list[dict[str, Any] | Problem]:
        """Calls read-only tools of other modules on this target, all at the same time. The module names them by
        `Module.calls_tool`. Each result is the tool's envelope; a call that fails has a problem in its place."""
        return self._target.call_tools(list(calls))

    def redacted(self, texts: Iterable[str]) -> list[str]:
        """The texts as the host would show them, without secrets. A tool that searches text searches these, so that a
        match tells nothing about a secret."""
        return self._target.redact(list(texts))

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Reports the progress of the tool's own work to the client; `fraction` is from 0 to 1."""
        self._target.progress(fraction, message)


def _value(answer: Any) -> Any:
    if isinstance(answer, Problem):
        raise answer
    return answer


def _whole(path: str, contents: bytes | Problem) -> bytes | Problem:
    """The contents of a whole file, or a problem where it may be larger than what was read."""
    if isinstance(contents, Problem) or len(contents) < _MOST:
        return contents
    return Problem("FILE_TOO_LARGE", f"{path} is larger than {_MOST} bytes", "resource")
