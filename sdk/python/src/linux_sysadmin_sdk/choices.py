"""The words for what the contract enumerates. They are the names of the contract itself."""

RISKS = ("read-only", "low", "moderate", "high", "critical")
DURATIONS = ("instant", "quick", "normal", "slow", "long-running")
CATEGORIES = (
    "privilege",
    "not-found",
    "dependency",
    "resource",
    "lock",
    "network",
    "timeout",
    "validation",
    "state",
    "denied",
    "internal",
    "other",
)
SEVERITIES = ("info", "warning", "high", "critical")
LOCKS = ("package-database", "systemd", "lvm")
KEEPS = ("head", "tail")
PRIVILEGES = ("caller", "root", "root-if-available")


def one_of(what: str, value: str, choices: tuple[str, ...]) -> str:
    """Returns the value where it is one of the choices. An author learns of a wrong word when the module is built."""
    if value not in choices:
        raise ValueError(f"expected as {what} one of {', '.join(choices)}, found {value!r}")
    return value


def privilege(value: str) -> str:
    """Returns the value where it says whose rights are taken: one of `PRIVILEGES`, or `user:NAME`."""
    if value.startswith("user:") and value != "user:":
        return value
    if value not in PRIVILEGES:
        raise ValueError(f"expected as rights one of {', '.join(PRIVILEGES)} or user:NAME, found {value!r}")
    return value
