"""`linux-sysadmin-build FILE`: makes a component from a module in Python, by componentize-py.

The component gets two things that componentize-py doesn't add by itself: a first file that hands the module over to this
package, and stubs in place of WASI, because Python's own imports of it include sockets, and the host refuses a module that
imports those."""

from __future__ import annotations

import argparse
import ast
import keyword
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

#: The world of the contract that the component is made for.
WORLD = "tool-module"
#: The name of the component's first file. No author's file has it.
_ENTRY = "linux_sysadmin_entry"
_PACKAGE = pathlib.Path(__file__).parent
#: Names that componentize-py itself gives to files of the component.
_TAKEN = {"wit_world", "componentize_py_types", "componentize_py_runtime", "linux_sysadmin_sdk", _ENTRY}


def main(arguments: list[str] | None = None) -> int:
    """The command. It ends with 1 where the component couldn't be made, and says why."""
    parser = argparse.ArgumentParser(
        prog="linux-sysadmin-build", description="Make a component from a module in Python"
    )
    parser.add_argument("file", type=pathlib.Path, help="the module: a .py file that has a variable `module`")
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, help="the component [default: the module's name with .wasm, here]"
    )
    options = parser.parse_args(arguments)
    output = options.output or pathlib.Path(f"{options.file.stem}.wasm")
    try:
        build(options.file, output)
    except BuildError as error:
        print(f"linux-sysadmin-build: {error}", file=sys.stderr)
        return 1
    print(f"{output} ({output.stat().st_size} bytes)")
    return 0


class BuildError(Exception):
    """The reason why a component couldn't be made."""


def build(file: pathlib.Path, output: pathlib.Path) -> None:
    """Makes the component of this file."""
    name = file.stem
    if file.suffix != ".py" or not file.is_file():
        raise BuildError(f"expected a file whose name ends in .py, found {file}")
    if not name.isidentifier() or keyword.iskeyword(name) or name in _TAKEN:
        raise BuildError(f"expected a file name that Python can import, and not one of its own; found {file.name}")
    if "module" not in _names(file):
        raise BuildError(f"expected a variable `module` in {file}, which is the Module")
    with tempfile.TemporaryDirectory(prefix="linux-sysadmin-") as folder:
        work = pathlib.Path(folder)
        # The sources are copied, since Python leaves its bytecode beside the files that it reads.
        sources = work / "app"
        _copy_sources(file.parent, sources)
        shutil.copytree(_PACKAGE, sources / _PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__", "wit"))
        (sources / f"{_ENTRY}.py").write_text(_entry(name), encoding="utf-8")
        _componentize(sources, output.resolve())


def _names(file: pathlib.Path) -> set[str]:
    """The names that the file itself gives to something, outside of functions and classes."""
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except SyntaxError as error:
        raise BuildError(f"{file}, line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise BuildError(f"{file}: {error}") from None
    names = set()
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def _entry(name: str) -> str:
    return (
        "from linux_sysadmin_sdk.component import Describe, Tools, serve\n"
        f"from {name} import module\n\n"
        "serve(module)\n"
    )


def _copy_sources(folder: pathlib.Path, to: pathlib.Path) -> None:
    """Copies the folder's modules and packages: `.py` files, and folders that have an `__init__.py`."""
    to.mkdir()
    for path in sorted(folder.resolve().iterdir()):
        if path.is_file() and path.suffix == ".py":
            shutil.copyfile(path, to / path.name)
        elif path.is_dir() and (path / "__init__.py").is_file() and path.name not in _TAKEN:
            shutil.copytree(path, to / path.name, ignore=shutil.ignore_patterns("__pycache__"))


def _componentize(sources: pathlib.Path, output: pathlib.Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import componentize_py; componentize_py.script()",
        *("--wit-path", str(_PACKAGE / "wit")),
        *("--world", WORLD),
        "componentize",
        "--stub-wasi",
        *("--python-path", str(sources)),
        *("--output", str(output)),
        _ENTRY,
    ]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_environment())
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip()) or f"exit code {result.returncode}"
        raise BuildError(f"componentize-py couldn't make the component:\n{said}")


def _environment() -> dict[str, str]:
    """The environment, with the virtual environment of this Python, where componentize-py looks for packages."""
    environment = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        environment["VIRTUAL_ENV"] = sys.prefix
    return environment


if __name__ == "__main__":
    sys.exit(main())
