#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the engine as two files: OUT/sardonyx.c and OUT/sardonyx.h.

    scripts/amalgamate.py OUT

All of src/ in one C file, to be compiled with `cc -O2 -c sardonyx.c` and linked with -lm -lpthread.
It holds one set of kernels: that of the instruction set the compiler is told to write for.

How: headers come once, where first needed. Names that are local to a source file and are known in
another file too get the file's name as a suffix; macros of a source file end with it. The
compiler (CC, default cc) expands each source first, so that names made by macros are seen.
"""
import collections
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LAYERS = ("base", "tensor", "proto", "kernels", "ir", "ops", "passes", "run", "convert", "provider",
          "api")
CC = os.environ.get("CC", "cc")
FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-DSDX_ONE_SET=1", "-DSDX_SET=generic", f"-I{SRC}",
         f"-I{ROOT / 'include'}"]
# Instruction sets whose kernels may have names that the others lack.
TARGETS = [["-DSDX_SET_GENERIC=1"]]
if platform.machine() == "x86_64":
    TARGETS += [["-DSDX_SET_AVX2=1", "-mavx2", "-mfma", "-mf16c"],
                ["-DSDX_SET_AVX512=1", "-march=skylake-avx512"]]

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0
 * Sardonyx %s in one file; made by scripts/amalgamate.py, not written by hand.
 *
 *     cc -O2 -c sardonyx.c && cc program.c sardonyx.o -lm -lpthread
 *
 * C11 with the GNU extensions of gcc and clang. One set of kernels, chosen by the compiler's target:
 * -march=native (or -mavx2 -mfma -mf16c) makes it several times faster than the baseline. The
 * library as it is built by CMake holds all sets and picks one when it runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#define SDX_ONE_SET 1
#define SDX_SET generic
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define SDX_SET_AVX512 1
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SDX_SET_AVX2 1
#else
#define SDX_SET_GENERIC 1
#endif
/* Results must not depend on where the compiler likes to fuse. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-math-errno", "no-trapping-math")
#endif
#include "sardonyx.h"
"""

TOKEN = re.compile(r"""
    (?P<space>[ \t\r\n]+|\\\n|/\*.*?\*/|//[^\n]*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark>->|\#\#|\.\.\.|.)
""", re.X | re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*$', re.M)
KEYWORDS = set("""auto break case char const continue default do double else enum extern float for goto
if inline int long register return short signed sizeof static struct switch typedef union unsigned
void volatile while _Bool _Static_assert _Alignas __attribute__ __extension__ __asm__ __inline
""".split())


def tokens_of(text):
    """[(kind, text)] of C source, all of it."""
    return [(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]


def sources():
    """The sources in the order of layers; what changes the mathematics of libc's headers comes last."""
    found = [path for layer in LAYERS for path in sorted((SRC / layer).rglob("*.c"))
             if path.parent.name not in ("x86", "arm")]
    rank = {path: ("<tgmath.h>" in path.read_text()) * 2 + ("<complex.h>" in path.read_text())
            for path in found}
    return sorted(found, key=lambda path: rank[path])


# ---- names ----

def expand(path, target):
    """The source after the preprocessor, without what its system headers and ours bring."""
    done = subprocess.run([CC, *FLAGS, *target, "-E", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr[-2000:]}")
    lines, ours = [], False
    for line in done.stdout.split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker.group(1) == str(path) or marker.group(1).endswith("_tmpl.h")
        elif ours and not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def statements(text):
    """Token lists of the declarations at file level; bodies of functions are left out."""
    depth, out, body = 0, [], False
    for kind, word in tokens_of(text):
        if kind == "space":
            continue
        if word == "{":
            if depth == 0 and out and out[-1] == ")":
                body = True
            depth += 1
        if not body:
            out.append(word)
        if word == "}":
            depth -= 1
            if depth == 0 and body:
                yield out
                out, body = [], False
        elif word == ";" and depth == 0:
            yield out
            out = []


def without_nested(words):
    """The words outside of ( ) [ ] { } and of attributes; a '(' stays as a mark."""
    out, depth = [], 0
    for word in words:
        if word in "([{":
            if depth == 0:
                out.append(word)
            depth += 1
        elif word in ")]}":
            depth -= 1
        elif depth == 0:
            out.append(word)
    return out


def enumerators(words):
    """Names of the constants in every enum body of a statement."""
    for i, word in enumerate(words):
        if word != "enum":
            continue
        j = i + 1
        if j < len(words) and words[j] != "{":
            j += 1
        if j >= len(words) or words[j] != "{":
            continue
        depth, first = 0, True
        for word_in in words[j:]:
            if word_in in "{([":
                depth += 1
                first = word_in == "{"
            elif word_in in "})]":
                depth -= 1
                if depth == 0:
                    break
            elif word_in == "," and depth == 1:
                first = True
            elif first and depth == 1:
                yield word_in
                first = False


def local_names(text):
    """Names a source declares for itself: static functions and data, tags, constants, types."""
    names = set()
    for words in statements(text):
        names.update(enumerators(words))
        for i, word in enumerate(words[:-2]):
            if word in ("struct", "union", "enum") and words[i + 2] == "{":
                names.add(words[i + 1])
        if words[0] not in ("static", "typedef") and "static" not in words[:3]:
            continue
        flat = [word for word in without_nested(words) if word != "__attribute__"]
        if words[0] == "typedef":
            pointer = re.search(r"\(\s*\*\s*(\w+)", " ".join(words))
            plain = [word for word in flat if re.match(r"[A-Za-z_]\w*$", word)]
            names.add(pointer.group(1) if pointer else plain[-1])
            continue
        names.update(declarators(flat))
    return {name for name in names - KEYWORDS if not name.startswith("sdx_")}


def declarators(flat):
    """Names declared by a flattened `static ...` statement: before '(' '[' '=' ',' or ';'."""
    previous, waiting = None, True
    for word in flat:
        if waiting and word in ("(", "[", "=", ",", ";") and previous:
            yield previous
            waiting = False
        if word == ",":
            waiting = True
        if word == "{" or (word == "(" and not waiting):
            continue
        previous = word if re.match(r"[A-Za-z_]\w*$", word) and word not in KEYWORDS else previous


def defined_macros(text):
    return list(dict.fromkeys(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)))


def rename(text, names, suffix):
    """Identifiers in `names` get the suffix, but members of structures do not."""
    out, last, structs, depth, head = [], "", [], 0, []
    tokens = tokens_of(text)
    for i, (kind, word) in enumerate(tokens):
        if kind == "mark":
            if word == "{":
                structs.append(any(tag in ("struct", "union") for tag in head[-2:]))
            elif word == "}" and structs:
                structs.pop()
            head = [] if word in "{};" else head + [word]
        elif kind != "space":
            head.append(word)
        if kind == "name" and word in names and last not in (".", "->"):
            following = next((t for k, t in tokens[i + 1:i + 4] if k != "space"), "")
            in_body = bool(structs) and structs[-1]
            is_member = in_body and following in (";", ",", "[", ":", ")") \
                and last not in ("struct", "enum", "union", "[", "(")
            if not is_member:
                word += suffix
        out.append(word)
        if kind != "space":
            last = word
    return "".join(out)


# ---- files ----

class Writer:
    def __init__(self):
        self.headers = set()
        self.out = []

    def inline(self, text, base):
        """The text with our includes replaced; names nothing, renames nothing."""
        parts, at = [], 0
        for match in INCLUDE.finditer(text):
            parts.append(text[at:match.start()])
            at = match.end()
            is_public = match.group(2).startswith("sardonyx/")
            if match.group(2) == "sardonyx/sardonyx.h":
                continue
            if match.group(1) == "<" and not is_public:
                parts.append(match.group())
                continue
            path = SRC / match.group(2)
            if not path.is_file():
                path = base / match.group(2)
            if is_public:
                path = ROOT / "include" / match.group(2)
            parts.append(self.header(path))
        return "".join(parts + [text[at:]])

    def header(self, path):
        text = path.read_text(encoding="utf-8")
        if not path.name.endswith("_tmpl.h"):
            if path in self.headers:
                return ""
            self.headers.add(path)
        return self.inline(strip_head(text), path.parent)

    def source(self, path, renamed, by_macro):
        """One source: its own headers first, then its text. Names in `renamed` are changed in the
        text, those in `by_macro` by a macro, which also reaches names put together with ##."""
        text = strip_head(path.read_text(encoding="utf-8"))
        suffix = "_of_" + re.sub(r"\W", "_", path.stem)
        head_end = max([match.end() for match in INCLUDE.finditer(text)
                        if not match.group(2).endswith("_tmpl.h")], default=0)
        self.out.append(f"\n/* ---- {path.relative_to(ROOT)} ---- */\n")
        before = rename(text[:head_end], renamed, suffix)
        self.out.append(self.inline(before, path.parent))
        self.out += [f"\n#define {name} {name}{suffix}" for name in by_macro]
        rest = self.inline(text[head_end:], path.parent)
        self.out.append("\n" + rename(rest, renamed, suffix))
        self.out += [f"\n#undef {name}" for name in
                     [*by_macro, *(name + (suffix if name in renamed else "")
                                 for name in defined_macros(text))]]


def strip_head(text):
    """Without the comment that begins each file."""
    return re.sub(r"\A/\*.*?\*/\n", "", text, count=1, flags=re.S)


def header_names():
    """Every identifier in our headers: a local name like one of them is renamed."""
    names = set()
    for path in [*SRC.rglob("*.h"), ROOT / "include/sardonyx/sardonyx.h"]:
        names.update(word for kind, word in tokens_of(path.read_text(encoding="utf-8"))
                     if kind == "name")
    return names


def member_names(paths):
    """Names that are members of structures somewhere: those cannot be renamed by a macro."""
    names = set()
    for path in [*paths, *SRC.rglob("*.h")]:
        words = [token for token in tokens_of(path.read_text(encoding="utf-8"))
                 if token[0] != "space"]
        names.update(after[1] for before, after in zip(words, words[1:])
                     if before[1] in (".", "->") and after[0] == "name")
    return names


def clashes(paths):
    """{path: its local names that another file knows}."""
    with ThreadPoolExecutor(2) as pool:
        local = dict(zip(paths, pool.map(
            lambda path: set().union(*(local_names(expand(path, t)) for t in TARGETS)), paths)))
    count = collections.Counter(name for names in local.values() for name in names)
    known = header_names()
    macros = {name for path in paths for name in defined_macros(path.read_text(encoding="utf-8"))}
    return {path: {name for name in names if count[name] > 1 or name in known or name in macros}
            for path, names in local.items()}


def version():
    text = (ROOT / "include/sardonyx/sardonyx.h").read_text(encoding="utf-8")
    return re.search(r'SDX_VERSION_STRING\s+"([^"]+)"', text).group(1)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if "--help" in sys.argv else sys.stderr)
        return 0 if "--help" in sys.argv else 2
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    paths = sources()
    writer = Writer()
    writer.out.append(HEAD % version())
    members = member_names(paths)
    for path, names in clashes(paths).items():
        writer.source(path, names & members, sorted(names - members))
    text = re.sub(r"\n{3,}", "\n\n", "".join(writer.out)) + "\n"
    (out / "sardonyx.c").write_text(text, encoding="utf-8")
    header = (ROOT / "include/sardonyx/sardonyx.h").read_text(encoding="utf-8")
    (out / "sardonyx.h").write_text(header, encoding="utf-8")
    print(f"{out / 'sardonyx.c'}: {text.count(chr(10))} lines from {len(paths)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
