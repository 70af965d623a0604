"""@TITLE@"""

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/function"
__category__ = "@CATEGORY@"
__tool_description__ = "What it does and what it returns, in one line that models read"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The text to count the words of"},
    },
    "required": ["text"],
}


def execute(params, project_path):
    return {"success": True, "words": len(params["text"].split())}
