"""Names that tools of the original Rye import."""

__tool_type__ = "library"

AI_DIR = ".ai"
STATE_THREADS_REL = "state/threads"
KNOWLEDGE_THREADS_REL = "knowledge/agent/threads"


class ItemType:
    """Kinds of items, with their folders and extensions."""

    DIRECTIVE, TOOL, KNOWLEDGE = ALL = ["directive", "tool", "knowledge"]
    TYPE_DIRS = {DIRECTIVE: "directives", TOOL: "tools", KNOWLEDGE: "knowledge"}
    CONTENT_EXTENSIONS = {DIRECTIVE: [".md"], KNOWLEDGE: [".md", ".yaml", ".yml"]}


class Action:
    """Primary actions."""

    SEARCH, SIGN, LOAD, EXECUTE = ALL = ["search", "sign", "load", "execute"]
