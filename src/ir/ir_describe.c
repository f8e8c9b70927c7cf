/* SPDX-License-Identifier: Apache-2.0
 * A value in the words of the public interface. */
#include "ir/ir.h"

static const char *text_of(struct sdx_arena *arena, struct sdx_str s, bool *ok)
{
    const char *text = sdx_arena_strndup(arena, s.ptr ? s.ptr : "", s.len);
    *ok = *ok && text;
    return text;
}

bool sdx_ir_value_describe(const struct sdx_ir *ir, struct sdx_arena *arena, struct sdx_str name,
                           const struct sdx_type *type, struct sdx_value_info *info)
{
    bool ok = true;
    char text[512];
    const struct sdx_type *inner = type;
    while ((inner->kind == SDX_KIND_SEQUENCE || inner->kind == SDX_KIND_OPTIONAL ||
            inner->kind == SDX_KIND_MAP) &&
           inner->elem)
        inner = inner->elem;
    *info = (struct sdx_value_info){
        .name = text_of(arena, name, &ok),
        .kind = type->kind,
        .dtype = inner->dtype,
        .key_dtype = type->key_dtype ? type->key_dtype : inner->key_dtype,
        .rank = type->has_shape ? type->rank : -1,
        .type = text_of(arena, sdx_str(sdx_ir_type_describe(ir, type, text, sizeof text)), &ok)};
    if (type != inner) {
        struct sdx_value_info *elem = sdx_arena_array(arena, 1, sizeof *elem);
        if (!elem || !sdx_ir_value_describe(ir, arena, SDX_STR(""), type->elem, elem)) return false;
        info->elem = elem;
    }
    if (info->rank <= 0) return ok;
    const size_t rank = (size_t)type->rank;
    int64_t *dims = sdx_arena_array(arena, rank, sizeof *dims);
    const char **names = sdx_arena_array(arena, rank, sizeof *names);
    const char **denotations = sdx_arena_array(arena, rank, sizeof *denotations);
    if (!dims || !names || !denotations) return false;
    for (int d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d] < 0 ? -1 : type->dims[d];
        if (sdx_ir_symbol_has_name(ir, type->dims[d]))
            names[d] = text_of(arena, ir->symbols[-type->dims[d] - 2].name, &ok);
    }
    info->dims = dims;
    info->dim_names = names;
    info->dim_denotations = denotations;
    return ok;
}
