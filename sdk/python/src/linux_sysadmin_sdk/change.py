"""Plans: a tool hands everything that it changes to the host as a whole, before the first step.

    change = Change("Restart nginx").step(Step.run(RESTART("nginx").as_root()).uninterruptible()).affects("nginx")
    applied = cx.apply(change)

The host shows the plan, asks for a confirmation where one is needed, and executes the steps. Where a step fails, it undoes
those that had succeeded. So a tool looks first, then applies one plan, and then reports the outcome."""

from __future__ import annotations

import dataclasses

from .choices import LOCKS, RISKS, one_of, privilege
from .command import Command, Output
from .problem import Problem


@dataclasses.dataclass(frozen=True)
class Signal:
    """A signal to processes, each named by its number and its start in clock ticks since boot."""

    number: int
    processes: tuple[tuple[int, int], ...]
    #: Whether their descendants get it as well.
    tree: bool = False
    #: The time in seconds that the host waits for their end.
    wait_seconds: int = 0
    #: Whether SIGKILL ends what is left after that time.
    kill: bool = False


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of a plan. The class methods make steps."""

    #: `run`, `run-pipeline`, `signal-processes`, `write-file`, `remove-file`, `make-directory`, `remove-directory`,
    #: `move-path` or `set-attributes`.
    kind: str
    command: Command | None = None
    pipeline: tuple[Command, ...] = ()
    seconds: int | None = None
    signal: Signal | None = None
    path: str | None = None
    contents: bytes | None = None
    to: str | None = None
    mode: int | None = None
    owner: str | None = None
    group: str | None = None
    is_sensitive: bool = False
    validation: Command | None = None
    rights: str = "root"
    exit_codes: tuple[int, ...] = ()
    is_interruptible: bool = True
    undo_commands: tuple[Command, ...] = ()

    def __post_init__(self) -> None:
        privilege(self.rights)

    @classmethod
    def run(cls, command: Command) -> Step:
        """Runs a command. It succeeds with exit code 0, unless `success` says otherwise."""
        return cls("run", command=command)

    @classmethod
    def run_pipeline(cls, *commands: Command, seconds: int | None = None) -> Step:
        """Runs a pipeline. Any exit code counts as success, unless `success` is told that only 0 does."""
        return cls("run-pipeline", pipeline=commands, seconds=seconds)

    @classmethod
    def send(cls, signal: Signal) -> Step:
        """Sends a signal to processes, with root's rights. It needs `Module.signals`."""
        return cls("signal-processes", signal=signal)

    @classmethod
    def write(
        cls,
        path: str,
        contents: str | bytes,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> Step:
        """Replaces or creates a file atomically, with root's rights. A file that exists keeps its mode, owner and group,
        unless they are given; a new file gets mode 0644 and belongs to root."""
        data = contents.encode() if isinstance(contents, str) else contents
        return cls("write-file", path=path, contents=data, mode=mode, owner=owner, group=group)

    @classmethod
    def remove(cls, path: str) -> Step:
        """Removes a file, or a symlink itself, with root's rights."""
        return cls("remove-file", path=path)

    @classmethod
    def make_directory(cls, path: str, mode: int, owner: str | None = None, group: str | None = None) -> Step:
        """Creates a directory that doesn't exist yet, with root's rights."""
        return cls("make-directory", path=path, mode=mode, owner=owner, group=group)

    @classmethod
    def remove_directory(cls, path: str) -> Step:
        """Removes a directory that is empty, or whose whole content earlier steps remove, with root's rights."""
        return cls("remove-directory", path=path)

    @classmethod
    def move(cls, path: str, to: str) -> Step:
        """Moves a file or a directory to a path where nothing is, within its file system, with root's rights."""
        return cls("move-path", path=path, to=to)

    @classmethod
    def attributes(
        cls, path: str, mode: int | None = None, owner: str | None = None, group: str | None = None
    ) -> Step:
        """Sets the mode, the owner or the group of a file or directory that exists. What isn't given stays as it is."""
        return cls("set-attributes", path=path, mode=mode, owner=owner, group=group)

    def undo(self, command: Command) -> Step:
        """Adds a command that undoes this step. Steps with files and directories need none: the host undoes them."""
        return dataclasses.replace(self, undo_commands=(*self.undo_commands, command))

    def success(self, *codes: int) -> Step:
        """Sets the exit codes with which the command succeeds."""
        return dataclasses.replace(self, exit_codes=codes)

    def uninterruptible(self) -> Step:
        """Lets the command run to its end: it is not killed when the call is cancelled, and it has no time limit."""
        return dataclasses.replace(self, is_interruptible=False)

    def sensitive(self) -> Step:
        """Keeps the file's contents out of previews and of the audit log."""
        return dataclasses.replace(self, is_sensitive=True)

    def validate(self, command: Command) -> Step:
        """Sets a command that checks the new file before it takes the old one's place. One argument `{}`, or
        `--option={}`, stands for the new file."""
        return dataclasses.replace(self, validation=command)

    def files_as(self, rights: str) -> Step:
        """Sets the account whose rights write or remove the file or directory. The default is root."""
        return dataclasses.replace(self, rights=rights)


class Change:
    """A plan. Build it with its methods and hand it to `Context.apply`."""

    def __init__(self, summary: str):
        #: One sentence in the imperative: "Restart the nginx service".
        self.summary = summary
        self.steps: list[Step] = []
        self.commands_after_undo: list[Command] = []
        self.guard_seconds: int | None = None
        self.restart_seconds: int | None = None
        self.is_turning_off = False
        self.locks: list[str] = []
        self.raised_risk: str | None = None
        self.warnings: list[str] = []
        self.affected_services: list[str] = []
        self.simulation: Command | None = None

    def step(self, step: Step) -> Change:
        """Adds a step. Steps run in the order in which they are added."""
        self.steps.append(step)
        return self

    def after_undo(self, command: Command) -> Change:
        """Adds a command that runs after every undo, such as `systemctl daemon-reload`."""
        self.commands_after_undo.append(command)
        return self

    def guard(self, seconds: int) -> Change:
        """Sets a guard: the target undoes the change by itself, unless the host reaches it by a new connection within
        this many seconds after the last step."""
        self.guard_seconds = seconds
        return self

    def restarts(self, seconds: int) -> Change:
        """Says that the last step restarts the machine. Over the network, the host waits at most this many seconds until
        the machine answers again."""
        self.restart_seconds = seconds
        return self

    def turns_off(self) -> Change:
        """Says that the last step turns the machine off."""
        self.is_turning_off = True
        return self

    def lock(self, lock: str) -> Change:
        """Adds a resource that must be free: `package-database`, `systemd`, `lvm`, `file:PATH` or `named:NAME`."""
        if not lock.startswith(("file:", "named:")):
            one_of("a lock", lock, LOCKS)
        self.locks.append(lock)
        return self

    def risk(self, risk: str) -> Change:
        """Raises the risk of this call above the tool's own. It never lowers the risk."""
        known = RISKS.index(self.raised_risk) if self.raised_risk else 0
        self.raised_risk = RISKS[max(known, RISKS.index(one_of("a risk", risk, RISKS)))]
        return self

    def warning(self, warning: str) -> Change:
        """Adds a sentence that a person should read before saying yes."""
        self.warnings.append(warning)
        return self

    def affects(self, unit: str) -> Change:
        """Adds a unit that the change stops or restarts."""
        self.affected_services.append(unit)
        return self

    def dry_run(self, command: Command) -> Change:
        """Sets the program's own simulation of the change. It needs a grant by `Module.dry_run`."""
        self.simulation = command
        return self


@dataclasses.dataclass(frozen=True)
class Applied:
    """The outcome of a plan that ran, or of a dry run."""

    #: The output of each step that is a command, in order. After a dry run: that of the program's own simulation.
    outputs: list[Output] = dataclasses.field(default_factory=list)
    #: True where nothing was changed. The answer then says what the tool would have changed.
    dry_run: bool = False


class ChangeFailed(Problem):
    """The problem of a plan that failed. The host itself reports in the answer which steps it undid."""

    def __init__(self, problem: Problem, step: int, outputs: list[Output], uncertain: bool = False):
        super().__init__(problem.code, problem.message, problem.category, tuple(problem.remediation))
        #: The index of the step that failed.
        self.step = step
        #: The outputs of the steps that ran.
        self.outputs = outputs
        #: True where the connection broke during a step, so that the outcome is unknown.
        self.uncertain = uncertain
