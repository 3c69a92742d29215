"""Problems: errors with a stable code, a category, a message and advice. The host puts them into the answer."""

from .choices import CATEGORIES, one_of

#: The number of characters of an unexpected text that a message quotes.
_EXCERPT = 120


class Problem(Exception):
    """The reason why a call failed. A tool raises it, and so does every function of the context that fails."""

    def __init__(self, code: str, message: str, category: str = "other", remediation: tuple[str, ...] = ()):
        super().__init__(message)
        #: A code for programs, in upper snake case.
        self.code = code
        #: One sentence for a person.
        self.message = message
        #: The category, which decides whether the host tries again.
        self.category = one_of("a category", category, CATEGORIES)
        #: Steps that help, one each.
        self.remediation = list(remediation)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def remedy(self, step: str) -> "Problem":
        """Adds a step that a person or a model can take to solve the problem."""
        self.remediation.append(step)
        return self

    @classmethod
    def validation(cls, code: str, message: str) -> "Problem":
        """The caller's input is wrong. The message says what was expected."""
        return cls(code, message, "validation")

    @classmethod
    def not_found(cls, code: str, message: str) -> "Problem":
        """The target has no such thing."""
        return cls(code, message, "not-found")

    @classmethod
    def unexpected(cls, source: str, text: str) -> "Problem":
        """A program's output or a file has a form that the module doesn't know."""
        excerpt = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}… ({len(text)} characters)"
        return cls("UNEXPECTED_OUTPUT", f"{source} is not in the expected form: {excerpt!r}")
