"""What Python tools of the original Rye import of its package: names and folders."""

__tool_type__ = "library"
