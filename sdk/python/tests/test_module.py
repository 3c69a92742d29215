"""A module as its author writes it, against a fake target."""

import dataclasses
import unittest

from linux_sysadmin_sdk import (
    Analysis,
    Applied,
    Change,
    ChangeFailed,
    Command,
    CommandLine,
    Context,
    Listing,
    Module,
    Noted,
    Problem,
    Step,
    ToolCall,
)
from linux_sysadmin_sdk.testing import FakeTarget

RESTART = CommandLine("systemctl restart -- <unit>")
SHOW = CommandLine("systemctl show -- <unit>")


@dataclasses.dataclass
class Unit:
    name: str
    active: bool


def module() -> Module:
    made = Module("units", version="1.0.0", domain="services", summary="Units")
    made.read(SHOW, "to look")
    made.change(RESTART, "moderate", "to restart it")
    made.read_path("/etc/units", "to know them")

    @made.tool("Units")
    def unit_list(cx: Context) -> list[Unit]:
        return [Unit(line, True) for line in cx.read("/etc/units").split()]

    @made.tool()
    def unit_show(service: str, cx: Context) -> dict:
        """One unit.

        More about it.
        """
        return {"text": cx.run(SHOW(service)).success("systemctl").text}

    @made.tool("How it is")
    def unit_health() -> Analysis:
        return Analysis({"ok": True}, "All is well", "info")

    @made.tool("Restart a unit", risk="moderate", idempotent=True)
    def unit_restart(service: str, cx: Context) -> Noted:
        step = Step.run(RESTART(service).as_root()).uninterruptible()
        applied = cx.apply(Change(f"Restart {service}").step(step).affects(service).risk("high").risk("low"))
        return Noted({"restarted": not applied.dry_run}, ["done"])

    @made.tool("What another tool says")
    def unit_other(cx: Context) -> list:
        return cx.call_tools([ToolCall("disk_usage", {})])

    @made.tool("Wrong")
    def unit_wrong() -> dict:
        return []

    return made


class Modules(unittest.TestCase):
    def test_a_tools_answer_has_the_shape_that_its_hint_says(self):
        made = module()
        shapes = {name: tool.shape for name, tool in made.tools.items()}
        self.assertEqual(shapes["unit_list"], "listing")
        self.assertEqual(shapes["unit_show"], "single")
        self.assertEqual(shapes["unit_health"], "analysis")
        self.assertEqual(made.tools["unit_show"].summary, "One unit")
        target = FakeTarget({"/etc/units": "a b\n"})
        self.assertEqual(
            target.call(made, "unit_list"), [{"name": "a", "active": True}, {"name": "b", "active": True}]
        )
        reply = target.reply(made, "unit_health")
        self.assertEqual((reply.summary, reply.severity), ("All is well", "info"))
        with self.assertRaisesRegex(TypeError, "expected one object"):
            target.call(made, "unit_wrong")

    def test_a_list_is_cut_to_the_limit_and_its_total_stays(self):
        tool = module().tools["unit_list"]
        reply = tool.call({}, Context(FakeTarget({"/etc/units": "a b c"}), limit=2))
        self.assertEqual((reply.total, reply.data.count("name")), (3, 2))
        reply = tool.call({}, Context(FakeTarget({"/etc/units": "a b c"}), limit=2, filter="c"))
        self.assertEqual((reply.total, reply.data.count("name")), (None, 3))

    def test_a_problem_of_the_host_reaches_the_caller_unless_the_tool_takes_it(self):
        made = module()
        for target, code in [
            (FakeTarget(), "NOT_RECORDED"),
            (FakeTarget().answer(SHOW("x").argv, exit_code=4, stderr="no unit"), "COMMAND_FAILED"),
            (FakeTarget().failure(SHOW("x").argv, Problem("COMMAND_TIMEOUT", "too long", "timeout")), "COMMAND_TIMEOUT"),
        ]:
            with self.assertRaises(Problem) as raised:
                target.call(made, "unit_show", service="x")
            self.assertEqual(raised.exception.code, code)

    def test_a_plan_is_handed_over_as_a_whole(self):
        target = FakeTarget().outcome(Applied(dry_run=True))
        reply = target.reply(module(), "unit_restart", service="nginx")
        self.assertEqual((reply.data, reply.notes), ('{"restarted": false}', ["done"]))
        [change] = target.plans
        self.assertEqual((change.summary, change.affected_services), ("Restart nginx", ["nginx"]))
        self.assertEqual(change.raised_risk, "high")
        [step] = change.steps
        self.assertEqual(step.command, RESTART("nginx").as_root())
        self.assertFalse(step.is_interruptible)
        failed = ChangeFailed(Problem("COMMAND_FAILED", "no"), 0, [])
        with self.assertRaises(ChangeFailed):
            FakeTarget().outcome(failed).call(module(), "unit_restart", service="nginx")

    def test_pipelines_streams_and_parts_of_files_are_answered_from_recordings(self):
        target = FakeTarget({"/a": "0123456789"}).answer(["a"], "one\n").answer(["b"], "two\n")
        cx = Context(target)
        said = [output.text for output in cx.run_pipeline([Command("a"), Command("b")])]
        self.assertEqual(said, ["", "two\n"])
        self.assertEqual(b"".join(cx.open(Command("a"))), b"one\n")
        self.assertEqual((cx.read_part("/a", 2, 3), cx.read_part("/a", -3, 9)), (b"234", b"789"))
        for look in (lambda: cx.open(Command("c")), lambda: cx.run_pipeline([Command("a"), Command("c")])):
            with self.assertRaisesRegex(Problem, "NOT_RECORDED"):
                look()

    def test_a_tool_of_another_module_is_answered_from_a_recording(self):
        target = FakeTarget().tool("disk_usage", {}, {"data": []})
        self.assertEqual(target.call(module(), "unit_other"), [{"data": []}])

    def test_a_transcript_is_read_as_it_was_recorded(self):
        target = FakeTarget().transcript(
            "A comment.\n$ systemctl show -- 'a b' ''\n[exit 0]\none\n\ntwo\n\n"
            "$ x\n[exit 3]\n[stderr]\nno\n$ y\n[exit 1]\nout\n[stderr]\nerr\n"
        )
        outputs = target.run_all([Command("systemctl", ("show", "--", "a b", "")), Command("x"), Command("y")])
        said = [(output.exit_code, output.text, output.error_text) for output in outputs]
        self.assertEqual(said, [(0, "one\n\ntwo\n", ""), (3, "", "no"), (1, "out\n", "err")])
        with self.assertRaisesRegex(ValueError, "expected a line such as"):
            FakeTarget().transcript("$ x\nno exit\n")

    def test_wrong_words_are_errors_when_the_module_is_made(self):
        made = module()
        wrong = [
            lambda: Module("Units", version="1", domain="x", summary=""),
            lambda: made.read(SHOW, "to look", rights="sudo"),
            lambda: made.change(RESTART, "dangerous", "to restart it"),
            lambda: made.tool(risk="none")(lambda: {}),
            lambda: made.tool(name="unit_list")(lambda: {}),
            lambda: made.tool(name="Unit")(lambda: {}),
            lambda: Change("x").lock("dpkg"),
            lambda: Change("x").risk("none"),
            lambda: Analysis({}, "", "bad"),
            lambda: Problem("X", "y", "z"),
        ]
        for make in wrong:
            with self.assertRaisesRegex(ValueError, "expected"):
                make()

    def test_a_listing_may_have_notes_and_a_total_of_its_own(self):
        made = Module("x", version="1.0.0", domain="x", summary="")

        @made.tool("Some")
        def some(cx: Context) -> Listing:
            return Listing([1, 2, 3], total=9, notes=["more"])

        reply = made.tools["some"].call({}, Context(FakeTarget(), limit=1))
        self.assertEqual((reply.data, reply.total, reply.notes), ("[1, 2, 3]", 9, ["more"]))


if __name__ == "__main__":
    unittest.main()
