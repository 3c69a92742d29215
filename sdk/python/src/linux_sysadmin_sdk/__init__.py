"""The library for authors of modules in Python. An author writes tools and grants; this package takes care of bindings,
schemas and JSON.

A tool is a function. Its type hints are the arguments that a caller gives:

    from linux_sysadmin_sdk import CommandLine, Context, Module

    UPTIME = CommandLine("uptime --since")

    module = Module("uptime", version="0.1.0", domain="performance", summary="How long the machine is up")
    module.read(UPTIME, "to see when the machine was started")

    @module.tool("Since when the machine is up", duration="instant")
    def uptime_since(cx: Context) -> dict:
        return {"since": cx.run(UPTIME()).success("uptime").text.strip()}

`linux-sysadmin-build FILE` makes the component.
"""

from .change import Applied, Change, ChangeFailed, Signal, Step
from .command import Command, CommandLine, Output
from .context import Context, Facts, Metadata, ToolCall
from .module import Module
from .problem import Problem
from .reply import Analysis, Listing, Noted
from .schema import Arg

__all__ = [
    "Analysis",
    "Applied",
    "Arg",
    "Change",
    "ChangeFailed",
    "Command",
    "CommandLine",
    "Context",
    "Facts",
    "Listing",
    "Metadata",
    "Module",
    "Noted",
    "Output",
    "Problem",
    "Signal",
    "Step",
    "ToolCall",
]
