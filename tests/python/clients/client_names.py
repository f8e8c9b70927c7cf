# SPDX-License-Identifier: Apache-2.0
"""Which names of onnxruntime the sources of packages use, and which of them a module lacks.

    client_names.py RECORD WHEEL...     one line a wheel; nothing of the packages is run
"""
import ast
import importlib
import sys
import zipfile
from pathlib import Path

from client_kit import finish, record


def chain(node):
    """["rt", "capi", "x"] for rt.capi.x; [] for what is no chain of names."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = chain(node.value)
        return before + [node.attr] if before else []
    return []


def names_of(text):
    """{(module, name or "")} that a source takes from onnxruntime."""
    tree, aliases, found = ast.parse(text), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.split(".")[0] == "onnxruntime":
                    found.add((item.name, ""))
                    aliases[item.asname or "onnxruntime"] = item.name if item.asname else "onnxruntime"
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and \
                node.module.split(".")[0] == "onnxruntime":
            found |= {(node.module, item.name) for item in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            words = chain(node)
            if len(words) > 1 and words[0] in aliases:
                found.add((aliases[words[0]], ".".join(words[1:])))
    return found


def has(module, name):
    """Whether `name`, with dots, can be had from `module`."""
    try:
        place = importlib.import_module(module)
    except ImportError:
        return False
    for word in filter(None, name.split(".")):
        if word == "*":
            continue
        if not hasattr(place, word):
            try:
                importlib.import_module(f"{place.__name__}.{word}")
            except (ImportError, AttributeError):
                return False
        place = getattr(place, word)
    return True


for path in sys.argv[2:]:
    used = set()
    with zipfile.ZipFile(path) as wheel:
        for entry in wheel.namelist():
            if entry.endswith(".py"):
                text = wheel.read(entry).decode("utf-8", "replace")
                if "onnxruntime" in text:
                    try:
                        used |= names_of(text)
                    except SyntaxError:
                        pass
    record(Path(path).name.split("-")[0],
           {f"{module}: {name}": has(module, name) for module, name in sorted(used)})
finish()
