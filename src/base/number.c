/* SPDX-License-Identifier: Apache-2.0
 * Numbers to text and back, in the C locale whatever the process has set: the C library does the
 * rounding, and the decimal point is exchanged for the one it uses at the moment. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

enum {
    NUMBER_LONGEST = 400, /* characters of a floating number; what is longer is refused */
    POINT_LONGEST = 16,
    FORMAT_ROOM = 32 /* what callers give */
};

bool sdx_parse_i64(struct sdx_str s, int64_t *out)
{
    size_t i = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+');
    bool negative = i == 1 && s.ptr[0] == '-';
    if (i == s.len) return false;
    uint64_t magnitude = 0, largest = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (magnitude > (largest - digit) / 10) return false;
        magnitude = magnitude * 10 + digit;
    }
    if (magnitude > INT64_MAX)
        *out = INT64_MIN;
    else
        *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

/* The decimal point of the current locale, read from a number it writes. */
static void get_point(char point[POINT_LONGEST])
{
    char text[POINT_LONGEST + 4];
    int length = snprintf(text, sizeof text, "%.1f", 0.5); /* "0" point "5" */
    size_t size = length > 2 && length < POINT_LONGEST ? (size_t)length - 2 : 0;
    memcpy(point, text + 1, size);
    point[size] = '\0';
    if (size == 0) memcpy(point, ".", 2);
}

static bool equals_word(struct sdx_str s, const char *word)
{
    if (s.len != strlen(word)) return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != word[i]) return false;
    }
    return true;
}

static size_t skip_digits(struct sdx_str s, size_t i)
{
    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        i++;
    return i;
}

/* digits [. digits] [e [sign] digits], with a digit before or after the point; *point is its place
 * or s.len. */
static bool is_decimal(struct sdx_str s, size_t *point)
{
    size_t whole = skip_digits(s, 0), i = whole;
    size_t digits = whole;
    *point = s.len;
    if (i < s.len && s.ptr[i] == '.') {
        *point = i;
        i = skip_digits(s, i + 1);
        digits += i - whole - 1;
    }
    if (digits == 0) return false;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        if (i < s.len && (s.ptr[i] == '+' || s.ptr[i] == '-')) i++;
        size_t end = skip_digits(s, i);
        if (end == i) return false;
        i = end;
    }
    return i == s.len;
}

bool sdx_parse_f64(struct sdx_str s, double *out)
{
    if (s.len == 0) return false;
    bool negative = s.ptr[0] == '-';
    if (negative || s.ptr[0] == '+') s = (struct sdx_str){s.ptr + 1, s.len - 1};
    double value;
    size_t at_point;
    if (equals_word(s, "inf") || equals_word(s, "infinity"))
        value = INFINITY;
    else if (equals_word(s, "nan"))
        value = NAN;
    else {
        if (s.len > NUMBER_LONGEST || !is_decimal(s, &at_point)) return false;
        char text[NUMBER_LONGEST + POINT_LONGEST + 1], point[POINT_LONGEST];
        get_point(point);
        if (at_point == s.len)
            snprintf(text, sizeof text, "%.*s", (int)s.len, s.ptr);
        else
            snprintf(text, sizeof text, "%.*s%s%.*s", (int)at_point, s.ptr, point,
                     (int)(s.len - at_point - 1), s.ptr + at_point + 1);
        value = strtod(text, NULL);
        if (isinf(value)) return false;
    }
    *out = negative ? -value : value;
    return true;
}

/* Puts '.' where the locale's decimal point stands. Returns the length. */
static int put_point(char *buf)
{
    char point[POINT_LONGEST];
    get_point(point);
    char *found = strstr(buf, point);
    if (found != NULL) {
        size_t size = strlen(point);
        *found = '.';
        memmove(found + 1, found + size, strlen(found + size) + 1);
    }
    return (int)strlen(buf);
}

static int format_special(char *buf, double value)
{
    return snprintf(buf, FORMAT_ROOM, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

/* Every decimal of up to DBL_DIG (FLT_DIG) digits survives in a normal number, and %g drops zeros
 * at the end: so for these the search begins there. */
int sdx_format_f64(char *buf, double value)
{
    if (!isfinite(value)) return format_special(buf, value);
    int digits = fabs(value) < DBL_MIN && value != 0 ? 1 : DBL_DIG;
    do {
        snprintf(buf, FORMAT_ROOM, "%.*g", digits, value);
    } while (strtod(buf, NULL) != value && ++digits <= DBL_DECIMAL_DIG);
    return put_point(buf);
}

int sdx_format_f32(char *buf, float value)
{
    if (!isfinite(value)) return format_special(buf, (double)value);
    int digits = fabsf(value) < FLT_MIN && value != 0 ? 1 : FLT_DIG;
    do {
        snprintf(buf, FORMAT_ROOM, "%.*g", digits, (double)value);
    } while (strtof(buf, NULL) != value && ++digits <= FLT_DECIMAL_DIG);
    return put_point(buf);
}
