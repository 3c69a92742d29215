"""A command line is written once, for the grant and for the command."""

import unittest

from linux_sysadmin_sdk import Command, CommandLine, Output, Problem


class CommandLines(unittest.TestCase):
    def test_each_hole_takes_the_next_value_and_the_last_one_the_rest(self):
        for pattern, values, argv in [
            ("date '+%s'", [], ["date", "+%s"]),
            ("printf '%s  %s' x", [], ["printf", "%s  %s", "x"]),
            ("systemctl show -- <unit>...", ["a", "b"], ["systemctl", "show", "--", "a", "b"]),
            ("systemctl show -- <unit>...", [["a", "b"]], ["systemctl", "show", "--", "a", "b"]),
            ("x --a='<b> ...'c  ''", [], ["x", "--a=<b> ...c", ""]),
            ("chown <user>:<group> -- <path>", ["u", "g", "/x"], ["chown", "u:g", "--", "/x"]),
            ("ls --depth=<int> <path:/mnt/**>", [2, "<a>"], ["ls", "--depth=2", "<a>"]),
        ]:
            self.assertEqual(CommandLine(pattern)(*values).argv, argv, pattern)

    def test_variables_stand_in_front_of_the_program_only(self):
        command = CommandLine("TZ=UTC A_1=x env B=y")()
        self.assertEqual(command.env, (("TZ", "UTC"), ("A_1", "x")))
        self.assertEqual(command.argv, ["env", "B=y"])

    def test_too_few_or_too_many_values_are_an_error(self):
        for pattern, values in [("a <unit>", []), ("a <unit>", ["x", "y"]), ("a", ["x"]), ("a -- <unit>...", [])]:
            with self.assertRaisesRegex(ValueError, "expected"):
                CommandLine(pattern)(*values)
        with self.assertRaisesRegex(ValueError, "expected a program"):
            CommandLine("A=b")

    def test_a_command_says_whose_rights_it_takes_in_the_contracts_words(self):
        self.assertEqual(Command("x").as_root().rights, "root")
        self.assertEqual(Command("x").replace(rights="user:www-data").rights, "user:www-data")
        for wrong in ({"rights": "sudo"}, {"rights": "user:"}, {"duration": "ever"}, {"keep": "middle"}):
            with self.assertRaisesRegex(ValueError, "expected"):
                Command("x", **wrong)


class Outputs(unittest.TestCase):
    def test_a_failure_is_a_problem_where_the_tool_asks_for_success(self):
        self.assertEqual(Output(0, b"a\xff").success("x").text, "a\ufffd")
        with self.assertRaisesRegex(Problem, "x ended with exit code 3: no such thing"):
            Output(3, b"", b" no such thing\n").success("x")
        with self.assertRaisesRegex(Problem, "more than is kept"):
            Output(0, b"a", truncated=True, stdout_bytes=9).success("x")


if __name__ == "__main__":
    unittest.main()
