"""See rye.utils.path_utils."""

__tool_type__ = "library"
