"""Folders that tools of the original Rye ask for."""

import os
from pathlib import Path

__tool_type__ = "library"


def get_user_space():
    """The folder that holds the user's .ai."""
    return Path(os.environ.get("USER_SPACE") or Path.home())


def get_user_ai_path():
    """The user's .ai."""
    return get_user_space() / ".ai"


def get_project_ai_path(project_path):
    """The .ai of a project."""
    return Path(project_path) / ".ai"


def ensure_directory(path):
    """Make a folder, with those above it, and return it."""
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def ensure_parent_directory(path):
    """Make the folder of a file, and return that folder."""
    return ensure_directory(Path(path).parent)
