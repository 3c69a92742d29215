"""A fake target made of recordings, for a module's own tests.

    target = FakeTarget().answer(["uptime", "--since"], "2026-01-31 10:00:00\\n")
    assert target.call(module, "uptime_since") == {"since": "2026-01-31 10:00:00"}

It does not check grants, which only the host does: `linux-sysadmin modules inspect` and a call show what is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

from .change import Applied, Change
from .command import Command, Output
from .context import Context, Facts, Metadata, ToolCall
from .module import Module
from .problem import Problem
from .reply import Reply


class FakeTarget:
    """A target that answers with files and outputs which were recorded on a real machine."""

    def __init__(self, files: dict[str, str | bytes] | None = None, facts: Facts | None = None):
        #: The files by their paths.
        self.files = dict(files or {})
        #: The facts that `Context.facts` returns.
        self.known_facts = facts or Facts(family="debian", package_manager="apt", init_system="systemd")
        #: The plans that tools handed over.
        self.plans: list[Change] = []
        #: The progress that tools reported.
        self.reports: list[str] = []
        self._answers: list[tuple[list[str], Output | Problem]] = []
        self._tools: list[tuple[ToolCall, dict[str, Any] | Problem]] = []
        self._outcome: Applied | Problem = Applied()
        self._secrets: list[str] = []

    def file(self, path: str, contents: str | bytes) -> FakeTarget:
        """Adds a file."""
        self.files[path] = contents
        return self

    def answer(
        self, argv: list[str], stdout: str | bytes = "", exit_code: int = 0, stderr: str = ""
    ) -> FakeTarget:
        """Adds the output of one command. The last one that was added counts."""
        data = stdout.encode() if isinstance(stdout, str) else stdout
        self._answers.insert(0, (argv, Output(exit_code, data, stderr.encode(), len(data))))
        return self

    def transcript(self, text: str) -> FakeTarget:
        """Adds commands with their outputs, as `linux-sysadmin modules record` writes them. Each begins with a line
        `$ ARGV` (words with blanks are in single quotes) and a line `[exit CODE]`. Stdout follows, then `[stderr]` and
        stderr where there is any. Text before the first command is a comment."""
        for block in f"\n{text}".split("\n$ ")[1:]:
            line, _, rest = block.partition("\n")
            exit_line, _, rest = rest.partition("\n")
            code = re.fullmatch(r"\[exit (-?\d+)\]", exit_line)
            if code is None:
                raise ValueError(f"after `$ {line}`: expected a line such as [exit 0], found {exit_line!r}")
            stdout, _, stderr = f"\n{rest}".partition("\n[stderr]\n")
            self.answer(_words(line), _ended(stdout[1:]), int(code[1]), _ended(stderr))
        return self

    def failure(self, argv: list[str], problem: Problem) -> FakeTarget:
        """Adds the problem of one command that the host doesn't run to its end."""
        self._answers.insert(0, (argv, problem))
        return self

    def tool(self, name: str, arguments: dict[str, Any], result: dict[str, Any] | Problem) -> FakeTarget:
        """Adds the result of another module's tool: its envelope, or a problem."""
        self._tools.append((ToolCall(name, arguments), result))
        return self

    def outcome(self, outcome: Applied | Problem) -> FakeTarget:
        """Sets the outcome of plans. By default they run without output."""
        self._outcome = outcome
        return self

    def secret(self, secret: str) -> FakeTarget:
        """Adds a secret that the host doesn't show."""
        self._secrets.append(secret)
        return self

    def call(self, module: Module, tool: str, /, **arguments: Any) -> Any:
        """Calls a tool as the host would, and gives the answer's data."""
        return json.loads(self.reply(module, tool, **arguments).data)

    def reply(self, module: Module, tool: str, /, **arguments: Any) -> Reply:
        """Calls a tool as the host would, and gives the whole answer."""
        if tool not in module.tools:
            raise Problem("UNKNOWN_TOOL", f"the module has no tool {tool}", "internal")
        return module.tools[tool].call(arguments, Context(self))

    def run_all(self, commands: list[Command]) -> list[Output | Problem]:
        return [self._run(command) for command in commands]

    def _run(self, command: Command) -> Output | Problem:
        for argv, output in self._answers:
            if argv == command.argv:
                return output
        return Problem("NOT_RECORDED", f"no answer was recorded for {command.argv}", "internal")

    def run_pipeline(self, commands: list[Command], seconds: int | None) -> list[Output]:
        """Each command has a recording of its own. Only the last one's stdout counts."""
        outputs = []
        for output in self.run_all(commands):
            if isinstance(output, Problem):
                raise output
            outputs.append(output)
        silent = [dataclasses.replace(output, stdout=b"", stdout_bytes=0) for output in outputs[:-1]]
        return silent + outputs[-1:]

    def open(self, command: Command) -> Iterator[bytes]:
        output = self._run(command)
        if isinstance(output, Problem):
            raise output
        return iter([output.stdout] if output.stdout else [])

    def read_all(self, parts: list[tuple[str, int, int]], rights: str) -> list[bytes | Problem]:
        return [self._part(*part) for part in parts]

    def _part(self, path: str, offset: int, length: int) -> bytes | Problem:
        contents = self._read(path)
        if isinstance(contents, Problem):
            return contents
        begin = offset if offset >= 0 else max(len(contents) + offset, 0)
        return contents[begin : begin + length]

    def _read(self, path: str) -> bytes | Problem:
        if path not in self.files:
            return Problem.not_found("FILE_NOT_FOUND", f"{path} does not exist")
        contents = self.files[path]
        return contents.encode() if isinstance(contents, str) else contents

    def stat_all(self, paths: list[str], rights: str) -> list[Metadata | None | Problem]:
        return [self._stat(path) for path in paths]

    def _stat(self, path: str) -> Metadata | None:
        contents = self._read(path)
        if isinstance(contents, bytes):
            return Metadata(size=len(contents))
        return Metadata(mode=0o755, is_dir=True) if self._names(path) else None

    def list_all(self, paths: list[str], rights: str) -> list[list[str] | Problem]:
        missing = [Problem.not_found("FILE_NOT_FOUND", f"{path} does not exist") for path in paths]
        return [self._names(path) or problem for path, problem in zip(paths, missing)]

    def _names(self, path: str) -> list[str]:
        folder = path.rstrip("/") + "/"
        below = {file[len(folder) :].split("/")[0] for file in self.files if file.startswith(folder)}
        return sorted(below)

    def apply(self, change: Change) -> Applied:
        if self.plans:
            raise AssertionError("a call applies at most one plan")
        self.plans.append(change)
        if isinstance(self._outcome, Problem):
            raise self._outcome
        return self._outcome

    def facts(self) -> Facts:
        return self.known_facts

    def call_tools(self, calls: list[ToolCall]) -> list[dict[str, Any] | Problem]:
        return [self._call_tool(call) for call in calls]

    def _call_tool(self, call: ToolCall) -> dict[str, Any] | Problem:
        for recorded, result in self._tools:
            if recorded == call:
                return result
        return Problem("NOT_RECORDED", f"no result was recorded for {call.tool} {call.arguments}", "internal")

    def redact(self, texts: list[str]) -> list[str]:
        for secret in self._secrets:
            texts = [text.replace(secret, "[redacted]") for text in texts]
        return texts

    def progress(self, fraction: float | None, message: str) -> None:
        self.reports.append(message)


def _words(line: str) -> list[str]:
    """Splits a line at blanks outside of single quotes."""
    return ["".join(part.split("'")) for part in re.findall(r"(?:[^ ']|'[^']*')+", line)]


def _ended(text: str) -> str:
    """The text with one newline at its end, unless it is empty."""
    stripped = text.rstrip("\n")
    return f"{stripped}\n" if stripped else ""
