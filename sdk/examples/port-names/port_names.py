"""Names of ports: a small module in Python, as a third party writes one.

    pip install linux-sysadmin-sdk
    linux-sysadmin-build port_names.py
"""

import dataclasses
from typing import Annotated, Literal

from linux_sysadmin_sdk import Analysis, Arg, CommandLine, Context, Module, Problem

NAMED = CommandLine("getent services -- <port>/<protocol>")
ALL = CommandLine("getent services")
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"

#: The exit code by which getent says that there is no such entry.
NOT_FOUND = 2
#: So few ports are used up by a single busy proxy.
FEW = 10_000

module = Module(
    "port-names",
    version="0.1.0",
    domain="network",
    summary="Names of ports, and ports for outgoing connections",
    license="Apache-2.0",
)
module.read(NAMED, "to see the name of a port")
module.read(ALL, "to list the ports that have names")
module.read_path(RANGE, "to see which ports outgoing connections take")


@dataclasses.dataclass
class Named:
    """A port with its name."""

    port: int
    protocol: str
    name: str
    aliases: list[str]


@module.tool("Name of a port", duration="instant")
def port_name(
    port: Annotated[int, Arg(minimum=1, maximum=65535)],
    cx: Context,
    protocol: Literal["tcp", "udp"] = "tcp",
) -> Named:
    output = cx.run(NAMED(port, protocol))
    if output.exit_code == NOT_FOUND:
        raise Problem.not_found("PORT_NOT_NAMED", f"no service has the port {port}/{protocol}").remedy(
            f"See what listens there: net_connections port={port}"
        )
    return read(output.success("getent").text)


@module.tool("Ports that have names", duration="instant")
def port_list(cx: Context) -> list[Named]:
    text = cx.run(ALL()).success("getent").text
    return [read(line) for line in text.splitlines()]


@module.tool("Ports that outgoing connections take", duration="instant")
def port_range(cx: Context) -> Analysis:
    text = cx.read(RANGE)
    try:
        first, last = (int(word) for word in text.split())
    except ValueError:
        raise Problem.unexpected(RANGE, text) from None
    count = last - first + 1
    data = {"first": first, "last": last, "count": count}
    if count < FEW:
        return Analysis(data, f"Only {count} connections to one address are possible at a time", "warning")
    return Analysis(data, f"{count} ports are free for outgoing connections", "info")


def read(line: str) -> Named:
    """Reads `http   80/tcp www`."""
    name, _, rest = line.strip().partition(" ")
    at, *aliases = rest.split() or [""]
    port, _, protocol = at.partition("/")
    if not port.isdigit():
        raise Problem.unexpected("getent services", line)
    return Named(int(port), protocol, name, aliases)
