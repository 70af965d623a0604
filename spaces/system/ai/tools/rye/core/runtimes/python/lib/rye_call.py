"""What a function of a tool is called with, by the names of its parameters."""

__version__ = "1.0.0"
__tool_type__ = "library"
__category__ = "rye/core/runtimes/python/lib"
__tool_description__ = "Calls functions of Python tools with what they take"

import json
import sys


class Printed:
    """Keeps what a function prints: the result of one that returns nothing."""

    MOST = 1 << 20  # characters; more is a log

    def __enter__(self):
        self.stream, self.parts, self.size = sys.stdout, [], 0
        self.stream.write = self.write  # print looks it up each time
        return self

    def __exit__(self, *_):
        del self.stream.write

    def write(self, text):
        self.size += len(text)
        if self.size <= self.MOST:
            self.parts.append(text)
        return type(self.stream).write(self.stream, text)

    def value(self):
        text = "".join(self.parts).strip()
        if not text or self.size > self.MOST:
            return {}
        try:
            return json.loads(text)
        except ValueError:
            return text


class Takes:
    """What a function takes."""

    def __init__(self, function):
        code, bound = function.__code__, int(hasattr(function, "__self__"))
        end = code.co_argcount
        self.positional = code.co_varnames[bound:end]
        self.keywords = code.co_varnames[end : end + code.co_kwonlyargcount]
        self.unnamed = max(0, code.co_posonlyargcount - bound)  # of those by position
        values = function.__defaults__ or ()
        self.defaults = set(code.co_varnames[end - len(values) : end]) | set(function.__kwdefaults__ or ())
        self.all_positional, self.all_keywords = bool(code.co_flags & 4), bool(code.co_flags & 8)
        self.names = self.positional + self.keywords


def takes(function):
    """What a function takes; None where that is not known."""
    for _ in range(20):  # decorators that pass everything on
        if not hasattr(function, "__code__"):
            function = getattr(function, "__call__", None)
            if not hasattr(function, "__code__"):
                return None
        what = Takes(function)
        inner = getattr(function, "__wrapped__", None)
        if what.names or not what.all_positional or not what.all_keywords or inner is None:
            return what
        function = inner
    return None


# Names, and parts of names, by which authors call the two that every function may take. Whoever
# validates a tool reads them here, too.
WHOLE = ["p", "data", "payload", "options", "opts", "request", "event", "body", "call"]
WHOLE_PARTS = ["param", "arg", "input", "config"]
PLACE = ["root", "root_path", "root_dir", "base_path", "base_dir", "cwd", "workspace", "working_dir", "work_dir"]
PLACE_PARTS = ["project"]


def is_whole(name):
    """Whether a name says that the parameter is all parameters of the call."""
    return name in WHOLE or any(part in name for part in WHOLE_PARTS)


def is_place(name):
    """Whether a name says that the parameter is the folder of the project."""
    return name in PLACE or any(part in name for part in PLACE_PARTS)


def misfit(what, call, why):
    declared = ", ".join(call.get("declared") or ()) or "none"
    return TypeError(
        f"execute({', '.join(what.names)}) cannot be called: {why}; "
        f"write execute(params, project_path), or give it the names of the declared parameters ({declared})"
    )


def arguments(execute, call):
    """What execute is called with, by position and by name."""
    params, what = call.get("params") or {}, takes(execute)
    if what is None or what.all_positional and not what.names:
        return (params, call["project"]), {}
    known = set(call.get("declared") or ()) | set(params)
    named = any(name in known and name not in ("params", "project_path") for name in what.names)
    if named or what.all_keywords and not what.names:
        return by_name(what, known, call)
    return by_convention(what, call)


def by_name(what, known, call):
    """The arguments of a function that has names of the tool's parameters."""
    left, values = dict(call.get("params") or {}), {}
    whole = "params" in what.names and "params" not in left
    for name in what.names:
        if name in left:
            values[name] = left.pop(name)
        elif name == "params":
            values[name] = call.get("params") or {}
        elif name == "project_path" or name not in known and is_place(name):
            values[name] = call["project"]
        elif name not in what.defaults:
            raise misfit(what, call, f"the call gives no {name}, which has no default" if name in known else f"{name} is no parameter of the tool")
    if what.all_keywords:
        values.update(left)
    elif lost := unread(left):
        if not whole:
            raise misfit(what, call, f"it does not take {lost}")
    given = []
    for name in what.positional[: what.unnamed]:
        if name not in values:
            break
        given.append(values.pop(name))
    return given, values


def by_convention(what, call):
    """The arguments of execute(params, project_path), whatever the two are called."""
    params, given, named, left = call.get("params") or {}, [], {}, ["params", "project"]
    certain = bool(what.names) and (is_whole(what.names[0]) or is_place(what.names[0]))
    single = sum(not is_place(name) and not name.startswith("_") for name in what.names) < 2
    for name in what.names:
        if is_place(name):
            wanted = "project"
        elif name in what.defaults and not is_whole(name):
            continue
        elif "params" in left and (certain or single) and (name in what.positional or is_whole(name)):
            wanted = "params"
        elif "project" in left and is_whole(what.names[0]):
            wanted = "project"
        else:
            raise misfit(what, call, f"{name} is no parameter of the tool")
        if wanted not in left:
            continue
        left.remove(wanted)
        value = params if wanted == "params" else call["project"]
        if name in what.keywords or len(given) < what.positional.index(name):
            named[name] = value
        else:
            given.append(value)
    if "params" in left and what.all_keywords:
        named.update(params)
    elif "params" in left and unread(params):
        raise misfit(what, call, f"it takes none of {unread(params)}")
    return given, named


def unread(params):
    """The names of parameters that a caller has given; settings are handed to every tool that asks for them."""
    return ", ".join(name for name in params if name != "resolved_config")
