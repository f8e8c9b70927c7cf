/* SPDX-License-Identifier: Apache-2.0
 * Tensors made from text or from a fixed seed, and values printed as text. */
#include "args.h"
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64*, Vigna 2016. */
static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

/* In [-1, 1). */
static double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-52 - 1.0;
}

/* bfloat16 is the upper half of a float, float16 an own layout; both rounded to nearest even. */
static uint16_t bf16_of(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t f16_of(float value)
{
    float size = fabsf(value);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return 0x7e00;
    if (size >= 65520.0f) return sign | 0x7c00;
    int exponent = 0;
    frexpf(size, &exponent);
    if (exponent < -13) exponent = -13;
    /* 11 bits of the value count; carries run into the exponent as they should. */
    long units = lrintf(ldexpf(size, 11 - exponent));
    return (uint16_t)(sign | (units + ((long)(exponent + 13) << 10)));
}

/* Stores a floating element; false for a type that is not one of float, double, float16, bfloat16.
 */
static bool store_float(sdx_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case SDX_F32: ((float *)data)[i] = (float)value; return true;
    case SDX_F64: ((double *)data)[i] = value; return true;
    case SDX_F16: ((uint16_t *)data)[i] = f16_of((float)value); return true;
    case SDX_BF16: ((uint16_t *)data)[i] = bf16_of((float)value); return true;
    default: return false;
    }
}

/* Stores an integer or boolean; false for another type or when it does not fit. */
static bool store_integer(sdx_dtype dtype, void *data, int64_t i, int64_t value)
{
    switch (dtype) {
    case SDX_I8: ((int8_t *)data)[i] = (int8_t)value; return value == (int8_t)value;
    case SDX_U8: ((uint8_t *)data)[i] = (uint8_t)value; return value == (uint8_t)value;
    case SDX_I16: ((int16_t *)data)[i] = (int16_t)value; return value == (int16_t)value;
    case SDX_U16: ((uint16_t *)data)[i] = (uint16_t)value; return value == (uint16_t)value;
    case SDX_I32: ((int32_t *)data)[i] = (int32_t)value; return value == (int32_t)value;
    case SDX_U32: ((uint32_t *)data)[i] = (uint32_t)value; return value == (uint32_t)value;
    case SDX_I64: ((int64_t *)data)[i] = value; return true;
    case SDX_U64: ((uint64_t *)data)[i] = (uint64_t)value; return value >= 0;
    case SDX_BOOL: ((uint8_t *)data)[i] = value != 0; return value == 0 || value == 1;
    default: return false;
    }
}

/* Random bytes for packed integers; for small floats only patterns that are numbers. */
static void fill_bytes(uint8_t *data, size_t size, sdx_dtype dtype, uint64_t *state)
{
    bool small_float = dtype >= SDX_F8E4M3FN && dtype <= SDX_F8E5M2FNUZ;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(random_next(state) >> 56);
        data[i] = dtype == SDX_F8E8M0 ? 127 : small_float ? byte & 0xb7 : byte;
    }
}

static void fill_random(sdx_tensor *value)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    sdx_dtype dtype = sdx_tensor_dtype(value);
    int64_t count = sdx_tensor_count(value);
    void *data = sdx_tensor_data(value);
    if (dtype == SDX_C64 || dtype == SDX_C128) {
        dtype = dtype == SDX_C64 ? SDX_F32 : SDX_F64;
        count *= 2;
    }
    int bits = sdx_dtype_bits(dtype);
    bool wide = bits > 16 || dtype == SDX_BOOL;
    bool floats = dtype == SDX_F32 || dtype == SDX_F64 || dtype == SDX_F16 || dtype == SDX_BF16;
    if (floats)
        for (int64_t i = 0; i < count; i++)
            store_float(dtype, data, i, random_unit(&state));
    else if (wide)
        for (int64_t i = 0; i < count; i++)
            store_integer(dtype, data, i, (int64_t)(random_next(&state) >> 63));
    else
        fill_bytes(data, sdx_tensor_bytes(value), dtype, &state);
}

static int create(const struct sdx_cli *cli, const sdx_value_info *info,
                  const struct sdx_cli_shape *shape, sdx_tensor **value)
{
    if (sdx_tensor_create(cli->cx, info->dtype, shape->rank, shape->dims, value) == SDX_OK)
        return SDX_CLI_OK;
    return sdx_cli_fail(cli, "input '%s': %s", info->name, sdx_error(cli->cx));
}

int sdx_cli_value_fill(const struct sdx_cli *cli, const sdx_value_info *info,
                       const struct sdx_cli_shape *shape, bool random, sdx_tensor **value)
{
    if (!shape->known)
        return sdx_cli_fail(cli, "input '%s' is %s: its shape is open, give --shape %s=...",
                            info->name, info->type, info->name);
    struct sdx_cli_shape full = *shape;
    for (int k = 0; k < full.rank; k++)
        if (full.dims[k] < 0) full.dims[k] = 1;
    int rc = create(cli, info, &full, value);
    if (rc == SDX_CLI_OK && random && info->dtype != SDX_STRING) fill_random(*value);
    return rc;
}

/* ---- from text ---- */

/* Cuts `text` (written over) into the pieces between commas; returns their number. */
static int64_t cut(char *text, const char **pieces, int64_t room)
{
    static const char skipped[] = " \t\n[]";
    int64_t count = 0;
    for (char *at = text; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma = '\0';
        at += strspn(at, skipped);
        size_t length = strlen(at);
        while (length > 0 && strchr(skipped, at[length - 1]) != NULL)
            at[--length] = '\0';
        if (count < room) pieces[count] = at;
        count++;
        at = comma != NULL ? comma + 1 : NULL;
    }
    return count;
}

static bool store_text(sdx_tensor *value, int64_t i, const char *text)
{
    sdx_dtype dtype = sdx_tensor_dtype(value);
    void *data = sdx_tensor_data(value);
    char *end = NULL;
    errno = 0;
    double number = strtod(text, &end);
    if (end != text && *end == '\0' && store_float(dtype, data, i, number)) return true;
    if (dtype == SDX_BOOL && strcmp(text, "true") == 0) return store_integer(dtype, data, i, 1);
    if (dtype == SDX_BOOL && strcmp(text, "false") == 0) return store_integer(dtype, data, i, 0);
    errno = 0;
    if (dtype == SDX_U64 && *text != '-') {
        unsigned long long whole = strtoull(text, &end, 10);
        ((uint64_t *)data)[i] = whole;
        return end != text && *end == '\0' && errno == 0;
    }
    long long whole = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && store_integer(dtype, data, i, whole);
}

/* The shape for `count` values: an open length takes what is left; a shape that is wholly open
 * becomes [count]. One value fits everything. */
static bool settle_shape(const struct sdx_cli_shape *shape, int64_t count,
                         struct sdx_cli_shape *full)
{
    *full = *shape;
    if (!shape->known) {
        *full = (struct sdx_cli_shape){.known = true, .rank = 1, .dims = {count}};
        return true;
    }
    int64_t known = 1;
    for (int k = 0; k < full->rank; k++)
        if (full->dims[k] >= 0) known *= full->dims[k];
    for (int k = 0, open = full->open; k < full->rank; k++)
        if (full->dims[k] < 0) full->dims[k] = --open > 0 || known == 0 ? 1 : count / known;
    if (full->open > 0) return known > 0 && count % known == 0;
    return count == known || count == 1;
}

int sdx_cli_value_parse(const struct sdx_cli *cli, const struct sdx_cli_verb *verb,
                        const sdx_value_info *info, const struct sdx_cli_shape *shape,
                        const char *text, sdx_tensor **value)
{
    int64_t room = (int64_t)strlen(text) + 1;
    char *copy = strdup(text);
    const char **pieces = calloc((size_t)room, sizeof *pieces);
    if (copy == NULL || pieces == NULL) sdx_cli_no_memory();
    int64_t count = cut(copy, pieces, room);
    if (info->dtype != SDX_STRING && count == 1 && *pieces[0] == '\0') count = 0;
    struct sdx_cli_shape full;
    int rc = SDX_CLI_OK;
    if (!settle_shape(shape, count, &full)) {
        rc = sdx_cli_usage(verb, "input '%.100s' is %.150s: %lld values do not fill it", info->name,
                           info->type, (long long)count);
    } else if (info->dtype == SDX_STRING) {
        int64_t total = 1;
        for (int k = 0; k < full.rank; k++)
            total *= full.dims[k];
        if (total != count)
            rc = sdx_cli_usage(verb, "input '%.100s' takes %lld strings, not %lld", info->name,
                               (long long)total, (long long)count);
        else if (sdx_tensor_create_strings(cli->cx, full.rank, full.dims, pieces, NULL, value))
            rc = sdx_cli_fail(cli, "input '%s': %s", info->name, sdx_error(cli->cx));
    } else {
        rc = create(cli, info, &full, value);
        int64_t total = rc == SDX_CLI_OK ? sdx_tensor_count(*value) : 0;
        for (int64_t i = 0; i < total && rc == SDX_CLI_OK; i++) {
            const char *piece = pieces[count == 1 ? 0 : i];
            if (!store_text(*value, i, piece))
                rc = sdx_cli_usage(verb, "input '%.100s': '%.100s' is not a value of type %s",
                                   info->name, piece, sdx_dtype_name(info->dtype));
        }
    }
    if (rc != SDX_CLI_OK) {
        sdx_tensor_destroy(*value);
        *value = NULL;
    }
    free(copy);
    free(pieces);
    return rc;
}

/* ---- to text ---- */

char *sdx_cli_value_text(const sdx_tensor *value, int64_t i)
{
    char *text = NULL;
    int rc = 0;
    size_t length = 0;
    const char *string = NULL;
    switch (sdx_tensor_dtype(value)) {
    case SDX_STRING:
        string = sdx_tensor_string(value, i, &length);
        text = strndup(string != NULL ? string : "", length);
        if (text == NULL) sdx_cli_no_memory();
        string = text;
        text = sdx_cli_clean(string);
        free((void *)(uintptr_t)string);
        return text;
    case SDX_BOOL: rc = asprintf(&text, "%s", sdx_tensor_i64(value, i) ? "true" : "false"); break;
    case SDX_C64: {
        const float *pair = (const float *)sdx_tensor_const_data(value) + 2 * i;
        rc = asprintf(&text, "%.9g%+.9gi", (double)pair[0], (double)pair[1]);
        break;
    }
    case SDX_C128: {
        const double *pair = (const double *)sdx_tensor_const_data(value) + 2 * i;
        rc = asprintf(&text, "%.17g%+.17gi", pair[0], pair[1]);
        break;
    }
    case SDX_F64: rc = asprintf(&text, "%.17g", sdx_tensor_f64(value, i)); break;
    case SDX_U64: rc = asprintf(&text, "%llu", (unsigned long long)sdx_tensor_i64(value, i)); break;
    case SDX_I8:
    case SDX_U8:
    case SDX_I16:
    case SDX_U16:
    case SDX_I32:
    case SDX_U32:
    case SDX_I64:
    case SDX_I4:
    case SDX_U4:
    case SDX_I2:
    case SDX_U2: rc = asprintf(&text, "%lld", (long long)sdx_tensor_i64(value, i)); break;
    default: rc = asprintf(&text, "%.9g", sdx_tensor_f64(value, i));
    }
    if (rc < 0) sdx_cli_no_memory();
    return text;
}

char *sdx_cli_type_text(const sdx_tensor *value)
{
    static const char *const kinds[] = {"nothing",  "tensor", "sequence",
                                        "optional", "map",    "sparse"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) sdx_cli_no_memory();
    sdx_kind kind = sdx_tensor_kind(value);
    if (kind == SDX_KIND_TENSOR || kind == SDX_KIND_SPARSE) {
        fprintf(out, "%s%s[", kind == SDX_KIND_SPARSE ? "sparse " : "",
                sdx_dtype_name(sdx_tensor_dtype(value)));
        for (int k = 0; k < sdx_tensor_rank(value); k++)
            fprintf(out, "%s%lld", k ? "," : "", (long long)sdx_tensor_dims(value)[k]);
        fputc(']', out);
    } else {
        fprintf(out, "%s of %lld", kinds[kind], (long long)sdx_tensor_count(value));
    }
    fclose(out);
    return text;
}
