#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write src/ops/schema/onnx_schema.c: the facts of every operator and version.

Rows come from the pinned onnx package (all domains, all versions) and from
src/ops/schema/contrib.txt (operators of other domains, kept by hand).  Lists of
parameters, attributes and sets of types are shared between rows; names are offsets
into one array of characters, so that the tables need no relocation.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/ops/schema/onnx_schema.c"
CONTRIB = ROOT / "src/ops/schema/contrib.txt"
ONNX_VERSION = "1.23.2"
ENDLESS = 2147483647

SINGLE, OPTIONAL, VARIADIC, HETEROGENEOUS = 0, 1, 2, 4
# In the order of enum sdx_attr_type.
ATTR_KINDS = ["undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings",
              "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"]
# In the order of the bits of SDX_SCHEMA_OTHERS in schema.h.
OTHERS = ["map(int64,tensor(float))", "map(int64,tensor(double))", "map(int64,tensor(string))",
          "map(string,tensor(float))", "map(string,tensor(double))", "map(string,tensor(int64))",
          "seq(map(int64,tensor(float)))", "seq(map(string,tensor(float)))"]
WRAPPERS = [("tensor(", 0), ("seq(tensor(", 1), ("optional(tensor(", 2), ("optional(seq(tensor(", 3),
            ("sparse_tensor(", 4)]


class Row:
    """One operator version in plain Python values."""

    def __init__(self, domain, name, since):
        self.domain, self.name, self.since = domain, name, since
        self.deprecated = self.has_function = self.is_nondeterministic = False
        self.inputs, self.outputs, self.attrs = [], [], []  # (name, types, type name, option)
        self.limits_in, self.limits_out = (0, 0), (0, 0)

    def key(self):
        return (self.domain.encode(), self.name.encode(), self.since)


def dtype_numbers():
    from onnx import TensorProto
    return {name.lower(): number for name, number in TensorProto.DataType.items() if number}


def type_masks(types, numbers):
    """The set as the six masks of struct sdx_schema_types."""
    masks = [0] * 6
    for text in types:
        if text in OTHERS:
            masks[5] |= 1 << OTHERS.index(text)
            continue
        for prefix, at in WRAPPERS:
            inner = text[len(prefix):].rstrip(")")
            if text.startswith(prefix) and inner in numbers:
                masks[at] |= 1 << numbers[inner]
                break
        else:
            raise SystemExit("unknown type %r" % text)
    return tuple(masks)


def standard_rows(numbers):
    import onnx
    from onnx import defs
    if onnx.__version__ != ONNX_VERSION:
        raise SystemExit("onnx is %s, expected %s" % (onnx.__version__, ONNX_VERSION))

    def params(formal):
        out = []
        for p in formal:
            option = {"Single": SINGLE, "Optional": OPTIONAL, "Variadic": VARIADIC}[p.option.name]
            if option == VARIADIC and not p.is_homogeneous:
                option |= HETEROGENEOUS
            out.append((p.name, type_masks(p.types, numbers), p.type_str, option))
        return out

    rows = []
    for s in defs.get_all_schemas_with_history():
        row = Row(s.domain, s.name, s.since_version)
        row.deprecated = s.deprecated
        row.has_function = s.has_function or s.has_context_dependent_function
        row.is_nondeterministic = s.node_determinism == defs.OpSchema.NodeDeterminism.NonDeterministic
        row.inputs, row.outputs = params(s.inputs), params(s.outputs)
        row.limits_in, row.limits_out = (s.min_input, s.max_input), (s.min_output, s.max_output)
        row.attrs = sorted((a.name, a.type.value, a.required) for a in s.attributes.values())
        rows.append(row)
    return rows


def limits(params, least):
    """The counts that a list of parameters allows: the last needed one, and the length."""
    low = 0
    for i, (_, _, _, option) in enumerate(params):
        if option == SINGLE:
            low = i + 1
        elif option & VARIADIC and least[i] > 0:
            low = i + least[i]
    endless = any(option & VARIADIC for _, _, _, option in params)
    return low, ENDLESS if endless else len(params)


def contrib_rows(numbers):
    rows = []
    for number, line in enumerate(CONTRIB.read_text().splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "op":
            row = Row("" if words[1] == "ai.onnx" else words[1], words[2], int(words[3]))
            row.deprecated = "deprecated" in words[4:]
            row.raw, row.variables = {"in": [], "out": []}, {}
            rows.append(row)
        elif words[0] in ("in", "out"):
            row.raw[words[0]].append(words[1:])
        elif words[0] == "attr":
            row.attrs.append((words[1], ATTR_KINDS.index(words[2]), "required" in words[3:]))
        elif words[0] == "type":
            row.variables[words[1]] = words[2:]
        else:
            raise SystemExit("%s:%d: unknown word %r" % (CONTRIB, number, words[0]))
    for row in rows:
        for kind in ("in", "out"):
            found, least = [], []
            for name, variable, *rest in row.raw[kind]:
                option = {"optional": OPTIONAL, "variadic": VARIADIC}[rest[0]] if rest else SINGLE
                if "heterogeneous" in rest:
                    option |= HETEROGENEOUS
                least.append(int(rest[1]) if option & VARIADIC else 0)
                types = [t if "(" in t else "tensor(%s)" % t for t in row.variables.get(variable, [variable])]
                found.append((name, type_masks(types, numbers), variable, option))
            if kind == "in":
                row.inputs, row.limits_in = found, limits(found, least)
            else:
                row.outputs, row.limits_out = found, limits(found, least)
        row.attrs.sort()
    return rows


class Shared:
    """One array that lists of many rows point into."""

    def __init__(self):
        self.items = []
        self.known = {(): 0}

    def place(self, lists):
        for items in sorted(set(map(tuple, lists)), key=lambda l: (-len(l), repr(l))):
            if items in self.known:
                continue
            at = len(self.items)
            self.items.extend(items)
            for low in range(len(items)):
                for high in range(low + 1, len(items) + 1):
                    self.known.setdefault(items[low:high], at + low)


class Texts:
    """All names in one string, each ended by NUL; one that ends another stands inside of it."""

    def __init__(self, texts):
        self.pool, self.at = "", {}
        for text in sorted(set(texts), key=lambda t: (-len(t), t)):
            if not re.fullmatch("[ -&(-[\\]-~]*", text):
                raise SystemExit("the name %r needs an escape in C" % text)
            if text + "\0" not in self.pool:
                self.pool += text + "\0"
            self.at[text] = self.pool.index(text + "\0")
        if len(self.pool) > 65535:
            raise SystemExit("the names take %d bytes, offsets of 16 bits reach 65535" % len(self.pool))


def fit(value, most, what):
    if value > most:
        raise SystemExit("%s is %d, its field in schema.h holds at most %d" % (what, value, most))
    return str(value)


def c_bool(value):
    return "true" if value else "false"


def quoted(text):
    return '"%s"' % text


def number_params(row, typesets):
    """Parameters with equal type names get equal numbers, in order of appearance."""
    names = [p[2] for p in row.inputs + row.outputs]
    shared = [n for i, n in enumerate(names) if names.count(n) > 1 and n not in names[:i]]

    def convert(params):
        return [(name, typesets.setdefault(types, len(typesets)),
                 shared.index(variable) if variable in shared else -1, option)
                for name, types, variable, option in params]

    return convert(row.inputs), convert(row.outputs)


def wrap(items, width=100, indent="    "):
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += item + " "
    return lines + ([line.rstrip()] if line.strip() else [])


def row_text(row, domains, texts, params, attrs):
    where = " of %s %s %d" % (row.domain or "ai.onnx", row.name, row.since)

    def limit(n, what):
        return "SDX_SCHEMA_WITHOUT_END" if n == ENDLESS else fit(n, 254, what + where)

    fields = [str(texts.at[row.name]), fit(row.since, 32767, "the version" + where),
              str(params.known[tuple(row.numbered[0])]), str(params.known[tuple(row.numbered[1])]),
              str(attrs.known[tuple(row.attrs)]), fit(domains.index(row.domain), 255, "the domain" + where),
              fit(row.limits_in[0], 254, "the least number of inputs" + where),
              fit(row.limits_out[0], 254, "the least number of outputs" + where),
              limit(row.limits_in[1], "the largest number of inputs"),
              limit(row.limits_out[1], "the largest number of outputs"),
              fit(len(row.numbered[0]), 255, "the number of formal inputs" + where),
              fit(len(row.numbered[1]), 255, "the number of formal outputs" + where),
              fit(len(row.attrs), 255, "the number of attributes" + where),
              c_bool(row.deprecated), c_bool(row.has_function), c_bool(row.is_nondeterministic)]
    return "{%s}, /* %s */" % (", ".join(fields), row.name)


def generate():
    from onnx import defs
    numbers = dtype_numbers()
    standard, contrib = standard_rows(numbers), contrib_rows(numbers)
    rows = sorted(standard + contrib, key=Row.key)
    for a, b in zip(rows, rows[1:]):
        if a.key() == b.key():
            raise SystemExit("%s %s %d stands twice" % (a.domain, a.name, a.since))
    typesets, params, attrs = {}, Shared(), Shared()
    for row in rows:
        row.numbered = number_params(row, typesets)
    params.place([p for row in rows for p in row.numbered])
    attrs.place([row.attrs for row in rows])
    if max(len(params.items), len(attrs.items)) > 65535:
        raise SystemExit("an array has more than 65535 entries")
    fit(max(p[1] for p in params.items), 255, "the number of a set of types")
    fit(max(p[2] for p in params.items), 127, "the number of a type variable")
    texts = Texts([row.name for row in rows] + [item[0] for item in params.items + attrs.items])
    newest = {domain: version for domain, version in defs.C.schema_version_map().items()}
    newest = {domain: high for domain, (_, high) in newest.items()}
    for row in contrib:
        newest[row.domain] = max(row.since, newest.get(row.domain, 0))
    domains = sorted({row.domain for row in rows})
    out = ["/* SPDX-License-Identifier: Apache-2.0",
           " * Generated by scripts/gen_schema.py from onnx %s and contrib.txt: do not edit." % ONNX_VERSION,
           " * Operators of all versions, sorted by domain, name and version. */",
           "#include \"ops/schema.h\"", "", "/* clang-format off */",
           "const int sdx_schema_opset_newest = %d;" % newest[""],
           "const int sdx_schema_ir_version_newest = %d;" % ir_version(), ""]
    out += ["const struct sdx_schema_domain sdx_schema_domains[] = {"]
    out += ["    {%s, %d}," % (quoted(d), newest[d]) for d in domains]
    out += ["    {NULL, 0},", "};", "", "const char sdx_schema_text[] = {"]
    # By character: ISO C promises no string of more than 4095.
    out += wrap("".join("'%s'," % c for c in text) + "0," for text in texts.pool[:-1].split("\0"))
    out += ["};", "", "const struct sdx_schema_types sdx_schema_typesets[] = {"]
    out += wrap("{%s}," % ", ".join("0x%x" % m if m else "0" for m in t) for t in typesets)
    out += ["};", "", "const struct sdx_schema_param sdx_schema_params[] = {"]
    out += wrap("{%s, %d, %d, %d}," % (texts.at[n], t, v, o) for n, t, v, o in params.items)
    out += ["};", "", "const struct sdx_schema_attr sdx_schema_attrs[] = {"]
    out += wrap("{%s, %d, %s}," % (texts.at[n], t, c_bool(r)) for n, t, r in attrs.items)
    out += ["};", "", "const struct sdx_schema sdx_schemas[] = {"]
    out += ["    " + row_text(row, domains, texts, params, attrs) for row in rows]
    out += ["};", "", "const int sdx_schema_count = SDX_COUNT_OF(sdx_schemas);", "/* clang-format on */"]
    return "\n".join(out) + "\n"


def ir_version():
    import onnx
    return onnx.IR_VERSION


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare with the file; exit 1 when it is stale")
    args = parser.parse_args()
    text = generate()
    if not args.check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        print("%s is stale: run scripts/gen_schema.py" % TARGET, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
