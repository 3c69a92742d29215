"""Type hints become schemas, and arguments become values of the hints' types."""

import dataclasses
import enum
import unittest
from typing import Annotated, Any, Literal

from linux_sysadmin_sdk import Arg, Context, Problem
from linux_sysadmin_sdk import schema


class Sort(enum.Enum):
    CPU = "cpu"
    MEMORY = "memory"


@dataclasses.dataclass
class Place:
    path: Annotated[str, "Where"]
    depth: int = 3


def tool(
    cx: Context,
    service: Annotated[str, "Unit name"],
    lines: Annotated[int, Arg("How many", minimum=1, maximum=500)] = 20,
    sort: Sort | None = None,
    kind: Literal["a", "b"] = "a",
    names: list[str] | None = None,
    now: bool = False,
    share: float = 0.5,
    places: list[Place] = (),
    labels: dict[str, int] | None = None,
    port: int | str | None = None,
    rest: Any = None,
) -> dict:
    return {}


PARAMETERS = [parameter for parameter in schema.parameters(tool) if parameter.hint is not Context]


class Schemas(unittest.TestCase):
    def test_a_schema_says_what_the_hints_say_and_nothing_twice(self):
        self.assertEqual(
            schema.of_parameters(PARAMETERS),
            {
                "type": "object",
                "properties": {
                    "service": {"type": "string", "description": "Unit name"},
                    "lines": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 500,
                        "description": "How many",
                        "default": 20,
                    },
                    "sort": {"type": "string", "enum": ["cpu", "memory"]},
                    "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "names": {"type": "array", "items": {"type": "string"}},
                    "now": {"type": "boolean"},
                    "share": {"type": "number", "default": 0.5},
                    "places": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "path": {"type": "string", "description": "Where"},
                                "depth": {"type": "integer", "default": 3},
                            },
                            "required": ["path"],
                            "additionalProperties": False,
                        },
                    },
                    "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "port": {"type": ["integer", "string"]},
                    "rest": {},
                },
                "required": ["service"],
                "additionalProperties": False,
            },
        )

    def test_a_hint_that_no_schema_expresses_is_an_error_with_what_is_expected(self):
        for hint in (bytes, set, complex, dict[int, str], Literal["a", 1]):
            with self.assertRaisesRegex(TypeError, "expected"):
                schema.of(hint)

    def test_every_parameter_has_a_hint_and_a_name(self):
        def bare(name):
            return name

        def many(*names: str):
            return names

        for function in (bare, many):
            with self.assertRaisesRegex(TypeError, "expected"):
                schema.parameters(function)


class Values(unittest.TestCase):
    def test_a_value_has_the_type_of_its_hint(self):
        given = {
            "service": "nginx",
            "sort": "cpu",
            "share": 1,
            "places": [{"path": "/srv"}],
            "labels": {"a": 1},
            "port": "http",
        }
        values = schema.values(PARAMETERS, given)
        self.assertEqual(
            values,
            {
                "service": "nginx",
                "sort": Sort.CPU,
                "share": 1.0,
                "places": [Place("/srv", 3)],
                "labels": {"a": 1},
                "port": "http",
            },
        )

    def test_what_fits_no_hint_is_refused_with_what_was_expected(self):
        for given, said in [
            ({}, "service is missing"),
            ({"service": 1}, "service: expected a value of type string"),
            ({"service": "x", "nmae": 1}, "nmae is no argument"),
            ({"service": "x", "lines": True}, "lines: expected a value of type integer"),
            ({"service": "x", "sort": "size"}, "sort: expected 'cpu' or 'memory'"),
            ({"service": "x", "kind": "c"}, "kind: expected 'a' or 'b'"),
            ({"service": "x", "names": "y"}, "names: expected a list"),
            ({"service": "x", "names": ["y", 2]}, r"names\[1\]: expected a value of type string"),
            ({"service": "x", "places": [{}]}, r"places\[0\].path is missing"),
            ([], "the arguments: expected an object"),
        ]:
            with self.assertRaisesRegex(Problem, said) as raised:
                schema.values(PARAMETERS, given)
            self.assertEqual(raised.exception.code, "INVALID_ARGUMENTS")
            self.assertEqual(raised.exception.category, "validation")


if __name__ == "__main__":
    unittest.main()
