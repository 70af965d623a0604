"""Loads a Python tool from files that were verified, and calls it.

The call comes on standard input, so that no other user of the machine sees it. What
lies beside the tool is loaded only when its SHA-256 is on the list that came with the
call; everything else in those folders is as if it were not there.
"""

__version__ = "1.0.0"
__tool_type__ = "library"
__category__ = "rye/core/runtimes/python/lib"
__tool_description__ = "Runs Python tools: functions, scripts and warm workers"

# Each module that is imported here is paid for by every call: what is rarely needed is
# imported where it is.
import hashlib
import importlib.machinery
import json
import os
import sys
import types

PACKAGE = "rye_tools"


class Verified:
    """The files that may be loaded."""

    def __init__(self, call):
        self.files = {path: f["sha256"] for path, f in (call.get("files") or {}).items()}
        self.unsigned = set(call.get("unsigned") or ())
        roots = [root for root in (call.get("base"), os.path.dirname(os.path.abspath(__file__))) if root]
        self.spellings = [(root, spelling) for root in roots for spelling in dict.fromkeys((root, os.path.realpath(root)))]
        self.passed_over = []

    def known(self, path):
        """A path as the list has it, whatever links lead to the folder of tools; None outside."""
        path = os.path.abspath(path)
        for root, spelling in self.spellings:
            if path == spelling or path.startswith(spelling + os.sep):
                return root + path[len(spelling):]
        return None

    def read(self, path):
        if path not in self.files:
            raise ImportError(f"{path} is not loaded: no trusted key has signed it")
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != self.files[path]:
            raise ImportError(f"{path} has changed since it was verified")
        return content

    def compile(self, path):
        return compile(self.read(path), path, "exec", dont_inherit=True)


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a verified source. Compiled files are not looked at."""

    def __init__(self, name, path, verified):
        super().__init__(name, path)
        self.verified = verified

    def get_code(self, fullname):
        return self.verified.compile(self.path)


class Finder:
    """Finds modules in one folder (an importlib.abc.PathEntryFinder)."""

    def __init__(self, folder, verified):
        self.folder, self.verified = folder, verified

    def find_spec(self, fullname, target=None):
        name = os.path.join(self.folder, fullname.rpartition(".")[2])
        package = os.path.join(name, "__init__.py")
        for path, locations in ((package, [name]), (name + ".py", None)):
            if path in self.verified.files:
                return spec_of(fullname, path, locations, self.verified)
            if path in self.verified.unsigned:
                self.verified.passed_over.append(path)
        if os.path.isdir(name):
            spec = importlib.machinery.ModuleSpec(fullname, None)
            spec.submodule_search_locations = [name]
            return spec
        return None


def spec_of(name, path, locations, verified):
    """The spec of a verified file; of a package with the folders where its modules are."""
    spec = importlib.machinery.ModuleSpec(name, Loader(name, path, verified), origin=path, is_package=locations is not None)
    spec.has_location = True
    if locations is not None:
        spec.submodule_search_locations = list(locations)
    return spec


def guard(verified):
    """Lets the folders of tools be searched for verified files only."""

    def hook(entry):
        folder = verified.known(entry)
        if folder is None:
            raise ImportError
        return Finder(folder, verified)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    for loader in (importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader):
        by_path(loader, verified)
    create = importlib.machinery.ExtensionFileLoader.create_module

    def create_module(self, spec):
        if verified.known(self.path):
            raise ImportError(f"{self.path} is not loaded: nobody can sign compiled code")
        return create(self, spec)

    importlib.machinery.ExtensionFileLoader.create_module = create_module


def by_path(loader, verified):
    """Holds for modules that a tool loads by their paths, too."""
    get_code = loader.get_code

    def checked(self, fullname):
        path = verified.known(self.path)
        return get_code(self, fullname) if path is None else verified.compile(path)

    loader.get_code = checked


def search(folders):
    """Adds folders behind the standard library and before what is installed."""
    at = next((i for i, entry in enumerate(sys.path) if "site-packages" in entry or "dist-packages" in entry), len(sys.path))
    sys.path[at:at] = [folder for folder in folders if folder not in sys.path]


def packages(tool, base, verified):
    """Makes the folders above a tool packages, and returns the names of its package and of itself."""
    inner = os.path.relpath(tool, base).split(os.sep)
    folders = inner[:-1]
    regular = len(folders)  # from here on each folder has an __init__.py
    while regular > 0 and os.path.join(base, *folders[:regular], "__init__.py") in verified.files:
        regular -= 1
    name, path = PACKAGE, base
    add_package(name, path, None, verified)
    for i, folder in enumerate(folders):
        name, path = f"{name}.{folder.replace('.', '_')}", os.path.join(path, folder)
        init = os.path.join(path, "__init__.py")
        add_package(name, path, init if i >= regular and init in verified.files else None, verified)
    stem = os.path.splitext(inner[-1])[0].replace(".", "_")
    return name, name if stem == "__init__" else f"{name}.{stem}"


def add_package(name, path, init, verified):
    if name in sys.modules:
        return
    if init is None:
        module = types.ModuleType(name)
        module.__path__, module.__package__ = [path], name
        sys.modules[name] = module
    else:
        module = run_module(name, init, [path], verified)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def run_module(name, path, locations, verified):
    """Makes a module of a verified file."""
    spec = spec_of(name, path, locations, verified)
    module = types.ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, path
    module.__package__ = name if locations is not None else name.rpartition(".")[0]
    if locations is not None:
        module.__path__ = list(locations)
    sys.modules[name] = module
    try:
        exec(verified.compile(path), module.__dict__)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return sys.modules.get(name, module)


def load(call, verified):
    """Loads the module of a function tool."""
    _, name = packages(call["tool"], call["base"], verified)
    if name in sys.modules:
        return sys.modules[name]
    return run_module(name, call["tool"], None, verified)


def invoke(module, call):
    """Calls execute, whether it is a coroutine or not, with what it takes."""
    execute = getattr(module, "execute", None)
    if not callable(execute):
        raise TypeError("the tool defines no function execute(params, project_path)")
    from rye_call import Printed, arguments

    given, named = arguments(execute, call)
    with Printed() as printed:
        result = execute(*given, **named)
        if hasattr(result, "__await__") or hasattr(result, "__aiter__"):
            import asyncio

            result = asyncio.run(awaited(result))
        if isinstance(result, types.GeneratorType):
            result = list(result)
    return printed.value() if result is None else result


async def awaited(result):
    if hasattr(result, "__aiter__"):
        return [one async for one in result]
    return await result


def to_json(value):
    """A result as JSON: what JSON has no form for becomes text."""
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(plain(value, 0), default=str)


def plain(value, depth):
    if depth > 200:
        return str(value)
    if isinstance(value, float) and value - value != 0:  # not finite
        return str(value)
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v, depth + 1) for v in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def report(error, verified):
    """Prints what went wrong in the tool, without the frames of this file."""
    import traceback

    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__ and frames.tb_next is not None:
        frames = frames.tb_next
    traceback.print_exception(type(error), error.with_traceback(frames), frames)
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, ImportError) and verified.passed_over:
        message += "; passed over, because no trusted key has signed it: " + ", ".join(dict.fromkeys(verified.passed_over))
        print(message, file=sys.stderr)
    return message


def quiet_input():
    """Leaves nothing on standard input, so that no tool waits for it."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def answer_stream():
    """Keeps standard output for the answer; what the tool prints goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(kept, "wb")


def run_function(call, verified):
    out = answer_stream()
    quiet_input()
    try:
        result = to_json(invoke(load(call, verified), call))
    except Exception as error:  # SystemExit and KeyboardInterrupt end the process as they should
        report(error, verified)
        sys.stderr.flush()
        return 1
    out.write(result.encode("utf-8", "surrogatepass"))
    out.close()
    return 0


def run_script(call, verified):
    """Runs a tool that is a program: its parameters are on standard input, and behind --params where it insists."""
    import re

    source = verified.read(call["tool"])
    try:
        from rye_purpose import is_function

        if is_function(source, call["tool"]):
            return run_function(call, verified)
    except Exception as error:
        report(error, verified)
        return 1
    text = json.dumps(call.get("params") or {})
    package, _ = packages(call["tool"], call["base"], verified)
    give_input(text.encode())
    sys.argv = [call["tool"], "--project-path", call["project"]]
    if re.search(rb"""['"]--params['"][^\n]*required\s*=\s*True""", source):
        sys.argv[1:1] = ["--params", text]
    main = types.ModuleType("__main__")
    main.__file__, main.__package__, main.__builtins__ = call["tool"], package, __builtins__
    main.__loader__ = Loader("__main__", call["tool"], verified)
    sys.modules["__main__"] = main
    try:
        exec(verified.compile(call["tool"]), main.__dict__)
    except Exception as error:
        report(error, verified)
        return 1
    finally:
        flush()
    return 0


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the tool has closed it
            pass


def give_input(content):
    """Puts bytes on standard input, in no file that has a name."""
    if hasattr(os, "memfd_create"):
        source = os.memfd_create("params")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            source = os.dup(file.fileno())
    with os.fdopen(os.dup(source), "wb") as file:
        file.write(content)
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, 0)
    os.close(source)
    sys.stdin = open(0, encoding="utf-8", closefd=False)


def serve():
    """Answers calls, each a message on standard input, until there are no more."""
    out, stream = answer_stream(), os.fdopen(os.dup(0), "rb")
    quiet_input()
    call = receive(stream)
    if call is None:
        return 0
    verified = Verified(call)
    guard(verified)
    search(call["path"])
    while call is not None:
        try:
            result = to_json(invoke(load(call, verified), call))
            reply = '{"result":' + result + "}"
        except BaseException as error:
            reply = json.dumps({"error": report(error, verified)})
            if isinstance(error, KeyboardInterrupt):
                return 1
        flush()
        send(out, reply.encode("utf-8", "surrogatepass"))
        call = receive(stream)
    return 0


def receive(stream):
    head = stream.read(4)
    if len(head) < 4:
        return None
    return json.loads(stream.read(int.from_bytes(head, "big")))


def send(out, content):
    out.write(len(content).to_bytes(4, "big"))
    out.write(content)
    out.flush()


def main():
    mode = sys.argv[1]
    if mode == "warm":
        return serve()
    call = json.loads(sys.stdin.buffer.read())
    verified = Verified(call)
    guard(verified)
    search(call["path"])
    return run_script(call, verified) if mode == "script" else run_function(call, verified)


if __name__ == "__main__":
    sys.exit(main())
