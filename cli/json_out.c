/* SPDX-License-Identifier: Apache-2.0
 * Building and printing the JSON objects of --json. */
#include "json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at `p`, 0 when it is not one. Overlong forms and surrogates are not.
 */
static size_t sequence(const unsigned char *p)
{
    if (p[0] < 0x80) return 1;
    size_t length = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                    : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                    : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                  : 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return length;
}

json_t *sdx_cli_json_text(const char *text)
{
    json_t *plain = json_string(text);
    if (plain != NULL) return plain;
    char *copy = malloc(3 * strlen(text) + 1), *to = copy;
    if (copy == NULL) return json_null();
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        size_t length = sequence(p);
        if (length == 0) {
            memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
            p++;
        } else {
            memcpy(to, p, length);
            to += length;
            p += length;
        }
    }
    *to = '\0';
    json_t *value = json_string(copy);
    free(copy);
    return value;
}

json_t *sdx_cli_json_number(double value, int digits)
{
    if (!isfinite(value)) return json_null();
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return json_real(strtod(text, NULL));
}

json_t *sdx_cli_json_dims(const sdx_value_info *info)
{
    if (info->rank < 0) return json_null();
    json_t *dims = json_array();
    for (int i = 0; i < info->rank; i++) {
        const char *name = info->dim_names != NULL ? info->dim_names[i] : NULL;
        json_array_append_new(dims, info->dims[i] >= 0 ? json_integer(info->dims[i])
                                    : name != NULL     ? sdx_cli_json_text(name)
                                                       : json_null());
    }
    return dims;
}

json_t *sdx_cli_json_shape(const sdx_tensor *tensor)
{
    json_t *dims = json_array();
    for (int i = 0; i < sdx_tensor_rank(tensor); i++)
        json_array_append_new(dims, json_integer(sdx_tensor_dims(tensor)[i]));
    return dims;
}

void sdx_cli_json_print(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}
