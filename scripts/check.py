#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the tree that a machine can check: layers, sizes, bans, symbols, headers, format.

    scripts/check.py [--warnings] [--update-abi] [--no-build]

One line a fault, then "N faults"; exit code 1 when there is one. Run by `make check`.
"""
import argparse
import re
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

# What a layer may include besides itself and the public header; what it names brings its own along.
LAYERS = {
    "base": [],
    "tensor": ["base"],
    "proto": ["tensor"],
    "kernels": ["tensor"],
    "ir": ["proto"],
    "ops": ["ir", "kernels"],
    "passes": ["ops"],
    "run": ["passes"],
    "convert": ["ops"],
    "provider": ["run"],
    "api": ["provider", "convert"],
}
CLIENTS = ("cli", "vision", "codecs", "serve", "abi", "bindings", "bench", "examples")  # the public headers only
INSIDERS = ("tests/unit", "tests/kernels", "tests/fuzz")  # tests that may look inside

FILE_WALL, FILE_WARN = 1500, 800
FUNCTION_WALL, FUNCTION_WARN = 150, 80
LINE_WALL = 100

BANNED = """
malloc calloc realloc free aligned_alloc posix_memalign memalign alloca strdup strndup asprintf
vasprintf strcpy strcat stpcpy sprintf vsprintf gets
atoi atol atoll atof strtol strtoll strtoul strtoull strtod strtof strtold strtoimax scanf sscanf
fscanf printf fprintf vprintf vfprintf puts putchar fputs fputc putc perror
assert abort exit _exit quick_exit getenv setenv putenv setlocale localeconv strerror
strcoll strxfrm toupper tolower isalpha isdigit isalnum isspace isupper islower isxdigit isprint
ispunct rand srand
""".split()
# A member of a struct may have such a name: options->free(...).
BAN = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
STREAMS = re.compile(r"\b(stdout|stderr|stdin)\b")
LEFT_OVER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
C_FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_GNU_SOURCE"]

SETS = "generic|avx2|avxvnni|avx512|avx512vnni|avx512vbmi|amx|dotprod|i8mm"
PER_SET = re.compile(rf"(_tmpl|_({SETS}))\.c\.o$")
INIT_OF_SET = re.compile(rf"_init_({SETS})$")

# Names that every folder may have.
COMMON_NAMES = {"CMakeLists.txt", "README.md", "__init__.py", "conftest.py", ".gitignore", "Makefile",
                "requirements.txt", "pyproject.toml", "Cargo.toml", "Cargo.lock"}
# Folders whose file names another project prescribes.
PRESCRIBED = ("bindings/python-onnxruntime/onnxruntime/", "bindings/python/sardonyx/capi/")
DATA = ("tests/data/", "tests/fuzz/corpus/", "examples/", "bench/baseline/")


class Report:
    def __init__(self):
        self.faults, self.warnings = [], []

    def fault(self, where, text):
        self.faults.append(f"{where}: {text}")

    def warn(self, where, text):
        self.warnings.append(f"{where}: warning: {text}")


def run(command, **kwargs):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **kwargs)


def list_files():
    listed = run(["git", "ls-files", "-co", "--exclude-standard"]).stdout.split("\n")
    return sorted(name for name in listed if name and (ROOT / name).is_file())


def keep_newlines(match):
    return "\n" * match.group().count("\n") or " "


NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\\\n]|\\.|\\\n)*", re.M | re.S)


def strip(text, comments_only=False):
    """C text without comments (and without the content of strings), the same lines."""
    def blank(match):
        token = match.group()
        if token[0] == "/":
            return keep_newlines(match)
        return token if comments_only else token[0] * 2
    return NOT_CODE.sub(blank, text)


def is_generated(text):
    return "generated" in text[:600].lower()


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def allowed_layers(layer, seen=None):
    seen = set() if seen is None else seen
    if layer not in seen:
        seen.add(layer)
        for below in LAYERS[layer]:
            allowed_layers(below, seen)
    return seen


def check_include(report, name, line, quote, target):
    """One #include of file `name`."""
    where = f"{name}:{line}"
    if target.startswith("sardonyx/"):
        return
    top = name.split("/")[0]
    here = (ROOT / name).parent / target
    if quote == "<":
        return
    if here.is_file() and (top != "src" or name.split("/")[1] == "base"
                           or here.resolve().is_relative_to(ROOT / "src" / name.split("/")[1])):
        if top in CLIENTS and not here.resolve().is_relative_to(ROOT / top):
            report.fault(where, f'includes "{target}", which is outside of {top}/')
        return
    if top == "src":
        layer, below = name.split("/")[1], target.split("/")[0]
        if layer not in LAYERS:
            report.fault(where, f"src/{layer}/ is no layer")
        elif below not in allowed_layers(layer):
            report.fault(where, f'{layer}/ may not include "{target}"')
        elif not (ROOT / "src" / target).is_file():
            report.fault(where, f'includes "{target}", which is not there')
    elif name.startswith(INSIDERS):
        if not (ROOT / "src" / target).is_file():
            report.fault(where, f'includes "{target}", which is not there')
    elif (ROOT / "src" / target).is_file():
        report.fault(where, f'includes "{target}": only <sardonyx/...> and its own headers are open')


def functions(text):
    """(name, line, lines) of each function body in `text`."""
    code = DIRECTIVE.sub(keep_newlines, strip(text))
    depth, start, last = 0, None, ""
    head = 0  # offset where the current top-level item begins
    for match in re.finditer(r"[{};]|[^\s{};]+", code):
        token = match.group()
        if token == "{":
            if depth == 0:
                if last.endswith('"'):  # extern "C"
                    last = token
                    head = match.end()
                    continue
                start = match.start() if last.endswith(")") else None
            depth += 1
        elif token == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if start is not None:
                    names = re.findall(r"([A-Za-z_]\w*)\s*\(", code[head:start])
                    first = line_of(code, start)
                    yield names[0] if names else "?", first, line_of(code, match.start()) - first + 1
                start, head = None, match.end()
        elif token == ";" and depth == 0:
            head = match.end()
        last = token


def check_c_file(report, name, text):
    lines = text.split("\n")
    code = strip(text)
    for match in INCLUDE.finditer(strip(text, comments_only=True)):
        check_include(report, name, line_of(text, match.start()), match.group(1), match.group(2))
    generated = is_generated(text)
    if not text.startswith("/* SPDX-License-Identifier: Apache-2.0\n"):
        report.fault(f"{name}:1", "the first comment must begin with the SPDX line and say what "
                                  "the file is for")
    if not generated:
        wide = [number for number, line in enumerate(lines, 1) if len(line) > LINE_WALL]
        if wide:
            report.fault(f"{name}:{wide[0]}", f"{len(wide)} lines over {LINE_WALL} columns")
        if "\t" in text:
            report.fault(f"{name}:{line_of(text, text.index(chr(9)))}", "a tab")
        for function, line, count in functions(text):
            if count > FUNCTION_WALL:
                report.fault(f"{name}:{line}", f"{function} has {count} lines, at most "
                                               f"{FUNCTION_WALL}")
            elif count > FUNCTION_WARN:
                report.warn(f"{name}:{line}", f"{function} has {count} lines, aim below "
                                              f"{FUNCTION_WARN}")
    if name.startswith("src/") and not name.startswith("src/base/"):
        for match in BAN.finditer(code):
            report.fault(f"{name}:{line_of(code, match.start())}", f"{match.group(1)} is banned here")
        for match in STREAMS.finditer(code):
            report.fault(f"{name}:{line_of(code, match.start())}", "the library does not print")
    for match in re.finditer(r"^\s*#\s*if\s+0\b", code, re.M):
        report.fault(f"{name}:{line_of(code, match.start())}", "dead code: #if 0")


SCRIPT_HEADS = {".py", ".sh", ".cmake", ".ts"}


def check_text(report, name):
    raw = (ROOT / name).read_bytes()
    if b"\0" in raw:
        return
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        report.fault(name, "not UTF-8")
        return
    suffix = Path(name).suffix
    is_c = suffix in (".c", ".h")
    is_script = suffix in SCRIPT_HEADS or text.startswith("#!") or Path(name).name in (
        "CMakeLists.txt", "Makefile")
    if is_c or is_script:
        count = text.count("\n")
        if "\r" in text:
            report.fault(name, "carriage returns")
        if not text.isascii():
            bad = next(i for i, c in enumerate(text) if ord(c) > 127)
            report.fault(f"{name}:{line_of(text, bad)}", "a character outside ASCII")
        if count > FILE_WALL and not is_generated(text):
            report.fault(name, f"{count} lines, at most {FILE_WALL}")
        elif count > FILE_WARN and not is_generated(text):
            report.warn(name, f"{count} lines, aim below {FILE_WARN}")
        for match in LEFT_OVER.finditer(text):
            report.fault(f"{name}:{line_of(text, match.start())}", f"{match.group(1)} left over")
    if is_script and "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.split("\n")[:3]):
        report.fault(f"{name}:1", "no SPDX line in the first comment")
    if is_c:
        check_c_file(report, name, text)


def check_names(report, files):
    seen = {}
    for name in files:
        base = Path(name).name
        if base in COMMON_NAMES or name.startswith(DATA + PRESCRIBED):
            continue
        if base in seen:
            report.fault(name, f"the same file name as {seen[base]}")
        seen.setdefault(base, name)


def pkg_cflags():
    found = run(["pkg-config", "--cflags", "jansson", "cairo", "libavutil"])
    return found.stdout.split() if found.returncode == 0 else []


def check_header(report, name, more):
    """The header must compile alone; *_tmpl.h are bodies that want their parameters defined."""
    if name.endswith("_tmpl.h"):
        return
    top = name.split("/")[0]
    include = ["-I", "include"]
    if top in ("src", "tests"):
        include += ["-I", "src"]
    if (ROOT / top / "include").is_dir():
        include += ["-I", f"{top}/include"]
    else:
        include += ["-I", "vision/include"]
    include += ["-I", top] + more
    if top == "bindings":
        python = sysconfig.get_path("include")
        if not (Path(python) / "Python.h").is_file():
            return
        include += ["-I", python]
    if name.startswith("src/kernels/"):
        include += ["-DSDX_SET=generic", "-DSDX_SET_GENERIC=1"]
    modes = [["gcc", "-std=c17"]]
    if "/include/" in f"/{name}" or name.startswith("include/"):
        modes = [["gcc", "-std=c99"], ["gcc", "-std=c17"], ["g++", "-std=c++17"]]
    for compiler in modes:
        kind = "c++" if compiler[0] == "g++" else "c"
        result = run(compiler + C_FLAGS + include + ["-x", kind, "-"],
                     input=f'#include "{name}"\nextern int sdx_check_not_empty;\n')
        if result.returncode != 0:
            errors = [line for line in result.stderr.split("\n") if "error" in line]
            report.fault(name, f"does not compile alone as {compiler[1][5:]}: "
                               f"{errors[0] if errors else result.stderr.strip()[:200]}")


def check_format(report, files):
    """One fault a file: the first place that clang-format would change."""
    seen = set()
    for line in run(["clang-format", "--dry-run", "-Werror", *files]).stderr.split("\n"):
        match = re.match(r"(.*?):(\d+):\d+: error", line)
        if match and match.group(1) not in seen:
            seen.add(match.group(1))
            path = Path(match.group(1))
            name = path.relative_to(ROOT) if path.is_absolute() else path
            report.fault(f"{name}:{match.group(2)}", "not as clang-format writes it")


def nm(*arguments):
    """(member, type, symbol) of each line."""
    result = run(["nm", "-A", "-P", *map(str, arguments)])
    if result.returncode != 0:
        return None
    rows = []
    for line in result.stdout.split("\n"):
        match = re.match(r".*?(?:\[(.*?)\])?: (\S+) ([A-Za-z])\b", line)
        if match:
            rows.append((match.group(1) or "", match.group(3), match.group(2)))
    return rows


def check_symbols(report):
    library = BUILD / "libsardonyx.a"
    rows = nm("-g", "--defined-only", library)
    if rows is None:
        report.fault("build/libsardonyx.a", "cannot be read; run make build")
        return
    for member, _, symbol in rows:
        if not symbol.startswith("sdx_") and not symbol.startswith("__"):
            report.fault(f"build/libsardonyx.a({member})", f"{symbol} does not begin with sdx_")
        elif PER_SET.search(member) and not INIT_OF_SET.search(symbol):
            report.fault(f"build/libsardonyx.a({member})",
                         f"{symbol}: an object of one instruction set may only show "
                         "sdx_<subject>_init_<set>")


def check_abi(report, update):
    library, listed = BUILD / "libsardonyx.so", ROOT / "scripts/abi.txt"
    rows = nm("-D", "--defined-only", library)
    if rows is None:
        report.fault("build/libsardonyx.so", "cannot be read; run make build")
        return
    found = {symbol for _, _, symbol in rows}
    if update:
        listed.write_text("".join(f"{symbol}\n" for symbol in sorted(found)))
    expected = set(listed.read_text().split())
    for symbol in sorted(found - expected):
        report.fault("scripts/abi.txt", f"{symbol} is exported and not listed")
    for symbol in sorted(expected - found):
        report.fault("scripts/abi.txt", f"{symbol} is listed and not exported")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--warnings", action="store_true", help="show what is only advised against")
    parser.add_argument("--update-abi", action="store_true",
                        help="write scripts/abi.txt from build/libsardonyx.so")
    parser.add_argument("--no-build", action="store_true", help="leave out what looks into build/")
    args = parser.parse_args()
    report = Report()
    files = list_files()
    check_names(report, files)
    for name in files:
        if not name.startswith(DATA) or name.endswith((".c", ".h", ".py")):
            check_text(report, name)
    sources = [name for name in files if name.endswith((".c", ".h"))]
    more = pkg_cflags()
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check_format, report, sources[i::8]) for i in range(8) if sources[i::8]]
        jobs += [pool.submit(check_header, report, name, more)
                 for name in sources if name.endswith(".h")]
        for job in jobs:
            job.result()
    if not args.no_build:
        check_symbols(report)
        check_abi(report, args.update_abi)
    for line in sorted(report.faults) + (sorted(report.warnings) if args.warnings else []):
        print(line)
    if report.warnings and not args.warnings:
        print(f"{len(report.warnings)} warnings (--warnings shows them)")
    print(f"{len(report.faults)} faults")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
