/* SPDX-License-Identifier: Apache-2.0
 * NumPy's .npy files (numpy.lib.format): the header is a Python dictionary of three known members,
 * read by a parser for just that. */
#include "tensor/npy.h"

#include <stdio.h>

#include "base/file.h"
#include "tensor/npy_internal.h"

enum { NPY_PREFIX = 6, NPY_ALIGN = 64 };
static const unsigned char magic[NPY_PREFIX] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct npy_type {
    int dtype;
    size_t size; /* bytes an element takes in the file */
    bool swapped, ucs4;
};

struct npy_header {
    struct npy_type type;
    bool fortran;
    int rank;
    int64_t dims[SDX_RANK_MAX];
};

/* ---- header ---- */

struct parser {
    struct sdx_context *cx;
    const char *at, *end;
};

static enum sdx_status fail_header(const struct parser *p, const char *expected)
{
    struct sdx_str rest = {p->at, (size_t)(p->end - p->at)};
    if (rest.len > 20) rest.len = 20;
    return SDX_FAIL(p->cx, SDX_BAD_DATA, "npy: header has \"%.*s\", expected %s", SDX_STR_ARG(rest),
                    expected);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n'))
        p->at++;
}

static bool accept(struct parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static bool parse_quoted(struct parser *p, struct sdx_str *out)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    char quote = *p->at++;
    const char *begin = p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\')
        p->at++;
    if (p->at == p->end || *p->at != quote) return false;
    *out = (struct sdx_str){begin, (size_t)(p->at++ - begin)};
    return true;
}

static enum sdx_status parse_shape(struct parser *p, struct npy_header *h)
{
    if (!accept(p, '(')) return fail_header(p, "a shape in parentheses");
    h->rank = 0;
    while (!accept(p, ')')) {
        const char *begin = p->at;
        while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
            p->at++;
        struct sdx_str digits = {begin, (size_t)(p->at - begin)};
        if (p->at < p->end && *p->at == 'L') p->at++; /* Python 2 */
        if (h->rank == SDX_RANK_MAX)
            return SDX_FAIL(p->cx, SDX_BAD_DATA, "npy: rank is over %d", SDX_RANK_MAX);
        if (!sdx_parse_i64(digits, &h->dims[h->rank])) return fail_header(p, "a length");
        h->rank++;
        if (accept(p, ',')) continue;
        if (!accept(p, ')')) return fail_header(p, "a comma or )");
        break;
    }
    return SDX_OK;
}

/* "<f4": byte order, kind, bytes. */
static enum sdx_status parse_type(struct parser *p, struct sdx_str text, struct npy_type *type)
{
    static const struct {
        char kind;
        uint8_t size, dtype;
    } known[] = {
        {'f', 2, SDX_F16}, {'f', 4, SDX_F32},   {'f', 8, SDX_F64}, {'i', 1, SDX_I8},
        {'i', 2, SDX_I16}, {'i', 4, SDX_I32},   {'i', 8, SDX_I64}, {'u', 1, SDX_U8},
        {'u', 2, SDX_U16}, {'u', 4, SDX_U32},   {'u', 8, SDX_U64}, {'b', 1, SDX_BOOL},
        {'c', 8, SDX_C64}, {'c', 16, SDX_C128},
    };
    int64_t size = 0;
    if (text.len >= 2 && text.ptr[1] == 'O')
        return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED,
                        "npy: arrays of Python objects are not supported");
    if (text.len < 3 || !strchr("<>|=", text.ptr[0]) ||
        !sdx_parse_i64((struct sdx_str){text.ptr + 2, text.len - 2}, &size) || size < 0)
        return SDX_FAIL(p->cx, SDX_BAD_DATA, "npy: element type '%.*s' is not valid",
                        SDX_STR_ARG(text));
    type->swapped = text.ptr[0] == '>';
    for (int i = 0; i < SDX_COUNT_OF(known); i++)
        if (known[i].kind == text.ptr[1] && known[i].size == size) {
            type->dtype = known[i].dtype;
            type->size = (size_t)size;
            return SDX_OK;
        }
    if ((text.ptr[1] == 'U' || text.ptr[1] == 'S') && size > 0 && size < INT32_MAX) {
        type->dtype = SDX_STRING;
        type->ucs4 = text.ptr[1] == 'U';
        type->size = (size_t)size * (type->ucs4 ? 4 : 1);
        return SDX_OK;
    }
    return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "npy: element type '%.*s' is not supported%s",
                    SDX_STR_ARG(text),
                    text.ptr[1] == 'V' ? " (the file does not say which type it was)" : "");
}

static enum sdx_status parse_header(struct parser *p, struct npy_header *h)
{
    bool has_type = false, has_order = false, has_shape = false;
    if (!accept(p, '{')) return fail_header(p, "a dictionary");
    while (!accept(p, '}')) {
        struct sdx_str key, text;
        if (!parse_quoted(p, &key) || !accept(p, ':')) return fail_header(p, "a key");
        if (sdx_str_is(key, "descr")) {
            skip_space(p);
            if (p->at < p->end && *p->at == '[')
                return SDX_FAIL(p->cx, SDX_NOT_SUPPORTED, "npy: records are not supported");
            if (!parse_quoted(p, &text)) return fail_header(p, "an element type in quotes");
            SDX_TRY(parse_type(p, text, &h->type));
            has_type = true;
        } else if (sdx_str_is(key, "fortran_order")) {
            h->fortran = accept_word(p, "True");
            if (!h->fortran && !accept_word(p, "False")) return fail_header(p, "True or False");
            has_order = true;
        } else if (sdx_str_is(key, "shape")) {
            SDX_TRY(parse_shape(p, h));
            has_shape = true;
        } else {
            return SDX_FAIL(p->cx, SDX_BAD_DATA, "npy: header has unknown member \"%.*s\"",
                            SDX_STR_ARG(key));
        }
        if (accept(p, ',')) continue;
        if (!accept(p, '}')) return fail_header(p, "a comma or }");
        break;
    }
    skip_space(p);
    if (p->at != p->end) return fail_header(p, "its end");
    if (!has_type || !has_order || !has_shape)
        return SDX_FAIL(p->cx, SDX_BAD_DATA, "npy: header has no %s",
                        !has_type    ? "descr"
                        : !has_order ? "fortran_order"
                                     : "shape");
    return SDX_OK;
}

/* ---- elements ---- */

/* Walks the elements of a shape in C order; `place` is the element's index in the file. */
struct walk {
    int rank;
    const int64_t *dims;
    int64_t stride[SDX_RANK_MAX], index[SDX_RANK_MAX];
    int64_t place;
};

static void walk_begin(struct walk *w, const struct npy_header *h)
{
    *w = (struct walk){.rank = h->rank, .dims = h->dims};
    int64_t stride = 1;
    for (int k = 0; k < h->rank; k++) {
        int d = h->fortran ? k : h->rank - 1 - k;
        w->stride[d] = stride;
        stride *= h->dims[d];
    }
}

static void walk_next(struct walk *w)
{
    for (int d = w->rank - 1; d >= 0; d--) {
        w->place += w->stride[d];
        if (++w->index[d] < w->dims[d]) return;
        w->place -= w->stride[d] * w->dims[d];
        w->index[d] = 0;
    }
}

static void copy_element(unsigned char *to, const unsigned char *from, const struct npy_type *type)
{
    size_t unit = sdx_dtype_is_complex(type->dtype) ? type->size / 2 : type->size;
    if (!type->swapped) {
        memcpy(to, from, type->size);
        return;
    }
    for (size_t i = 0; i < type->size; i++)
        to[i] = from[i / unit * unit + unit - 1 - i % unit];
}

static enum sdx_status read_numbers(struct sdx_context *cx, const struct npy_header *h,
                                    const unsigned char *from, struct sdx_tensor **out)
{
    SDX_TRY(sdx_tensor_new(cx, h->type.dtype, h->rank, h->dims, out));
    unsigned char *to = (*out)->data;
    size_t size = h->type.size;
    if (!h->type.swapped && (!h->fortran || h->rank < 2)) {
        if ((*out)->bytes > 0) memcpy(to, from, (*out)->bytes);
    } else {
        struct walk w;
        walk_begin(&w, h);
        for (int64_t i = 0; i < (*out)->count; i++, walk_next(&w))
            copy_element(to + (size_t)i * size, from + (size_t)w.place * size, &h->type);
    }
    if (h->type.dtype == SDX_BOOL)
        for (int64_t i = 0; i < (*out)->count; i++)
            to[i] = to[i] != 0;
    return SDX_OK;
}

static uint32_t ucs4_at(const unsigned char *at, bool swapped)
{
    return swapped ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                   : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Writes 1 to 4 bytes; 0: not a Unicode scalar value. */
static int put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* One text without its trailing NULs. */
static enum sdx_status read_string(struct sdx_context *cx, struct sdx_arena *arena,
                                   const struct npy_type *type, const unsigned char *from,
                                   struct sdx_str *out)
{
    size_t unit = type->ucs4 ? 4 : 1, n = type->size / unit;
    while (n > 0 && (type->ucs4 ? ucs4_at(from + (n - 1) * 4, false) : from[n - 1]) == 0)
        n--;
    *out = (struct sdx_str){(const char *)from, n};
    if (!type->ucs4) return SDX_OK;
    size_t length = 0, bytes = 0;
    char *text = sdx_mul_size(n, 4, &bytes) ? sdx_arena_alloc(arena, bytes) : NULL;
    if (!text) return SDX_FAIL_MEMORY(cx);
    for (size_t i = 0; i < n; i++) {
        uint32_t c = ucs4_at(from + 4 * i, type->swapped);
        int k = put_utf8(text + length, c);
        if (k == 0) return SDX_FAIL(cx, SDX_BAD_DATA, "npy: %u is not a character", (unsigned)c);
        length += (size_t)k;
    }
    *out = (struct sdx_str){text, length};
    return SDX_OK;
}

static enum sdx_status read_strings(struct sdx_context *cx, const struct npy_header *h,
                                    int64_t count, const unsigned char *from,
                                    struct sdx_tensor **out)
{
    struct sdx_arena arena;
    struct walk w;
    sdx_arena_init(&arena, cx->mem, SDX_MEM_TENSOR);
    struct sdx_str *texts = sdx_arena_array(&arena, (size_t)count, sizeof *texts);
    enum sdx_status status = texts ? SDX_OK : SDX_FAIL_MEMORY(cx);
    walk_begin(&w, h);
    for (int64_t i = 0; i < count && status == SDX_OK; i++, walk_next(&w))
        status =
            read_string(cx, &arena, &h->type, from + (size_t)w.place * h->type.size, &texts[i]);
    if (status == SDX_OK) status = sdx_tensor_new_strings(cx, h->rank, h->dims, texts, out);
    sdx_arena_deinit(&arena);
    return status;
}

enum sdx_status sdx_npy_read(struct sdx_context *cx, const void *bytes, size_t size,
                             struct sdx_tensor **out)
{
    const unsigned char *at = bytes;
    struct npy_header h = {0};
    *out = NULL;
    if (size < 10 || memcmp(at, magic, NPY_PREFIX) != 0)
        return SDX_FAIL(cx, SDX_BAD_DATA, "npy: the file does not begin as a .npy file");
    int major = at[6];
    if (major < 1 || major > 3)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "npy: format version %d, expected 1 to 3", major);
    size_t prefix = major == 1 ? 10 : 12;
    size_t length = size < prefix ? SIZE_MAX : (size_t)at[8] | (size_t)at[9] << 8;
    if (major > 1 && size >= prefix) length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (size < prefix || length > size - prefix)
        return SDX_FAIL(cx, SDX_BAD_DATA, "npy: the file ends within its header");
    struct parser p = {cx, (const char *)at + prefix, (const char *)at + prefix + length};
    SDX_TRY(parse_header(&p, &h));
    int64_t count = 0;
    size_t needed = 0, left = size - prefix - length;
    char text[256];
    if (!sdx_dims_count(h.dims, h.rank, &count) ||
        !sdx_mul_size((size_t)count, h.type.size, &needed) || needed != left)
        return SDX_FAIL(cx, SDX_BAD_DATA,
                        "npy: %zu bytes of data do not fit shape %s of %zu bytes "
                        "an element",
                        left, sdx_dims_describe(h.dims, h.rank, text, sizeof text), h.type.size);
    at += prefix + length;
    return h.type.dtype == SDX_STRING ? read_strings(cx, &h, count, at, out)
                                      : read_numbers(cx, &h, at, out);
}

enum sdx_status sdx_npy_load(struct sdx_context *cx, const char *path, struct sdx_tensor **out)
{
    struct sdx_file_map map;
    *out = NULL;
    SDX_TRY(sdx_file_map_open(cx, path, &map));
    enum sdx_status status = sdx_npy_read(cx, map.data, map.size, out);
    sdx_file_map_close(&map);
    return status == SDX_OK ? SDX_OK : sdx_fail_where(cx, "%s", path);
}

/* ---- writing ---- */

/* Next character of UTF-8 text that was checked. */
static uint32_t next_character(const char **at)
{
    const unsigned char *p = (const unsigned char *)*at;
    int more = p[0] < 0x80 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? p[0] : p[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++)
        c = c << 6 | (p[i] & 63u);
    *at += 1 + more;
    return c;
}

static enum sdx_status longest_string(struct sdx_context *cx, const struct sdx_tensor *tensor,
                                      size_t *out)
{
    const struct sdx_str *texts = tensor->data;
    *out = 1;
    for (int64_t i = 0; i < tensor->count; i++) {
        size_t n = 0;
        if (!sdx_str_is_utf8(texts[i]))
            return SDX_FAIL(cx, SDX_NOT_SUPPORTED,
                            "npy: text %lld is not UTF-8 without NUL, and cannot be stored",
                            (long long)i);
        for (size_t k = 0; k < texts[i].len; k++)
            n += ((unsigned char)texts[i].ptr[k] & 0xc0) != 0x80;
        if (n > *out) *out = n;
    }
    return SDX_OK;
}

static enum sdx_status put_strings(const struct sdx_tensor *tensor, size_t longest,
                                   struct sdx_npy_sink *to)
{
    const struct sdx_str *texts = tensor->data;
    for (int64_t i = 0; i < tensor->count; i++) {
        const char *at = texts[i].ptr, *end = at + texts[i].len;
        for (size_t k = 0; k < longest; k++) {
            uint32_t c = at < end ? next_character(&at) : 0;
            const unsigned char bytes[4] = {(unsigned char)c, (unsigned char)(c >> 8),
                                            (unsigned char)(c >> 16), 0};
            SDX_TRY(to->put(to, bytes, sizeof bytes));
        }
    }
    return SDX_OK;
}

static const char *descr_of(int dtype)
{
    switch (dtype) {
    case SDX_F16: return "<f2";
    case SDX_F32: return "<f4";
    case SDX_F64: return "<f8";
    case SDX_I8: return "|i1";
    case SDX_I16: return "<i2";
    case SDX_I32: return "<i4";
    case SDX_I64: return "<i8";
    case SDX_U8: return "|u1";
    case SDX_U16: return "<u2";
    case SDX_U32: return "<u4";
    case SDX_U64: return "<u8";
    case SDX_BOOL: return "|b1";
    case SDX_C64: return "<c8";
    case SDX_C128: return "<c16";
    default: return NULL;
    }
}

enum sdx_status sdx_npy_put(struct sdx_context *cx, const struct sdx_tensor *tensor,
                            struct sdx_npy_sink *to)
{
    char shape[SDX_RANK_MAX * 21 + 3], header[sizeof shape + 192];
    size_t longest = 0, at = 0;
    if (tensor->kind != SDX_KIND_TENSOR)
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "npy: a file holds one tensor, not kind %d",
                        (int)tensor->kind);
    char descr[32];
    const char *known = descr_of(tensor->dtype);
    if (tensor->dtype == SDX_STRING) {
        SDX_TRY(longest_string(cx, tensor, &longest));
        snprintf(descr, sizeof descr, "<U%zu", longest);
    } else if (known) {
        snprintf(descr, sizeof descr, "%s", known);
    } else {
        return SDX_FAIL(cx, SDX_NOT_SUPPORTED, "npy: the format has no element type %s",
                        sdx_dtype_short_name(tensor->dtype));
    }
    shape[0] = 0;
    for (int i = 0; i < tensor->rank; i++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%lld", i ? ", " : "",
                               (long long)tensor->dims[i]);
    int n = snprintf(header + 10, sizeof header - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", descr, shape,
                     tensor->rank == 1 ? "," : "");
    size_t total = 10 + (size_t)n + 1, padded = (total + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memcpy(header, magic, NPY_PREFIX);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)((padded - 10) & 255);
    header[9] = (char)((padded - 10) >> 8);
    memset(header + total - 1, ' ', padded - total);
    header[padded - 1] = '\n';
    SDX_TRY(to->put(to, header, padded));
    return tensor->dtype == SDX_STRING ? put_strings(tensor, longest, to)
                                       : to->put(to, tensor->data, tensor->bytes);
}

struct file_sink {
    struct sdx_npy_sink sink;
    struct sdx_file_writer file;
};

static enum sdx_status put_to_file(struct sdx_npy_sink *sink, const void *bytes, size_t size)
{
    struct file_sink *to = (struct file_sink *)sink;
    return size > 0 ? sdx_file_writer_put(&to->file, bytes, size) : SDX_OK;
}

enum sdx_status sdx_npy_save(struct sdx_context *cx, const char *path,
                             const struct sdx_tensor *tensor)
{
    struct file_sink to = {.sink.put = put_to_file};
    SDX_TRY(sdx_file_writer_open(cx, path, &to.file));
    enum sdx_status status = sdx_npy_put(cx, tensor, &to.sink);
    if (status == SDX_OK) return sdx_file_writer_close(&to.file);
    sdx_file_writer_abandon(&to.file);
    return sdx_fail_where(cx, "%s", path);
}
