"""The tools against a fake target, which answers with what was recorded on a real machine."""

import unittest

from linux_sysadmin_sdk import Problem, Step
from linux_sysadmin_sdk.testing import FakeTarget

from module import RESTART, module


def target() -> FakeTarget:
    """A Debian machine."""
    recorded = FakeTarget({"/proc/uptime": "86422.21 340581.07\n"})
    return recorded.answer(["uname", "--kernel-release"], "6.12.48+deb13-amd64\n")


class Tools(unittest.TestCase):
    def test_the_kernel_is_told_with_its_time(self) -> None:
        told = target().call(module, "{{identifier}}_kernel")
        self.assertEqual(told, {"release": "6.12.48+deb13-amd64", "up_seconds": 86422})

    def test_a_file_in_another_form_is_an_error_and_no_number(self) -> None:
        odd = target().file("/proc/uptime", "soon\n")
        with self.assertRaises(Problem) as raised:
            odd.call(module, "{{identifier}}_kernel")
        self.assertEqual(raised.exception.code, "UNEXPECTED_OUTPUT")

    def test_a_unit_is_restarted_by_one_plan(self) -> None:
        machine = target()
        told = machine.call(module, "{{identifier}}_restart", service="nginx")
        self.assertEqual(told, {"restarted": True})
        [plan] = machine.plans
        self.assertEqual(plan.steps, [Step.run(RESTART("nginx").as_root()).uninterruptible()])
        self.assertEqual(plan.affected_services, ["nginx"])


if __name__ == "__main__":
    unittest.main()
