"""Python callbacks: marked functions of modules that come from the rules' folder and from nowhere else."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeVar

from estream.suggest import did_you_mean

Role = Literal["action", "condition"]
Callback = Callable[..., Any]
Marked = TypeVar("Marked", bound=Callback)

_MARK: Final = "__estream_role__"


def action(function: Marked) -> Marked:
    """Mark a function as an action: it takes a `Detection`; what it returns is not used. It may be async."""
    setattr(function, _MARK, "action")
    return function


def condition(function: Marked) -> Marked:
    """Mark a function as a condition: it takes a `Detection` and returns whether the rule fires. It may be async."""
    setattr(function, _MARK, "condition")
    return function


class CallbackError(Exception):
    """What is wrong with a callback, in one sentence."""


def find(folder: Path, name: str, role: Role) -> Callback:
    """The callback `module:function` of the folder; CallbackError says why there is none."""
    module_name, _, function_name = name.partition(":")
    module = _module(folder, module_name)
    found = getattr(module, function_name, None)
    if found is None:
        there = [key for key, value in vars(module).items() if hasattr(value, _MARK)]
        hint = did_you_mean(function_name, there)
        raise CallbackError(f"module '{module_name}' has no '{function_name}'" + (f"; {hint}" if hint else ""))
    if getattr(found, _MARK, None) != role:
        other = getattr(found, _MARK, None)
        what = f"is marked as {other}" if other else "is not marked"
        raise CallbackError(f"'{name}' {what}; write @estream.{role} above it")
    require_signature(found, name)
    return found  # type: ignore[no-any-return]


def require_signature(function: Callback, name: str) -> None:
    """Refuse what cannot be called with a detection alone."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CallbackError(f"'{name}' is a generator, which does nothing when it is called; use no 'yield'")
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        shown = f"{name.partition(':')[2] or name}{inspect.signature(function)}"
        raise CallbackError(f"'{shown}' cannot be called with a detection alone; give it one parameter") from None
    except ValueError:
        raise CallbackError(f"'{name}' tells no signature; give a Python function") from None


def _module(folder: Path, name: str) -> Any:
    folder = folder.resolve()
    package, _, inner = name.partition(".")
    if package != folder.name or not inner:
        raise CallbackError(f"'{name}' is not in the folder '{folder.name}'; write {folder.name}.{inner or name}")
    path = folder.joinpath(*inner.split("."))
    files = [path.with_suffix(".py"), path / "__init__.py"]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        raise CallbackError(f"there is no file {folder.name}/{inner.replace('.', '/')}.py")
    if not file.resolve().is_relative_to(folder):
        raise CallbackError(f"'{name}' is a link that leaves the folder '{folder.name}'")
    _provide_package(folder)
    try:
        # What a module says while it is imported must not be taken for the program's answer.
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        where = _line_of(error, folder)
        raise CallbackError(f"'{name}' cannot be imported: {type(error).__name__}: {error}{where}") from error


def _provide_package(folder: Path) -> None:
    """Make the folder the package of its name, whatever stands on Python's path."""
    name = folder.name
    present = sys.modules.get(name)
    if present is not None and list(getattr(present, "__path__", [])) == [str(folder)]:
        return
    for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[loaded]
    file = folder / "__init__.py"
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    module.__file__ = str(file)
    sys.modules[name] = module
    try:
        if file.is_file():
            exec(compile(file.read_text("utf-8"), str(file), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        where = _line_of(error, folder)
        raise CallbackError(f"'{name}' cannot be imported: {type(error).__name__}: {error}{where}") from error


def _line_of(error: BaseException, folder: Path) -> str:
    """The deepest line of the folder's own code that the error went through."""
    if isinstance(error, SyntaxError):
        return ""  # it tells its line itself
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(folder):
            place = f" ({file.relative_to(folder)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
