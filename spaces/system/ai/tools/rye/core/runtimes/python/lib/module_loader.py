"""Loads a module by its path, as a member of a package, so that it can import its neighbours."""

__version__ = "1.0.0"
__tool_type__ = "library"
__category__ = "rye/core/runtimes/python/lib"
__tool_description__ = "Loads Python modules by their paths"

import importlib
import os
import sys
import types
from pathlib import Path


def load_module(relative_path, *, anchor=None):
    """Returns the module of a file: an absolute path, or one relative to the folder anchor. The extension may be left out."""
    path = Path(relative_path)
    if not path.is_absolute():
        if anchor is None:
            raise ValueError("a relative path needs an anchor")
        path = Path(anchor) / path
    if path.suffix != ".py":
        path = path.with_name(path.name + ".py")
    path = Path(os.path.abspath(path))
    if not path.is_file():
        raise FileNotFoundError(f"no module at {path}")
    top = Path(os.path.abspath(anchor)) if anchor is not None else path.parent
    if top not in path.parents:
        top = path.parent
    name = _package(top)
    for folder in path.relative_to(top).parent.parts:
        name = f"{name}.{folder}"
        importlib.import_module(name)
    return importlib.import_module(f"{name}.{path.stem}")


def _package(folder):
    """The name of the package that stands for a folder. Its own __init__.py is run when it has one that can be imported."""
    name = "rye_anchor_" + "".join(c if c.isalnum() else "_" for c in str(folder))
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        module.__package__ = name
        sys.modules[name] = module
    return name
