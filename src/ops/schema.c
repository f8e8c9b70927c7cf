/* SPDX-License-Identifier: Apache-2.0
 * Look-ups in the schema table: by binary search over (domain, name, since). */
#include "ops/schema.h"

/* Index in sdx_schema_domains; that of the end: unknown. */
static int find_domain(struct sdx_str domain)
{
    int i = 0;
    domain = sdx_ir_domain(domain);
    while (sdx_schema_domains[i].name && !sdx_str_is(domain, sdx_schema_domains[i].name))
        i++;
    return i;
}

/* Domains stand sorted, so their numbers compare as their names do. */
static int compare_row(const struct sdx_schema *row, int domain, struct sdx_str name)
{
    int order = row->domain - domain;
    return order ? order : sdx_str_compare(sdx_str(sdx_schema_str(row->name)), name);
}

/* The first row that is not before (domain, name). */
static int find_first(int domain, struct sdx_str name)
{
    int low = 0, high = sdx_schema_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare_row(&sdx_schemas[middle], domain, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct sdx_schema *sdx_schema_find(struct sdx_str domain, struct sdx_str name, int64_t opset,
                                         bool *known)
{
    const struct sdx_schema *found = NULL;
    const int number = find_domain(domain);
    int at = find_first(number, name);
    if (known) *known = false;
    for (; at < sdx_schema_count && compare_row(&sdx_schemas[at], number, name) == 0; at++) {
        if (known) *known = true;
        if (sdx_schemas[at].since <= opset) found = &sdx_schemas[at];
    }
    return found;
}

int64_t sdx_schema_domain_version(struct sdx_str domain)
{
    return sdx_schema_domains[find_domain(domain)].newest; /* the end has 0 */
}

const struct sdx_schema *sdx_schema_at(int i)
{
    return i >= 0 && i < sdx_schema_count ? &sdx_schemas[i] : NULL;
}

static const struct sdx_schema_param *param_at(int first, int count, int i)
{
    if (count == 0 || i < 0) return NULL;
    const struct sdx_schema_param *last = &sdx_schema_params[first + count - 1];
    if (i >= count) return last->option & SDX_PARAM_VARIADIC ? last : NULL;
    return &sdx_schema_params[first + i];
}

const struct sdx_schema_param *sdx_schema_input(const struct sdx_schema *schema, int i)
{
    return param_at(schema->params_in, schema->count_params_in, i);
}

const struct sdx_schema_param *sdx_schema_output(const struct sdx_schema *schema, int i)
{
    return param_at(schema->params_out, schema->count_params_out, i);
}

const struct sdx_schema_attr *sdx_schema_find_attr(const struct sdx_schema *schema,
                                                   struct sdx_str name)
{
    for (int i = 0; i < schema->count_attrs; i++)
        if (sdx_str_is(name, sdx_schema_str(sdx_schema_attrs[schema->attrs + i].name)))
            return &sdx_schema_attrs[schema->attrs + i];
    return NULL;
}

static bool has_dtype(uint32_t mask, int dtype)
{
    if (dtype == SDX_DTYPE_NONE) return mask != 0;
    return dtype < 32 && (mask >> dtype & 1) != 0; /* an attribute may have named any number */
}

static bool others_allow(uint32_t others, const struct sdx_type *type)
{
    static const struct {
        uint8_t kind, key, value;
    } table[] = {
#define OTHER_ROW(id, kind, key, value) {kind, key, value},
        SDX_SCHEMA_OTHERS(OTHER_ROW)
#undef OTHER_ROW
    };
    const struct sdx_type *map = type->kind == SDX_KIND_SEQUENCE ? type->elem : type;
    for (int i = 0; i < SDX_COUNT_OF(table); i++) {
        if (!(others >> i & 1) || table[i].kind != type->kind) continue;
        bool key = !map || map->key_dtype == SDX_DTYPE_NONE || map->key_dtype == table[i].key;
        bool value = !map || map->dtype == SDX_DTYPE_NONE || map->dtype == table[i].value;
        if (key && value) return true;
    }
    return false;
}

bool sdx_schema_allows(const struct sdx_schema_types *types, const struct sdx_type *type)
{
    uint32_t any = types->tensor | types->sequence | types->optional | types->optional_sequence |
                   types->sparse | types->others;
    const struct sdx_type *elem = type->elem;
    int elem_kind = elem ? elem->kind : SDX_KIND_NONE;
    if (any == 0) return true;
    switch (type->kind) {
    case SDX_KIND_NONE: return true;
    case SDX_KIND_TENSOR: return has_dtype(types->tensor, type->dtype);
    case SDX_KIND_SPARSE: return has_dtype(types->sparse, type->dtype);
    case SDX_KIND_MAP: return others_allow(types->others, type);
    case SDX_KIND_SEQUENCE:
        if (elem_kind == SDX_KIND_MAP) return others_allow(types->others, type);
        return (elem_kind == SDX_KIND_NONE || elem_kind == SDX_KIND_TENSOR) &&
               has_dtype(types->sequence, type->dtype);
    case SDX_KIND_OPTIONAL:
        if (elem_kind == SDX_KIND_SEQUENCE) return has_dtype(types->optional_sequence, elem->dtype);
        if (elem_kind == SDX_KIND_TENSOR) return has_dtype(types->optional, elem->dtype);
        return elem_kind == SDX_KIND_NONE && (types->optional | types->optional_sequence) != 0;
    default: return false;
    }
}
