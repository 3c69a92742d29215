"""The component: passes a call of the contract to the module's tool, and what a tool asks for to the host.

Only this file uses the bindings of the contract, `wit_world`, which there are inside a component and nowhere else.
`linux-sysadmin-build` makes the component's first file, which imports the module and this file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from componentize_py_types import Err, Ok
from wit_world import exports
from wit_world.exports import describe as described
from wit_world.exports import tools as called
from wit_world.imports import (
    confirm,
    distro_context,
    exec_command,
    progress,
    redaction,
    target_files,
    tool_calls,
    types,
)

from .change import Applied, Change, ChangeFailed, Step
from .command import Command, Output
from .context import Context, Facts, Metadata, ToolCall
from .module import Module, Tool
from .printed import Printed
from .problem import Problem

#: The number of bytes that one read of a stream asks for.
_PIECE = 64 << 10

_module: Module | None = None
_printed = Printed()


def serve(module: Module) -> None:
    """Sets the module that the component answers for. What it prints is kept, because a component has no output."""
    global _module
    _module = module
    sys.stdout = sys.stderr = _printed


class Describe(exports.Describe):
    """The export by which the host asks what the module is."""

    def describe(self) -> described.Description:
        module = _served()
        return described.Description(
            name=module.name,
            version=module.version,
            summary=module.summary,
            homepage=module.homepage,
            license=module.license,
            domain=module.domain,
            serves=[described.Condition(fact, any_of) for fact, any_of in module.conditions],
            tools=[_tool(tool) for tool in module.tools.values()],
            capabilities=described.Capabilities(
                commands=[
                    described.CommandGrant(
                        pattern=grant.pattern,
                        effect=_member(described.Effect, grant.effect),
                        privilege=_privilege(grant.rights),
                        place=types.Place.TARGET,
                        risk=_member(types.Risk, grant.risk),
                        reason=grant.reason,
                    )
                    for grant in module.commands
                ],
                paths=[
                    described.PathGrant(
                        glob=grant.glob,
                        write=grant.write,
                        privilege=_privilege(grant.rights),
                        place=types.Place.TARGET,
                        reason=grant.reason,
                    )
                    for grant in module.paths
                ],
                tools=module.called_tools,
                any_program=[
                    described.AnyProgramGrant(_privilege(rights), types.Place.TARGET, reason)
                    for rights, reason in module.any_programs
                ],
                signals=[
                    described.SignalGrant(_privilege(rights), types.Place.TARGET, reason)
                    for rights, reason in module.signal_grants
                ],
                own_programs=[],
            ),
            hints=[
                described.Hint(tool.name, tool.loses_nothing, tool.idempotent, [], tool.first)
                for tool in module.tools.values()
                if tool.loses_nothing or tool.idempotent or tool.first
            ],
        )


class Tools(exports.Tools):
    """The export by which the host calls a tool."""

    def call(self, tool: str, arguments: str, context: called.Context) -> called.Reply:
        _printed.clear()
        try:
            found = _served().tools.get(tool)
            if found is None:
                raise Problem("UNKNOWN_TOOL", f"this module has no tool {tool}", "internal")
            answer = found.call(json.loads(arguments), Context(_Host(), context.limit, context.filter))
        except Problem as problem:
            raise Err(_problem(problem)) from None
        except Exception as error:
            raise Err(_problem(_defect(error))) from None
        return called.Reply(answer.data, answer.total, answer.summary, answer.severity, answer.notes)


def _served() -> Module:
    if _module is None:
        raise RuntimeError("expected a call of `serve` when the component was built")
    return _module


def _defect(error: Exception) -> Problem:
    """The problem of an exception that the module didn't mean to raise: where it was raised, and what was printed before."""
    # The module `traceback` would read the sources, and there are no files here.
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" in {at.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}, line {at.tb_lineno}" if at else ""
    problem = Problem("MODULE_FAILED", f"the module has a defect{place}: {type(error).__name__}: {error}", "internal")
    printed = _printed.text()
    if printed:
        problem.message += f"; it had printed: {printed}"
    return problem


class _Host:
    """The target of a call, as the host lets the module see it."""

    def run_all(self, commands: list[Command]) -> list[Output | Problem]:
        return [_answer(result, _output) for result in exec_command.run_all([_command(one) for one in commands])]

    def run_pipeline(self, commands: list[Command], seconds: int | None) -> list[Output]:
        with _own_problems():
            outputs = exec_command.run_pipeline(types.Pipeline([_command(one) for one in commands], seconds))
        return [_output(output) for output in outputs]

    def open(self, command: Command) -> Iterator[bytes]:
        with _own_problems():
            stream = exec_command.open(_command(command))
        return _pieces(stream)

    def read_all(self, parts: list[tuple[str, int, int]], rights: str) -> list[bytes | Problem]:
        requests = [target_files.Request(*part) for part in parts]
        return [_answer(result) for result in target_files.read_all(requests, _privilege(rights), types.Place.TARGET)]

    def stat_all(self, paths: list[str], rights: str) -> list[Metadata | None | Problem]:
        results = target_files.stat_all(paths, _privilege(rights), types.Place.TARGET)
        return [_answer(result, lambda found: found and Metadata(**vars(found))) for result in results]

    def list_all(self, paths: list[str], rights: str) -> list[list[str] | Problem]:
        return [_answer(result) for result in target_files.list_all(paths, _privilege(rights), types.Place.TARGET)]

    def apply(self, change: Change) -> Applied:
        try:
            applied = confirm.apply(_change(change))
        except Err as error:
            failure = error.value
            outputs = [_output(output) for output in failure.outputs]
            raise ChangeFailed(_own(failure.problem), failure.step, outputs, failure.uncertain) from None
        return Applied([_output(output) for output in applied.outputs], applied.dry_run)

    def facts(self) -> Facts:
        found = vars(distro_context.current())
        return Facts(**{**found, "extra": dict(found["extra"])})

    def call_tools(self, calls: list[ToolCall]) -> list[dict[str, Any] | Problem]:
        asked = [tool_calls.ToolCall(call.tool, json.dumps(call.arguments)) for call in calls]
        return [_answer(result, json.loads) for result in tool_calls.call_all(asked)]

    def redact(self, texts: list[str]) -> list[str]:
        return redaction.redact(texts)

    def progress(self, fraction: float | None, message: str) -> None:
        progress.report(fraction, message)


def _pieces(stream: exec_command.OutputStream) -> Iterator[bytes]:
    """The pieces of a command's output. The command ends with the iterator."""
    with stream:
        while True:
            with _own_problems():
                piece = stream.read(_PIECE)
            if not piece:
                return
            yield piece


@contextlib.contextmanager
def _own_problems() -> Iterator[None]:
    """Makes what the bindings raise the package's own problems."""
    try:
        yield
    except Err as error:
        raise _own(error.value) from None


def _answer(result: Any, convert: Any = lambda value: value) -> Any:
    """The value of a result, or its problem."""
    return convert(result.value) if isinstance(result, Ok) else _own(result.value)


def _own(problem: types.Problem) -> Problem:
    category = problem.category.name.lower().replace("_", "-")
    return Problem(problem.code, problem.message, category, tuple(problem.remediation))


def _problem(problem: Problem) -> types.Problem:
    category = _member(types.Category, problem.category)
    return types.Problem(problem.code, category, problem.message, [str(step) for step in problem.remediation])


def _member(enumeration: Any, name: str) -> Any:
    """The member of an enumeration of the bindings, by its name in the contract."""
    return enumeration[name.replace("-", "_").upper()]


def _privilege(rights: str) -> types.Privilege:
    if rights.startswith("user:"):
        return types.Privilege_User(rights.removeprefix("user:"))
    plain = {
        "caller": types.Privilege_Caller,
        "root": types.Privilege_Root,
        "root-if-available": types.Privilege_RootIfAvailable,
    }
    return plain[rights]()


def _command(command: Command) -> types.Command:
    return types.Command(
        program=command.program,
        args=list(command.args),
        env=list(command.env),
        stdin=command.stdin,
        privilege=_privilege(command.rights),
        place=types.Place.TARGET,
        duration=_member(types.DurationCategory, command.duration),
        keep=_member(types.Keep, command.keep),
    )


def _output(output: types.Output) -> Output:
    return Output(output.exit_code, output.stdout, output.stderr, output.stdout_bytes, output.truncated)


def _tool(tool: Tool) -> described.Tool:
    return described.Tool(
        name=tool.name,
        summary=tool.summary,
        input_schema=json.dumps(tool.input_schema, ensure_ascii=False),
        risk=_member(types.Risk, tool.risk),
        duration=_member(types.DurationCategory, tool.duration),
        shape=_member(described.Shape, tool.shape),
        place=types.Place.TARGET,
        aliases=described.Aliases(
            tool=tool.aliases,
            arguments=[described.ArgumentAlias(alias, name) for alias, name in tool.argument_aliases.items()],
            values=[described.ValueAlias(*alias) for alias in tool.value_aliases],
        ),
    )


def _change(change: Change) -> confirm.Change:
    return confirm.Change(
        summary=change.summary,
        steps=[confirm.Step(_action(step), [_command(one) for one in step.undo_commands]) for step in change.steps],
        after_undo=[_command(one) for one in change.commands_after_undo],
        guard=None if change.guard_seconds is None else confirm.Guard(change.guard_seconds),
        power=_power(change),
        locks=[_lock(lock) for lock in change.locks],
        risk=_member(types.Risk, change.raised_risk) if change.raised_risk else None,
        warnings=change.warnings,
        affected_services=change.affected_services,
        dry_run=_command(change.simulation) if change.simulation else None,
    )


def _power(change: Change) -> confirm.PowerChange | None:
    if change.is_turning_off:
        return confirm.PowerChange_Off()
    return None if change.restart_seconds is None else confirm.PowerChange_Restart(change.restart_seconds)


def _lock(lock: str) -> confirm.Lock:
    kind, _, name = lock.partition(":")
    match kind:
        case "file":
            return confirm.Lock_File(name)
        case "named":
            return confirm.Lock_Named(name)
        case "package-database":
            return confirm.Lock_PackageDatabase()
        case "systemd":
            return confirm.Lock_Systemd()
        case _:
            return confirm.Lock_Lvm()


def _action(step: Step) -> confirm.Action:
    if step.kind == "run":
        return confirm.Action_Run(
            confirm.RunCommand(_command(step.command), list(step.exit_codes), step.is_interruptible)
        )
    if step.kind == "run-pipeline":
        pipeline = types.Pipeline([_command(one) for one in step.pipeline], step.seconds)
        return confirm.Action_RunPipeline(confirm.RunPipeline(pipeline, step.exit_codes != (0,)))
    if step.kind == "signal-processes":
        signal = step.signal
        return confirm.Action_SignalProcesses(
            confirm.ProcessSignal(
                processes=[confirm.Process(pid, start) for pid, start in signal.processes],
                tree=signal.tree,
                signal=signal.number,
                wait_seconds=signal.wait_seconds,
                kill=signal.kill,
                privilege=_privilege(step.rights),
            )
        )
    at = confirm.FilePath(step.path, _privilege(step.rights), types.Place.TARGET)
    match step.kind:
        case "write-file":
            return confirm.Action_WriteFile(
                confirm.FileWrite(
                    at=at,
                    contents=step.contents,
                    mode=step.mode,
                    owner=step.owner,
                    group=step.group,
                    sensitive=step.is_sensitive,
                    validate=_command(step.validation) if step.validation else None,
                )
            )
        case "remove-file":
            return confirm.Action_RemoveFile(at)
        case "make-directory":
            return confirm.Action_MakeDirectory(confirm.Directory(at, step.mode, step.owner, step.group))
        case "remove-directory":
            return confirm.Action_RemoveDirectory(at)
        case "move-path":
            return confirm.Action_MovePath(confirm.PathMove(at, step.to))
        case "set-attributes":
            return confirm.Action_SetAttributes(confirm.Attributes(at, step.mode, step.owner, step.group))
    raise ValueError(f"expected a step of a known kind, found {step.kind!r}")
