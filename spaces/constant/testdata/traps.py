#!/usr/bin/env python3
# -*- coding: utf-8 -*-
"""A tool with every form of constant."""
from __future__ import annotations
import os, sys
from typing import Any, Dict, Optional

# Texts
PLAIN = "a" 'b'
PREFIXES = [r"\n", R'\d', u"ü", "\\n"]
ADJACENT = ("one "
            'two '  # in between
            r"\three")
ESCAPES = "\a\b\f\n\r\t\v\\\'\"\0\12\377\x41\x80\xff\u00e9\U0001F600\d\
joined"
TRIPLE = """first
  "second" 'third'
\"""fourth\
"""
EMPTY = ["", '', """""", '''''']
HASH = "# no comment" # a comment
QUOTES = 'it''s'
ADDED = "a" + "b" "c" + PLAIN
# Numbers
NUMBERS = [0, 00, 1_000, -5, +3, 0x1F, 0o17, 0b101, 1.5, 1., .5, 1e3, -1.5E-2, 9223372036854775807]
BIG = 12345678901234567890
# Words
WORDS = [True, False, None]
# Several
A = B = [1, 2]
X = 1; Y = "two; not three"; Z = [X, Y]
PAIR = 1, "two"
ONE = (1,)
PAREN = (1)
NONE = ()
ANNOTATED: Dict[str, Any] = {"a": 1}
TYPED: "Optional[str]" = None
ONLY_ANNOTATED: int
# Lists and mappings
ACTIONS = ["get", "put"]
MORE = ACTIONS + ["del"] + []
SPREAD = [*ACTIONS, "x", *("y", "z")]
BASE = {"type": "object", "a": 1,}
MERGED = {**BASE, "a": 2, **{"b": [3]}}
TWICE = {"k": 1, "k": 2}
NAMED_KEY = {PLAIN: 1, "p" "q": 2}
CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ACTIONS, "description": "what to do: "
                   "get or put"},
        # not here }
        "depth": {"type": "integer", "default": 3, "minimum": -1},
	"tab": {"type": "string"},
    },
    "required": ["action"],
}

@staticmethod
def decorated(a=[1, 2], b="PLAIN = 'no'"):
    """PLAIN = 'no'
PLAIN = 'neither'
"""
    PLAIN = "local"
    if a:
        ACTIONS = []
    return f"{a[0]}" if sys.version_info > (3, 12) else PLAIN \
        or ACTIONS


async def later(): PLAIN = 1

class Thing(object):
    PLAIN = "class"
    def m(self): ACTIONS = 1

LONG = \
    "continued"
MULTI = [
  1
  ,
  2]
if __name__ == "__main__":
    print(PLAIN, ACTIONS)
	
__version__ = "1.2.3"
__tool_type__ = 'python'
__executor_id__ = "rye/core/runtimes/python/script"
LAST = "no line end"