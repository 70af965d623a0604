"""Tells whether a file that is to be run as a program is one."""

__version__ = "1.0.0"
__tool_type__ = "library"
__category__ = "rye/core/runtimes/python/lib"
__tool_description__ = "Tells programs in Python from files that define execute alone"


def is_function(source, path):
    """Whether a file that is run as a program is none: it defines execute, and does nothing by itself. One that defines others only is refused."""
    if b"__main__" in source:
        return False
    tree = compile(source, path, "exec", 0x400, dont_inherit=True)  # ast.PyCF_ONLY_AST, without the module ast
    top = list(statements(tree.body))
    if any(acts(one) for one in top):
        return False
    used = {node.id for one in top for node in nodes(one) if kind(node) == "Name" and kind(node.ctx) == "Load" and node.id != getattr(one, "name", None)}
    bound = [name for one in top for name in binds(one)]
    if "execute" in bound:
        return "execute" not in used
    idle = [one.name for one in top if kind(one) in ("FunctionDef", "AsyncFunctionDef") and one.name not in used]
    if idle:
        name = next((name for name in ("run", "main") if name in idle), idle[-1])
        raise TypeError(f"the tool does nothing: it defines {name}, which nobody calls; name it execute(params, project_path), or call it and print what it returns")
    return False


def kind(node):
    return type(node).__name__


def statements(body):
    """The statements of a module, those within if and try too."""
    left = body[::-1]
    while left:
        one = left.pop()
        if kind(one) in ("If", "Try", "TryStar"):
            inner = [*one.body, *one.orelse, *getattr(one, "finalbody", ())]
            for handler in getattr(one, "handlers", ()):
                inner += handler.body
            left += inner[::-1]
        else:
            yield one


QUIET = ("sys.path.", "logging.", "warnings.", "os.environ.")  # what is called before anything is done


def acts(statement):
    """Whether a statement of a module does something, and not only binds names."""
    if kind(statement) != "Expr":
        return kind(statement) in ("For", "While", "With", "Match", "Raise", "Delete")
    if kind(statement.value) == "Constant":
        return False
    return kind(statement.value) != "Call" or not dotted(statement.value.func).startswith(QUIET)


def dotted(node):
    if kind(node) == "Attribute":
        return dotted(node.value) + "." + node.attr
    return node.id if kind(node) == "Name" else ""


def binds(statement):
    """The names that a statement of a module binds."""
    if kind(statement) in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
        return [statement.name]
    if kind(statement) in ("Import", "ImportFrom"):
        return [alias.asname or alias.name for alias in statement.names]
    return [target.id for target in getattr(statement, "targets", ()) if kind(target) == "Name"]


def nodes(node):
    """All nodes of a statement, which can be nested deeper than functions may call each other."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            left += [child for child in (value if isinstance(value, list) else (value,)) if hasattr(child, "_fields")]
