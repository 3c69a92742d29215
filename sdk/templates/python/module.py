"""The module {{name}}: a tool that looks by a command and a file, and one that changes something by a plan. Put your own
tools in their place."""

import dataclasses
from typing import Annotated

from linux_sysadmin_sdk import Change, CommandLine, Context, Module, Problem, Step

# A command line is written once, and used twice: for the grant, and for the command that it allows.
KERNEL = CommandLine("uname --kernel-release")
RESTART = CommandLine("systemctl restart -- <unit>")

UPTIME = "/proc/uptime"

# What the module may do, each with the reason that the operator reads.
module = Module(
    "{{name}}",
    version="0.1.0",
    domain="{{name}}",
    summary="What the tools of this module are for, in one sentence",
    license="Apache-2.0",
)
module.read(KERNEL, "which kernel runs")
module.read_path(UPTIME, "for how long it has run")
module.change(RESTART, "moderate", "to restart the unit that the caller names")


@dataclasses.dataclass
class Kernel:
    release: str
    up_seconds: int


@module.tool("The running kernel", duration="instant")
def {{identifier}}_kernel(cx: Context) -> Kernel:
    release = cx.run(KERNEL()).success("uname").text.strip()
    uptime = cx.read(UPTIME)
    whole = uptime.partition(".")[0]
    if not whole.isdecimal():
        raise Problem.unexpected(UPTIME, uptime)
    return Kernel(release, int(whole))


@module.tool("Restart a unit", risk="moderate")
def {{identifier}}_restart(service: Annotated[str, "The unit's name"], cx: Context) -> dict:
    step = Step.run(RESTART(service).as_root()).uninterruptible()
    applied = cx.apply(Change(f"Restart {service}").step(step).affects(service))
    return {"restarted": not applied.dry_run}
