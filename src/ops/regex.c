/* SPDX-License-Identifier: Apache-2.0
 * Compiles a pattern to a program of single-character tests, jumps and splits, and runs all threads
 * of the program side by side. Counted repetition is written out. */
#include "ops/regex.h"

#include "ops/utf8.h"

enum { PROGRAM_MAX = 100000, REPEAT_MAX = 1000, DEPTH_MAX = 250 };

enum re_op { RE_CHAR, RE_CLASS, RE_SPLIT, RE_JUMP, RE_EMPTY, RE_ACCEPT };
enum re_where { RE_TEXT_BEGIN, RE_TEXT_END, RE_LINE_BEGIN, RE_LINE_END, RE_WORD, RE_NOT_WORD };

struct re_range {
    uint32_t first, last;
};

struct re_inst {
    uint8_t op;
    bool negated, fold; /* class, character */
    int32_t a, b;       /* split: both ways; jump: a; empty: where; class: ranges [a, b) */
    uint32_t c;
};

struct sdx_regex {
    struct re_inst *program;
    int32_t count, capacity;
    struct re_range *ranges;
    int32_t count_ranges, capacity_ranges;
    /* The pattern is one test, so many times: exactly, or at least. 0: it is not. */
    int32_t times;
    bool or_more;
    bool ascii[128]; /* ... which these letters pass */
};

struct parser {
    struct sdx_context *cx;
    struct sdx_arena *arena;
    struct sdx_str s;
    size_t at;
    struct sdx_regex *re;
    bool fold, dot_newline, multiline;
    int depth;
    int32_t atom; /* where the code that a repetition is about begins */
};

static enum sdx_status bad(struct parser *p, const char *why)
{
    return SDX_FAIL(p->cx, SDX_BAD_MODEL, "regular expression \"%.*s\": %s at %zu",
                    SDX_STR_ARG(p->s), why, p->at);
}

/* ---- building ---- */

static void *grow(struct parser *p, void *array, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    int32_t wanted = *capacity ? 2 * *capacity : 32;
    void *bigger = sdx_arena_array(p->arena, (size_t)wanted, size);
    if (!bigger) return NULL;
    if (count) memcpy(bigger, array, (size_t)count * size);
    *capacity = wanted;
    return bigger;
}

static enum sdx_status emit(struct parser *p, struct re_inst inst)
{
    struct sdx_regex *re = p->re;
    if (re->count >= PROGRAM_MAX) return bad(p, "too large");
    struct re_inst *program = grow(p, re->program, re->count, &re->capacity, sizeof(*program));
    if (!program) return SDX_FAIL_MEMORY(p->cx);
    re->program = program;
    program[re->count++] = inst;
    return SDX_OK;
}

/* One more instruction at `at`; what lies behind moves, with its targets. */
static enum sdx_status insert(struct parser *p, int32_t at, struct re_inst inst)
{
    struct sdx_regex *re = p->re;
    SDX_TRY(emit(p, inst));
    for (int32_t i = re->count - 1; i > at; i--)
        re->program[i] = re->program[i - 1];
    re->program[at] = inst;
    for (int32_t i = 0; i < re->count; i++) { /* what came before still leads to `at` itself */
        struct re_inst *in = &re->program[i];
        int32_t least = i < at ? at + 1 : at;
        if (i == at || (in->op != RE_SPLIT && in->op != RE_JUMP)) continue;
        if (in->a >= least) in->a++;
        if (in->op == RE_SPLIT && in->b >= least) in->b++;
    }
    return SDX_OK;
}

static enum sdx_status add_range(struct parser *p, uint32_t first, uint32_t last)
{
    struct sdx_regex *re = p->re;
    struct re_range *r = grow(p, re->ranges, re->count_ranges, &re->capacity_ranges, sizeof(*r));
    if (!r) return SDX_FAIL_MEMORY(p->cx);
    re->ranges = r;
    r[re->count_ranges++] = (struct re_range){first, last};
    return SDX_OK;
}

static enum sdx_status emit_empty(struct parser *p, enum re_where where)
{
    return emit(p, (struct re_inst){.op = RE_EMPTY, .a = (int32_t)where});
}

static bool more(const struct parser *p)
{
    return p->at < p->s.len;
}
static char peek(const struct parser *p)
{
    return more(p) ? p->s.ptr[p->at] : '\0';
}
static bool looking_at(const struct parser *p, const char *text)
{
    size_t n = strlen(text);
    return p->s.len - p->at >= n && memcmp(p->s.ptr + p->at, text, n) == 0;
}

/* ---- classes ---- */

struct named_class {
    const char *name;
    struct re_range ranges[5];
    int count;
};
static const struct named_class perl_classes[] = {
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
};
static const struct named_class posix_classes[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 127}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 31}, {127, 127}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

/* The class, or what lies between its (sorted) ranges. */
static enum sdx_status add_class(struct parser *p, const struct named_class *k, bool negated)
{
    uint32_t next = 0;
    for (int i = 0; i < k->count; i++) {
        if (!negated)
            SDX_TRY(add_range(p, k->ranges[i].first, k->ranges[i].last));
        else if (k->ranges[i].first > next)
            SDX_TRY(add_range(p, next, k->ranges[i].first - 1));
        next = k->ranges[i].last + 1;
    }
    return negated ? add_range(p, next, 0x10FFFF) : SDX_OK;
}

static const struct named_class *perl_class(char c, bool *negated)
{
    *negated = c >= 'A' && c <= 'Z';
    char lower = *negated ? (char)(c + 32) : c;
    for (int i = 0; i < SDX_COUNT_OF(perl_classes); i++)
        if (perl_classes[i].name[0] == lower) return &perl_classes[i];
    return NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* \xHH or \x{H...}, after the x. */
static enum sdx_status read_hex(struct parser *p, uint32_t *out)
{
    bool braces = peek(p) == '{';
    int digits = 0;
    *out = 0;
    if (braces) p->at++;
    while (more(p) && hex_digit(peek(p)) >= 0 && digits < (braces ? 8 : 2)) {
        *out = *out * 16 + (uint32_t)hex_digit(peek(p));
        p->at++;
        digits++;
    }
    if (digits == 0 || (!braces && digits != 2) || *out > 0x10FFFF || (braces && peek(p) != '}'))
        return bad(p, "a wrong \\x escape");
    if (braces) p->at++;
    return SDX_OK;
}

/* The character that an escape stands for; p->at is after the backslash. */
static enum sdx_status read_escape(struct parser *p, uint32_t *out)
{
    static const char letters[] = "ntrfva", values[] = "\n\t\r\f\v\a";
    char c = peek(p);
    const char *hit = c ? strchr(letters, c) : NULL;
    if (hit) {
        *out = (uint32_t)values[hit - letters];
        p->at++;
        return SDX_OK;
    }
    if (c == 'x') {
        p->at++;
        return read_hex(p, out);
    }
    if (c == '0') {
        *out = 0;
        for (int i = 0; i < 3 && peek(p) >= '0' && peek(p) <= '7'; i++)
            *out = *out * 8 + (uint32_t)(p->s.ptr[p->at++] - '0');
        return SDX_OK;
    }
    bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!more(p) || word) return bad(p, "an escape that is not known");
    *out = sdx_utf8_next(p->s, &p->at);
    return SDX_OK;
}

/* "[:name:]" inside a class. *done false: it is none. */
static enum sdx_status read_posix(struct parser *p, bool *done)
{
    *done = false;
    if (!looking_at(p, "[:")) return SDX_OK;
    size_t from = p->at + 2, end = from;
    while (end < p->s.len && p->s.ptr[end] != ':')
        end++;
    if (end + 1 >= p->s.len || p->s.ptr[end + 1] != ']') return SDX_OK;
    bool negated = p->s.ptr[from] == '^';
    struct sdx_str name = {p->s.ptr + from + negated, end - from - negated};
    for (int i = 0; i < SDX_COUNT_OF(posix_classes); i++)
        if (sdx_str_is(name, posix_classes[i].name)) {
            p->at = end + 2;
            *done = true;
            return add_class(p, &posix_classes[i], negated);
        }
    return bad(p, "an unknown class name");
}

/* One member of a class: a character (then *is_class is false) or a whole class. */
static enum sdx_status read_member(struct parser *p, uint32_t *c, bool *is_class)
{
    bool negated = false;
    SDX_TRY(read_posix(p, is_class));
    if (*is_class) return SDX_OK;
    if (peek(p) != '\\') {
        *c = sdx_utf8_next(p->s, &p->at);
        return SDX_OK;
    }
    p->at++;
    const struct named_class *k = perl_class(peek(p), &negated);
    if (!k) return read_escape(p, c);
    p->at++;
    *is_class = true;
    return add_class(p, k, negated);
}

static enum sdx_status parse_class(struct parser *p)
{
    struct re_inst inst = {.op = RE_CLASS, .fold = p->fold, .a = p->re->count_ranges};
    bool first = true;
    p->at++;
    if (peek(p) == '^') {
        inst.negated = true;
        p->at++;
    }
    while (more(p) && (first || peek(p) != ']')) {
        uint32_t from = 0, to = 0;
        bool is_class = false;
        first = false;
        SDX_TRY(read_member(p, &from, &is_class));
        if (is_class) continue;
        to = from;
        if (peek(p) == '-' && p->at + 1 < p->s.len && p->s.ptr[p->at + 1] != ']') {
            p->at++;
            SDX_TRY(read_member(p, &to, &is_class));
            if (is_class || to < from) return bad(p, "a wrong range");
        }
        SDX_TRY(add_range(p, from, to));
    }
    if (!more(p)) return bad(p, "a class without an end");
    p->at++;
    inst.b = p->re->count_ranges;
    return emit(p, inst);
}

/* ---- expressions ---- */

static enum sdx_status parse_alternatives(struct parser *p);

static enum sdx_status emit_char(struct parser *p, uint32_t c)
{
    return emit(p, (struct re_inst){.op = RE_CHAR, .fold = p->fold, .c = c});
}

static enum sdx_status parse_quoted(struct parser *p)
{
    while (more(p) && !looking_at(p, "\\E")) {
        p->atom = p->re->count;
        SDX_TRY(emit_char(p, sdx_utf8_next(p->s, &p->at)));
    }
    if (more(p)) p->at += 2;
    return SDX_OK;
}

static enum sdx_status parse_backslash(struct parser *p)
{
    bool negated = false;
    uint32_t c = 0;
    p->at++;
    switch (peek(p)) {
    case 'A': p->at++; return emit_empty(p, RE_TEXT_BEGIN);
    case 'z': p->at++; return emit_empty(p, RE_TEXT_END);
    case 'b': p->at++; return emit_empty(p, RE_WORD);
    case 'B': p->at++; return emit_empty(p, RE_NOT_WORD);
    case 'Q': p->at++; return parse_quoted(p);
    default: break;
    }
    const struct named_class *k = perl_class(peek(p), &negated);
    if (!k) {
        SDX_TRY(read_escape(p, &c));
        return emit_char(p, c);
    }
    p->at++;
    struct re_inst inst = {.op = RE_CLASS, .a = p->re->count_ranges};
    SDX_TRY(add_class(p, k, negated));
    inst.b = p->re->count_ranges;
    return emit(p, inst);
}

/* After "(?": flags, a name, or a group without capture. *group false: flags for the rest. */
static enum sdx_status parse_group_head(struct parser *p, bool *group)
{
    bool on = true;
    *group = true;
    if (looking_at(p, "P<") || peek(p) == '<') {
        while (more(p) && peek(p) != '>')
            p->at++;
        if (!more(p)) return bad(p, "a name without an end");
        p->at++;
        return SDX_OK;
    }
    for (; more(p); p->at++) {
        switch (peek(p)) {
        case 'i': p->fold = on; break;
        case 'm': p->multiline = on; break;
        case 's': p->dot_newline = on; break;
        case 'U': break; /* greediness does not matter to a full match */
        case '-': on = false; break;
        case ':': p->at++; return SDX_OK;
        case ')': *group = false; return SDX_OK;
        default: return bad(p, "an unknown flag or group");
        }
    }
    return bad(p, "a group without an end");
}

static enum sdx_status parse_group(struct parser *p)
{
    bool fold = p->fold, dot = p->dot_newline, multiline = p->multiline, group = true;
    if (++p->depth > DEPTH_MAX) return bad(p, "groups are too deep");
    p->at++;
    if (peek(p) == '?') {
        p->at++;
        SDX_TRY(parse_group_head(p, &group));
    }
    if (group) {
        SDX_TRY(parse_alternatives(p));
        p->fold = fold;
        p->dot_newline = dot;
        p->multiline = multiline;
    }
    if (peek(p) != ')') return bad(p, "a group without an end");
    p->at++;
    p->depth--;
    p->atom = -1;
    return SDX_OK;
}

static enum sdx_status parse_atom(struct parser *p)
{
    struct re_inst any = {.op = RE_CLASS, .negated = true, .a = p->re->count_ranges};
    switch (peek(p)) {
    case '(': return parse_group(p);
    case '[': return parse_class(p);
    case '\\': return parse_backslash(p);
    case '^': p->at++; return emit_empty(p, p->multiline ? RE_LINE_BEGIN : RE_TEXT_BEGIN);
    case '$': p->at++; return emit_empty(p, p->multiline ? RE_LINE_END : RE_TEXT_END);
    case '*':
    case '+':
    case '?': return bad(p, "nothing to repeat");
    case '.':
        p->at++;
        if (!p->dot_newline) SDX_TRY(add_range(p, '\n', '\n'));
        any.b = p->re->count_ranges;
        return emit(p, any);
    default: return emit_char(p, sdx_utf8_next(p->s, &p->at));
    }
}

/* "{n}", "{n,}", "{n,m}" at p->at. *done false: it is none, the brace is a literal. */
static bool read_counts(struct parser *p, int *least, int *most)
{
    size_t at = p->at + 1;
    int v[2] = {0, -1}, k = 0, digits = 0;
    for (; at < p->s.len && p->s.ptr[at] != '}'; at++) {
        char c = p->s.ptr[at];
        if (c == ',' && k == 0 && digits > 0) {
            k = 1;
        } else if (c >= '0' && c <= '9' && v[k] < 100000) {
            v[k] = (v[k] < 0 ? 0 : v[k]) * 10 + (c - '0');
            digits++;
        } else {
            return false;
        }
    }
    if (at >= p->s.len || digits == 0) return false;
    p->at = at + 1;
    *least = v[0];
    *most = k == 0 ? v[0] : v[1];
    return true;
}

/* Appends a copy of the instructions [from, to), whose jumps stay among themselves. */
static enum sdx_status copy_code(struct parser *p, int32_t from, int32_t to)
{
    int32_t shift = p->re->count - from;
    for (int32_t i = from; i < to; i++) {
        struct re_inst inst = p->re->program[i];
        if (inst.op == RE_SPLIT || inst.op == RE_JUMP) inst.a += shift;
        if (inst.op == RE_SPLIT) inst.b += shift;
        SDX_TRY(emit(p, inst));
    }
    return SDX_OK;
}

/* x*: 1: split 2, out; 2: x; jump 1 */
static enum sdx_status star(struct parser *p, int32_t from)
{
    SDX_TRY(insert(p, from, (struct re_inst){.op = RE_SPLIT}));
    SDX_TRY(emit(p, (struct re_inst){.op = RE_JUMP, .a = from}));
    p->re->program[from].a = from + 1;
    p->re->program[from].b = p->re->count;
    return SDX_OK;
}

static enum sdx_status optional(struct parser *p, int32_t from)
{
    SDX_TRY(insert(p, from, (struct re_inst){.op = RE_SPLIT}));
    p->re->program[from].a = from + 1;
    p->re->program[from].b = p->re->count;
    return SDX_OK;
}

/* The code from `from` to the end, `least` to `most` times (-1: without end). */
static enum sdx_status repeat(struct parser *p, int32_t from, int least, int most)
{
    int32_t length = p->re->count - from;
    if (least > REPEAT_MAX || most > REPEAT_MAX || (most >= 0 && most < least))
        return bad(p, "a wrong number of repetitions");
    if (most == 0) {
        p->re->count = from;
        return emit(p, (struct re_inst){.op = RE_JUMP, .a = from + 1});
    }
    if (least == 0 && most < 0) return star(p, from);
    int32_t template = from; /* the first copy stays as it is: at least one is there */
    for (int i = 1; i < least; i++)
        SDX_TRY(copy_code(p, template, template + length));
    int32_t at = p->re->count;
    if (least > 0 && most < 0) {
        SDX_TRY(copy_code(p, template, template + length));
        return star(p, at);
    }
    if (least == 0) { /* x? x? ...: copies first, as making one optional moves the code */
        for (int i = 1; i < most; i++)
            SDX_TRY(copy_code(p, template, template + length));
        for (int i = most - 1; i >= 0; i--)
            SDX_TRY(optional(p, from + i * length));
        return SDX_OK;
    }
    for (int i = least; i < most; i++)
        SDX_TRY(copy_code(p, template, template + length));
    for (int i = most - least - 1; i >= 0; i--)
        SDX_TRY(optional(p, at + i * length));
    return SDX_OK;
}

static enum sdx_status parse_repeated(struct parser *p)
{
    int32_t begin = p->re->count;
    p->atom = -1;
    SDX_TRY(parse_atom(p));
    int32_t from = p->atom > begin ? p->atom : begin;
    for (;;) {
        int least = 0, most = -1;
        char c = peek(p);
        if (c == '*' || c == '+' || c == '?') {
            least = c == '+';
            most = c == '?' ? 1 : -1;
            p->at++;
        } else if (c != '{' || !read_counts(p, &least, &most)) {
            return SDX_OK;
        }
        if (peek(p) == '?') p->at++; /* lazy */
        SDX_TRY(repeat(p, from, least, most));
    }
}

/* a|b: split 1, 2; 1: a; jump out; 2: b */
static enum sdx_status parse_alternatives(struct parser *p)
{
    int32_t from = p->re->count;
    while (more(p) && peek(p) != ')' && peek(p) != '|')
        SDX_TRY(parse_repeated(p));
    if (peek(p) != '|') return SDX_OK;
    p->at++;
    if (++p->depth > DEPTH_MAX * 4) return bad(p, "too many alternatives");
    SDX_TRY(insert(p, from, (struct re_inst){.op = RE_SPLIT}));
    int32_t jump = p->re->count;
    SDX_TRY(emit(p, (struct re_inst){.op = RE_JUMP}));
    p->re->program[from].a = from + 1;
    p->re->program[from].b = p->re->count;
    SDX_TRY(parse_alternatives(p));
    p->re->program[jump].a = p->re->count;
    p->depth--;
    return SDX_OK;
}

static bool in_class(const struct sdx_regex *re, const struct re_inst *in, uint32_t c)
{
    for (int32_t i = in->a; i < in->b; i++)
        if (c >= re->ranges[i].first && c <= re->ranges[i].last) return true;
    return false;
}

static bool accepts(const struct sdx_regex *re, const struct re_inst *in, uint32_t c)
{
    if (in->op == RE_CHAR)
        return c == in->c || (in->fold && sdx_utf8_lower(c) == sdx_utf8_lower(in->c));
    if (in->op != RE_CLASS) return false;
    bool hit = in_class(re, in, c);
    if (!hit && in->fold)
        hit = in_class(re, in, sdx_utf8_lower(c)) || in_class(re, in, sdx_utf8_upper(c));
    return hit != in->negated;
}

static bool is_same_test(const struct re_inst *a, const struct re_inst *b)
{
    return (a->op == RE_CHAR || a->op == RE_CLASS) && a->op == b->op && a->negated == b->negated &&
           a->fold == b->fold && a->a == b->a && a->b == b->b && a->c == b->c;
}

/* [class], [class]{n}, [class]+ and [class]{n,}, as tokenizers have them, need no threads. */
static void find_run(struct sdx_regex *re)
{
    const struct re_inst *in = re->program;
    int32_t n = 0;
    while (n < re->count && is_same_test(&in[0], &in[n]))
        n++;
    const bool exact = n + 1 == re->count;
    re->or_more = n + 4 == re->count && in[n].op == RE_SPLIT && in[n].a == n + 1 &&
                  in[n].b == n + 3 && is_same_test(&in[0], &in[n + 1]) && in[n + 2].op == RE_JUMP &&
                  in[n + 2].a == n;
    re->times = exact || re->or_more ? n : 0;
    for (uint32_t c = 0; re->times && c < sizeof re->ascii; c++)
        re->ascii[c] = accepts(re, &in[0], c);
}

enum sdx_status sdx_regex_create(struct sdx_context *cx, struct sdx_arena *arena,
                                 struct sdx_str pattern, struct sdx_regex **out)
{
    struct parser p = {.cx = cx, .arena = arena, .s = pattern};
    p.re = sdx_arena_alloc(arena, sizeof(*p.re));
    if (!p.re) return SDX_FAIL_MEMORY(cx);
    SDX_TRY(parse_alternatives(&p));
    if (more(&p)) return bad(&p, "a closing parenthesis too many");
    SDX_TRY(emit(&p, (struct re_inst){.op = RE_ACCEPT}));
    find_run(p.re);
    *out = p.re;
    return SDX_OK;
}

/* ---- matching ---- */

struct threads {
    int32_t *list, count;
};

struct matcher {
    const struct sdx_regex *re;
    struct sdx_str text;
    struct threads now, next;
    uint32_t *mark, generation; /* mark[i] == generation: instruction i is in the list */
    int32_t *todo;
};

size_t sdx_regex_scratch(const struct sdx_regex *re)
{
    return (size_t)(re->count + 1) * 5 * sizeof(int32_t) + 64;
}

static bool is_word(const struct matcher *m, size_t at, bool before)
{
    if (before ? at == 0 : at >= m->text.len) return false;
    char c = m->text.ptr[before ? at - 1 : at];
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(const struct matcher *m, int32_t where, size_t at)
{
    bool word = is_word(m, at, true) != is_word(m, at, false);
    switch (where) {
    case RE_TEXT_BEGIN: return at == 0;
    case RE_TEXT_END: return at == m->text.len;
    case RE_LINE_BEGIN: return at == 0 || m->text.ptr[at - 1] == '\n';
    case RE_LINE_END: return at == m->text.len || m->text.ptr[at] == '\n';
    case RE_WORD: return word;
    default: return !word;
    }
}

/* Adds the instruction and all that follow it without reading. todo: at most two for each. */
static void add_thread(struct matcher *m, struct threads *t, int32_t pc, size_t at)
{
    int32_t depth = 0;
    m->todo[depth++] = pc;
    while (depth > 0) {
        pc = m->todo[--depth];
        if (m->mark[pc] == m->generation) continue;
        m->mark[pc] = m->generation;
        const struct re_inst *in = &m->re->program[pc];
        switch (in->op) {
        case RE_JUMP: m->todo[depth++] = in->a; break;
        case RE_SPLIT:
            m->todo[depth++] = in->b;
            m->todo[depth++] = in->a;
            break;
        case RE_EMPTY:
            if (holds(m, in->a, at)) m->todo[depth++] = pc + 1;
            break;
        default: t->list[t->count++] = pc; break;
        }
    }
}

/* Steps through the text from `start` while some thread lives; each time one has matched up to
 * *end, longer matches replace shorter ones. false: none does. */
static bool walk(struct matcher *m, size_t start, size_t *end)
{
    size_t n = (size_t)m->re->count + 1;
    bool found = false;
    memset(m->mark, 0, n * sizeof(*m->mark));
    m->generation = 1;
    m->now.count = 0;
    add_thread(m, &m->now, 0, start);
    for (size_t at = start; m->now.count > 0;) {
        for (int32_t i = 0; i < m->now.count; i++)
            if (m->re->program[m->now.list[i]].op == RE_ACCEPT) {
                found = true;
                *end = at;
            }
        if (at >= m->text.len) break;
        uint32_t c = sdx_utf8_next(m->text, &at);
        m->next.count = 0;
        m->generation++;
        for (int32_t i = 0; i < m->now.count; i++)
            if (accepts(m->re, &m->re->program[m->now.list[i]], c))
                add_thread(m, &m->next, m->now.list[i] + 1, at);
        struct threads t = m->now;
        m->now = m->next;
        m->next = t;
    }
    return found;
}

static struct matcher matcher_of(const struct sdx_regex *re, struct sdx_str text, void *scratch)
{
    size_t n = (size_t)re->count + 1;
    int32_t *memory = scratch;
    struct matcher m = {.re = re, .text = text, .now = {memory, 0}, .next = {memory + n, 0}};
    m.mark = (uint32_t *)memory + 2 * n;
    m.todo = memory + 3 * n;
    return m;
}

bool sdx_regex_match(const struct sdx_regex *re, struct sdx_str text, void *scratch)
{
    struct matcher m = matcher_of(re, text, scratch);
    size_t end;
    return walk(&m, 0, &end) && end == text.len;
}

/* The same where the pattern is one test again and again. */
static bool find_times(const struct sdx_regex *re, struct sdx_str text, size_t from, size_t *begin,
                       size_t *end)
{
    int64_t n = 0;
    *begin = from;
    for (size_t at = from; at < text.len;) {
        const unsigned char byte = (unsigned char)text.ptr[at];
        uint32_t c = byte;
        if (byte < sizeof re->ascii)
            at++;
        else
            c = sdx_utf8_next(text, &at);
        if (c < sizeof re->ascii ? re->ascii[c] : accepts(re, re->program, c)) {
            *end = at;
            if (++n == re->times && !re->or_more) return true;
            continue;
        }
        if (n >= re->times) return true;
        n = 0;
        *begin = at;
    }
    return n >= re->times;
}

bool sdx_regex_find(const struct sdx_regex *re, struct sdx_str text, size_t from, void *scratch,
                    size_t *begin, size_t *end)
{
    if (re->times) return find_times(re, text, from, begin, end);
    struct matcher m = matcher_of(re, text, scratch);
    for (size_t at = from;;) {
        *begin = at;
        if (walk(&m, at, end)) return true;
        if (at >= text.len) return false;
        (void)sdx_utf8_next(text, &at);
    }
}
