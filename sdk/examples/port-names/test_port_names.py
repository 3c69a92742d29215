"""The tools against recordings: `python3 -m unittest`."""

import unittest

from linux_sysadmin_sdk import Problem
from linux_sysadmin_sdk.testing import FakeTarget

from port_names import ALL, NAMED, NOT_FOUND, RANGE, module


class PortNames(unittest.TestCase):
    def test_a_port_has_its_name_and_aliases(self):
        target = FakeTarget().answer(NAMED(80, "tcp").argv, "http                  80/tcp www\n")
        self.assertEqual(
            target.call(module, "port_name", port=80),
            {"port": 80, "protocol": "tcp", "name": "http", "aliases": ["www"]},
        )

    def test_a_port_without_a_name_is_no_failure_of_the_module(self):
        target = FakeTarget().answer(NAMED(4, "udp").argv, exit_code=NOT_FOUND)
        with self.assertRaises(Problem) as raised:
            target.call(module, "port_name", port=4, protocol="udp")
        self.assertEqual((raised.exception.code, raised.exception.category), ("PORT_NOT_NAMED", "not-found"))

    def test_a_form_that_is_not_known_is_said(self):
        for target in (
            FakeTarget().answer(ALL().argv, "what?\n"),
            FakeTarget({RANGE: "many\n"}),
        ):
            tool = "port_range" if target.files else "port_list"
            with self.assertRaisesRegex(Problem, "not in the expected form"):
                target.call(module, tool)

    def test_ports_are_listed_in_their_order(self):
        target = FakeTarget().answer(ALL().argv, "ssh 22/tcp\ndomain 53/udp\n")
        self.assertEqual([port["port"] for port in target.call(module, "port_list")], [22, 53])

    def test_few_ports_are_a_warning(self):
        for text, count, severity in [("32768\t60999\n", 28232, "info"), ("50000 50999", 1000, "warning")]:
            reply = FakeTarget({RANGE: text}).reply(module, "port_range")
            self.assertEqual(reply.severity, severity)
            self.assertIn(str(count), reply.summary)


if __name__ == "__main__":
    unittest.main()
