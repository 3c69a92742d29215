"""What a module prints. A component has no output, and `print` would end it. The end of what was printed is kept, and shown
where the module fails by a defect."""

import io

#: The number of characters that are kept.
_KEPT = 2000


class Printed(io.TextIOBase):
    """A stream that keeps the end of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._kept = (self._kept + text)[-_KEPT:]
        return len(text)

    def text(self) -> str:
        """The end of what was printed, without blanks around it."""
        return self._kept.strip()

    def clear(self) -> None:
        """Forgets what was printed."""
        self._kept = ""
