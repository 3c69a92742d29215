"""The component's side, with the bindings that componentize-py makes of the contract, and a host that this test plays."""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import linux_sysadmin_sdk
from linux_sysadmin_sdk import Change, CommandLine, Context, Module, Signal, Step

LOOK = CommandLine("uname --kernel-name")
RESTART = CommandLine("systemctl restart -- <unit>")

module = Module("played", version="0.1.0", domain="played", summary="Played", license="Apache-2.0")
module.serves("package_manager", "pacman", "apk")
module.read(LOOK, "to look")
module.change(RESTART, "high", "to restart it")
module.read_path("/etc/hostname", "its name", rights="user:www-data")
module.calls_tool("disk_usage")
module.any_program("to run them")
module.signals("to end them", rights="caller")


@module.tool("Look", loses_nothing=True, argument_aliases={"old": "text"})
def look(cx: Context, text: str = "x") -> dict:
    return {"text": text, "said": cx.run(LOOK()).success("uname").text, "user": cx.facts.extra["user"]}


@module.tool("Change", risk="high")
def alter(cx: Context) -> dict:
    change = Change("Do it").restarts(60).lock("systemd").lock("file:/x").guard(30).dry_run(LOOK()).risk("critical")
    for step in (
        Step.run(RESTART("x").as_root()).undo(RESTART("x")).uninterruptible().success(0, 1),
        Step.write("/a", "b", mode=0o600).sensitive().validate(LOOK()),
        Step.remove("/a"),
        Step.make_directory("/d", 0o755),
        Step.remove_directory("/d"),
        Step.move("/a", "/b"),
        Step.attributes("/a", owner="root"),
        Step.run_pipeline(LOOK(), LOOK(), seconds=9).success(0),
        Step.send(Signal(15, ((42, 1000),), wait_seconds=5, kill=True)),
    ):
        change.step(step)
    return {"dry_run": cx.apply(change).dry_run}


@module.tool("Fail")
def fail(cx: Context) -> dict:
    print("before it fails")
    return {}["missing"]


@module.tool("Streams")
def streams(cx: Context) -> dict:
    pieces = cx.open(LOOK())
    first = next(pieces).decode()
    pieces.close()
    return {"first": first, "last": cx.run_pipeline([LOOK(), LOOK()], 5)[-1].text, "part": cx.read_part("/a", -2, 2).decode()}


@module.tool("Files")
def files(cx: Context) -> dict:
    return {"size": cx.stat("/a").size, "none": cx.stat("/b"), "text": cx.read("/a"), "names": cx.list_dir("/")}


def setUpModule():
    if importlib.util.find_spec("componentize_py") is None:
        raise unittest.SkipTest("componentize-py isn't installed")
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    wit = pathlib.Path(linux_sysadmin_sdk.__file__).parent / "wit"
    make = "import componentize_py; componentize_py.script()"
    arguments = ["--wit-path", str(wit), "--world", "tool-module", "bindings", folder.name]
    subprocess.run([sys.executable, "-c", make, *arguments], check=True)
    sys.path.insert(0, folder.name)
    unittest.addModuleCleanup(sys.path.remove, folder.name)


class Components(unittest.TestCase):
    def setUp(self):
        from componentize_py_types import Err, Ok
        from linux_sysadmin_sdk import component
        from wit_world.exports import tools
        from wit_world.imports import confirm, distro_context, exec_command, target_files, types

        self.component, self.types, self.confirm = component, types, confirm
        self.Ok, self.Err = Ok, Err
        self.context = tools.Context(None, None)
        self.exec_command = exec_command
        output = types.Output(0, b"Linux\n", b"", 6, 1, False, 1)
        exec_command.run_all = lambda commands: [Ok(output) for _ in commands]
        self.output = output
        texts = ["x"] * 15
        distro_context.current = lambda: distro_context.Distro(*texts, True, [("user", "ann")])
        target_files.read_all = lambda requests, rights, place: [Ok(b"hi") for _ in requests]
        target_files.list_all = lambda paths, rights, place: [Ok(["a"]) for _ in paths]
        metadata = target_files.Metadata(2, 0o644, "root", "root", 0, False, False)
        target_files.stat_all = lambda paths, rights, place: [
            Ok(metadata if path == "/a" else None) for path in paths
        ]
        # The component takes over the streams, which are given back after the test.
        streams = contextlib.ExitStack()
        self.addCleanup(streams.close)
        streams.enter_context(contextlib.redirect_stdout(io.StringIO()))
        streams.enter_context(contextlib.redirect_stderr(io.StringIO()))
        component.serve(module)

    def call(self, tool, arguments="{}"):
        return self.component.Tools().call(tool, arguments, self.context)

    def problem(self, tool, arguments="{}"):
        with self.assertRaises(self.Err) as raised:
            self.call(tool, arguments)
        return raised.exception.value

    def test_the_description_says_what_the_module_says(self):
        said = self.component.Describe().describe()
        self.assertEqual((said.name, said.version, said.license), ("played", "0.1.0", "Apache-2.0"))
        self.assertEqual([condition.any_of for condition in said.serves], [["pacman", "apk"]])
        tools = {tool.name: tool for tool in said.tools}
        self.assertEqual(tools["look"].aliases.arguments[0].alias, "old")
        self.assertEqual(tools["alter"].risk, self.types.Risk.HIGH)
        self.assertEqual([hint.tool for hint in said.hints], ["look"])
        asked = said.capabilities
        self.assertEqual([grant.pattern for grant in asked.commands], [LOOK.pattern, RESTART.pattern])
        self.assertEqual(asked.commands[1].privilege, self.types.Privilege_Root())
        self.assertEqual(asked.paths[0].privilege, self.types.Privilege_User("www-data"))
        self.assertEqual(asked.tools, ["disk_usage"])
        self.assertEqual([grant.reason for grant in asked.any_program], ["to run them"])
        self.assertEqual(asked.signals[0].privilege, self.types.Privilege_Caller())

    def test_a_call_reaches_the_tool_and_the_tool_the_host(self):
        self.assertEqual(self.call("look", '{"text": "ä"}').data, '{"text": "ä", "said": "Linux\\n", "user": "ann"}')
        self.assertEqual(self.call("files").data, '{"size": 2, "none": null, "text": "hi", "names": ["a"]}')

    def test_a_stream_ends_its_command_when_it_is_closed(self):
        ended = []

        class Stream:
            def read(self, length):
                return b"Linux\n"

            def __enter__(self):
                return self

            def __exit__(self, *_):
                ended.append(True)

        self.exec_command.open = lambda command: Stream()
        self.exec_command.run_pipeline = lambda pipeline: [self.output for _ in pipeline.commands]
        self.assertEqual(self.call("streams").data, '{"first": "Linux\\n", "last": "Linux\\n", "part": "hi"}')
        self.assertEqual(ended, [True])

        def denied(_):
            raise self.Err(self.types.Problem("CAPABILITY_DENIED", self.types.Category.DENIED, "no", []))

        self.exec_command.open = denied
        self.assertEqual(self.problem("streams").code, "CAPABILITY_DENIED")

    def test_a_plan_reaches_the_host_as_a_whole(self):
        plans = []

        def apply(change):
            plans.append(change)
            return self.confirm.Applied([], True)

        self.confirm.apply = apply
        self.assertEqual(self.call("alter").data, '{"dry_run": true}')
        [plan] = plans
        kinds = [type(step.action).__name__.removeprefix("Action_") for step in plan.steps]
        expected = ["Run", "WriteFile", "RemoveFile", "MakeDirectory", "RemoveDirectory", "MovePath", "SetAttributes"]
        self.assertEqual(kinds, [*expected, "RunPipeline", "SignalProcesses"])
        pipeline, signal = plan.steps[7].action.value, plan.steps[8].action.value
        self.assertEqual((len(pipeline.pipeline.commands), pipeline.pipeline.seconds, pipeline.any_exit), (2, 9, False))
        self.assertEqual((signal.signal, signal.processes[0].start_ticks, signal.kill), (15, 1000, True))
        self.assertEqual(plan.power, self.confirm.PowerChange_Restart(60))
        run, write = plan.steps[0].action.value, plan.steps[1].action.value
        self.assertEqual((run.success, run.interruptible, len(plan.steps[0].undo)), ([0, 1], False, 1))
        self.assertEqual((write.contents, write.mode, write.sensitive), (b"b", 0o600, True))
        self.assertEqual(plan.locks, [self.confirm.Lock_Systemd(), self.confirm.Lock_File("/x")])
        self.assertEqual((plan.guard.seconds, plan.risk), (30, self.types.Risk.CRITICAL))

    def test_problems_are_those_of_the_host_of_the_arguments_and_of_a_failed_plan(self):
        denied = self.types.Problem("CAPABILITY_DENIED", self.types.Category.DENIED, "no", ["ask"])
        self.exec_command.run_all = lambda commands: [self.Err(denied) for _ in commands]
        self.assertEqual(self.problem("look"), denied)
        self.assertEqual(self.problem("look", '{"txet": "x"}').code, "INVALID_ARGUMENTS")
        self.assertEqual(self.problem("none").code, "UNKNOWN_TOOL")

        def apply(change):
            raise self.Err(self.confirm.Failure(denied, 0, [], [], [], False))

        self.confirm.apply = apply
        self.assertEqual(self.problem("alter"), denied)

    def test_a_defect_is_told_with_its_place_and_with_what_was_printed(self):
        problem = self.problem("fail")
        self.assertEqual((problem.code, problem.category), ("MODULE_FAILED", self.types.Category.INTERNAL))
        self.assertRegex(problem.message, r"in test_component\.py, line \d+: KeyError: 'missing'; it had printed: before it fails")


if __name__ == "__main__":
    unittest.main()
