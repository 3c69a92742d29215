"""A module in Python, for the tests: a greeting, calls of the host's imports, and attempts to get past the host.

`cargo xtask build` makes it with componentize-py, whose version sdk/python/pyproject.toml pins:

    componentize-py -d wit -w tool-module componentize --stub-wasi -p tests/guests-python/hello app -o python.wasm

`--stub-wasi` leaves no WASI import, for Python's own include sockets, and a module that imports those is refused.
The environment is empty, and whatever else would have called WASI traps: files, clocks, `os.urandom`, `print`.
"""

import json
import os
import socket

from componentize_py_types import Err, Ok
from wit_world import exports
from wit_world.exports import describe, tools
from wit_world.imports import exec_command, target_files
from wit_world.imports.types import (
    Command,
    DurationCategory,
    Keep,
    Place,
    Privilege_Caller,
    Risk,
)


def greet(arguments):
    return {"text": f"Hello, {arguments['name']}!"}


def run(arguments):
    program, *args = arguments["argv"]
    command = Command(
        program=program,
        args=args,
        env=[],
        stdin=None,
        privilege=Privilege_Caller(),
        place=Place.TARGET,
        duration=DurationCategory.INSTANT,
        keep=Keep.HEAD,
    )
    # A refusal is raised as a problem, and the tool passes it on.
    output = exec_command.run(command)
    return {"text": output.stdout.decode(), "exit_code": output.exit_code}


def read(arguments):
    request = target_files.Request(path=arguments["path"], offset=0, max_bytes=1 << 20)
    match target_files.read_all([request], Privilege_Caller(), Place.TARGET):
        case [Ok(contents)]:
            return {"text": contents.decode()}
        case [Err(problem)]:
            raise Err(problem)


def escape(arguments):
    """What Python itself offers without the host."""
    match arguments["by"]:
        case "environment":
            return {"text": json.dumps(dict(os.environ))}
        case "file":
            with open("/etc/passwd", encoding="utf-8") as file:
                return {"text": file.read()}
        case "directory":
            return {"text": json.dumps(os.listdir("/"))}
        case "socket":
            socket.create_connection(("127.0.0.1", 22))
            return {"text": "connected"}
        case "process":
            return {"text": str(os.system("id"))}


TOOLS = {
    "python_greet": (greet, {"name": {"type": "string"}}),
    "python_run": (run, {"argv": {"type": "array", "items": {"type": "string"}, "minItems": 1}}),
    "python_read": (read, {"path": {"type": "string"}}),
    "python_escape": (escape, {"by": {"type": "string"}}),
}


def tool(name, properties):
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return describe.Tool(
        name=name,
        summary="",
        input_schema=json.dumps(schema),
        risk=Risk.READ_ONLY,
        duration=DurationCategory.INSTANT,
        shape=describe.Shape.SINGLE,
        place=Place.TARGET,
        aliases=describe.Aliases(tool=[], arguments=[], values=[]),
    )


class Describe(exports.Describe):
    def describe(self):
        return describe.Description(
            name="python",
            version="0.1.0",
            summary="For the tests",
            homepage=None,
            license=None,
            domain="python",
            serves=[],
            tools=[tool(name, properties) for name, (_, properties) in TOOLS.items()],
            capabilities=describe.Capabilities(
                commands=[
                    describe.CommandGrant(
                        pattern="uname --kernel-name",
                        effect=describe.Effect.READ,
                        privilege=Privilege_Caller(),
                        place=Place.TARGET,
                        risk=Risk.READ_ONLY,
                        reason="to be run",
                    )
                ],
                paths=[
                    describe.PathGrant(
                        glob="/etc/hostname",
                        write=False,
                        privilege=Privilege_Caller(),
                        place=Place.TARGET,
                        reason="to be read",
                    )
                ],
                tools=[],
                any_program=[],
                signals=[],
                own_programs=[],
            ),
            hints=[],
        )


class Tools(exports.Tools):
    def call(self, tool, arguments, context):
        function, _ = TOOLS[tool]
        data = json.dumps(function(json.loads(arguments)))
        return tools.Reply(data=data, total=None, summary=None, severity=None, notes=[])
