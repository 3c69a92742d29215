"""One call of a tool by the official client, whose user gives the same answer to every question, or can't be asked.

It takes a JSON object on stdin: how to start the server (command, args, env), how to speak to it (mode), the answer (action,
which is null where the user can't be asked), and the call (tool, arguments). It prints the questions and the result."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def main() -> None:
    told = json.load(sys.stdin)
    action = told["action"]
    questions = []

    async def ask(_context, params) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    server = StdioServerParameters(command=told["command"], args=told["args"], env=told["env"])
    async with Client(server, mode=told["mode"], elicitation_callback=ask if action else None) as client:
        result = await client.call_tool(told["tool"], told["arguments"])
        said = {
            "protocol": client.protocol_version,
            "questions": questions,
            "envelope": result.structured_content,
        }
    json.dump(said, sys.stdout)


asyncio.run(main())
