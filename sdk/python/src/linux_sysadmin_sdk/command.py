"""Commands and their output, and command lines that are written once and used twice: for the grant, and for the command
that it allows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from .choices import DURATIONS, KEEPS, one_of, privilege
from .problem import Problem


@dataclasses.dataclass(frozen=True)
class Command:
    """One program and its arguments. No shell ever reads them, and the host runs it only where a grant matches."""

    program: str
    args: tuple[str, ...] = ()
    #: Variables that the grant's pattern has in front of the program.
    env: tuple[tuple[str, str], ...] = ()
    #: What the command reads. The grant's pattern must end in `< stdin`.
    stdin: bytes | None = None
    #: Whose rights the command takes: `caller`, `root`, `root-if-available` or `user:NAME`.
    rights: str = "caller"
    #: How long the command may take: `instant`, `quick`, `normal`, `slow` or `long-running`.
    duration: str = "instant"
    #: The end of a long output that is kept: `head` or `tail`.
    keep: str = "head"

    def __post_init__(self) -> None:
        privilege(self.rights)
        one_of("a duration", self.duration, DURATIONS)
        one_of("the end that is kept", self.keep, KEEPS)

    def as_root(self) -> Command:
        """The command with root's rights."""
        return dataclasses.replace(self, rights="root")

    def replace(self, **fields: object) -> Command:
        """The command with other values of these fields."""
        return dataclasses.replace(self, **fields)

    @property
    def argv(self) -> list[str]:
        """The program and its arguments."""
        return [self.program, *self.args]


@dataclasses.dataclass(frozen=True)
class Output:
    """The result of a command. An exit code other than 0 is no problem by itself."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    #: The size of all that the command printed, with what was dropped.
    stdout_bytes: int = 0
    #: Whether a part of the output was dropped.
    truncated: bool = False

    @property
    def text(self) -> str:
        """Stdout as text. Bytes that aren't UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """Stderr as text, without blanks around it."""
        return self.stderr.decode("utf-8", "replace").strip()

    def success(self, program: str) -> Output:
        """The output, if the exit code is 0 and stdout is complete; otherwise it raises a problem that quotes stderr."""
        if self.exit_code != 0:
            message = f"{program} ended with exit code {self.exit_code}: {self.error_text}"
            raise Problem("COMMAND_FAILED", message)
        if self.truncated:
            message = f"{program} printed {self.stdout_bytes} bytes, more than is kept"
            raise Problem("OUTPUT_TOO_LARGE", message, "resource")
        return self


@dataclasses.dataclass
class _Token:
    """A token of a pattern: the texts around its holes, one more than there are holes."""

    texts: list[str]
    repeats: bool = False


class CommandLine:
    """A command line of fixed words and holes, in the form of a grant's pattern:
    `TZ=UTC systemctl show --property=Id -- <unit>...`.

    It has no optional parts, alternatives or stdin. Calling it with a value for each hole, in order, gives the command. A
    last `<type>...` takes all values that are left, given one by one or as a list.
    """

    def __init__(self, pattern: str):
        self.pattern = pattern
        self._tokens = _tokens(pattern)
        if not any(_variable(token) is None for token in self._tokens):
            raise ValueError(f"expected a program in the command line {pattern!r}")

    def __repr__(self) -> str:
        return f"CommandLine({self.pattern!r})"

    def __call__(self, *values: str | int | Iterable[str]) -> Command:
        """The command with these values. Too few or too many of them are an error of the module."""
        left = [text for value in values for text in _texts(value)]
        holes = sum(len(token.texts) - 1 for token in self._tokens if not token.repeats)
        repeats = any(token.repeats for token in self._tokens)
        if len(left) < holes + repeats or (len(left) > holes and not repeats):
            at_least = "at least " if repeats else ""
            raise ValueError(f"expected {at_least}{holes + repeats} values for `{self.pattern}`, found {len(left)}")
        env: list[tuple[str, str]] = []
        words: list[str] = []
        for token in self._tokens:
            variable = None if words else _variable(token)
            if variable is not None:
                env.append(variable)
            elif token.repeats and words:
                words.extend(left)
                left = []
            else:
                word = token.texts[0]
                for text in token.texts[1:]:
                    word += left.pop(0) + text
                words.append(word)
        return Command(words[0], tuple(words[1:]), tuple(env))


def _texts(value: str | int | Iterable[str]) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, int):
        return [str(value)]
    return [str(one) for one in value]


def _variable(token: _Token) -> tuple[str, str] | None:
    """Splits `NAME=value`. Only words in front of the program are variables."""
    if len(token.texts) > 1:
        return None
    found = re.fullmatch(r"([A-Za-z0-9_]+)=(.*)", token.texts[0], re.DOTALL)
    return (found[1], found[2]) if found else None


def _tokens(pattern: str) -> list[_Token]:
    """Splits a pattern at blanks outside of quotes. Quotes may stand anywhere in a token."""
    tokens: list[_Token] = []
    token: _Token | None = None
    for part in re.finditer(r"(?P<blank> +)|'(?P<quoted>[^']*)'|(?P<hole><[a-z][^>]*>)|(?P<more>\.\.\.)|(?P<text>.)", pattern):
        if part["blank"]:
            tokens.extend([token] if token else [])
            token = None
            continue
        token = token or _Token([""])
        if part["hole"]:
            token.texts.append("")
        elif part["more"]:
            token.repeats = True
        else:
            token.texts[-1] += part["quoted"] if part["quoted"] is not None else part["text"]
    return tokens + ([token] if token else [])
