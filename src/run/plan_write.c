/* SPDX-License-Identifier: Apache-2.0
 * Writing of plan files. Tiny constants stay in the message; the others get places in their
 * section when all are known, and are written from where they are. Packed forms follow in the order
 * in which planning asked for them, which is nearly that of running. */
#include <inttypes.h>

#include "ir/ir_export.h"
#include "run/model.h"

enum {
    INLINE_MAX = 64,     /* bytes of a constant that the message may hold */
    SMALL_MAX = 16 << 10 /* of one of those that lie together, ahead of the others */
};

struct placed {
    const struct sdx_tensor *constant;
    uint64_t at;
};

/* What the message says of a constant's place waits for it. */
struct waiting {
    struct waiting *next;
    struct sdx_str *offset;
    int32_t placed;
};

struct plan_writer {
    struct sdx_context *cx;
    struct sdx_arena arena;
    struct sdx_map index; /* of a constant's sdx_tensor_key to `placed` */
    struct placed *placed;
    int32_t *order; /* of the places in the file */
    int32_t count_placed, capacity_placed;
    struct waiting *waiting;
    uint64_t constants_size;
    struct sdx_plan_pack *packs;
    const struct sdx_packed **packed; /* of packs[i]; zeros follow up to its size */
    int32_t count_packs, capacity_packs;
    struct sdx_text keys, facts, graph;
    struct sdx_file_writer file;
    uint64_t written;
};

static uint64_t round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

/* Room for one more in an array of the arena. */
static bool grow(struct plan_writer *w, void **array, int32_t count, int32_t capacity, size_t size)
{
    if (count < capacity) return true;
    void *more = sdx_arena_array(&w->arena, (size_t)capacity * 2 + 64, size);
    if (!more) return false;
    if (count) memcpy(more, *array, (size_t)count * size);
    *array = more;
    return true;
}

static int32_t find_placed(const struct plan_writer *w, const void *key)
{
    return sdx_map_get(&w->index, (struct sdx_str){(const char *)&key, sizeof key});
}

static enum sdx_status place_new(struct plan_writer *w, const struct sdx_tensor *t, int32_t *at)
{
    const void **key = sdx_arena_alloc(&w->arena, sizeof *key);
    if (!key ||
        !grow(w, (void **)&w->placed, w->count_placed, w->capacity_placed, sizeof *w->placed))
        return SDX_FAIL_MEMORY(w->cx);
    if (w->count_placed == w->capacity_placed) w->capacity_placed = 2 * w->capacity_placed + 64;
    *key = sdx_tensor_key(t);
    *at = w->count_placed++;
    w->placed[*at] = (struct placed){t, 0};
    return sdx_map_put(&w->index, (struct sdx_str){(const char *)key, sizeof *key}, *at)
               ? SDX_OK
               : SDX_FAIL_MEMORY(w->cx);
}

static enum sdx_status place(void *user, const struct sdx_tensor *t, struct sdx_onnx_tensor *to)
{
    struct plan_writer *w = user;
    if (t->bytes <= INLINE_MAX) return SDX_OK;
    int32_t at = find_placed(w, sdx_tensor_key(t));
    /* the same address with another size is another constant */
    if (at < 0 || w->placed[at].constant->bytes < t->bytes) SDX_TRY(place_new(w, t, &at));
    struct sdx_onnx_pair *pairs = sdx_arena_array(&w->arena, 2, sizeof *pairs);
    struct waiting *waiting = sdx_arena_alloc(&w->arena, sizeof *waiting);
    if (!pairs || !waiting) return SDX_FAIL_MEMORY(w->cx);
    pairs[0] = (struct sdx_onnx_pair){.key = SDX_STR("location"), .value = SDX_STR("plan")};
    pairs[1] = (struct sdx_onnx_pair){.key = SDX_STR("offset")};
    *waiting = (struct waiting){w->waiting, &pairs[1].value, at};
    w->waiting = waiting;
    to->external = (struct sdx_onnx_pairs){pairs, 2};
    to->data_location = 1;
    to->has_location = true;
    return SDX_OK;
}

/* Small ones are read where they lie (biases); the others have packed forms as a rule, so that
 * their pages are not touched. */
static enum sdx_status give_places(struct plan_writer *w)
{
    w->order = sdx_arena_array(&w->arena, (size_t)w->count_placed, sizeof *w->order);
    if (!w->order) return SDX_FAIL_MEMORY(w->cx);
    int32_t n = 0;
    for (int large = 0; large < 2; large++)
        for (int32_t i = 0; i < w->count_placed; i++) {
            struct placed *p = &w->placed[i];
            const size_t bytes = p->constant->bytes;
            if ((bytes > SMALL_MAX) != large) continue;
            w->order[n++] = i;
            p->at = w->constants_size;
            w->constants_size = round_up(w->constants_size + bytes, SDX_PLAN_ALIGN);
        }
    for (const struct waiting *to = w->waiting; to; to = to->next) {
        const char *text = sdx_arena_printf(&w->arena, "%" PRIu64, w->placed[to->placed].at);
        if (!text) return SDX_FAIL_MEMORY(w->cx);
        *to->offset = sdx_str(text);
    }
    return SDX_OK;
}

/* Packed forms of what is not in the section of constants are made anew when they are needed. */
static enum sdx_status note_pack(void *user, const struct sdx_packed *p)
{
    struct plan_writer *w = user;
    const int32_t at = find_placed(w, p->constant);
    if (at < 0) return SDX_OK;
    if (w->count_packs == w->capacity_packs) {
        if (!grow(w, (void **)&w->packs, w->count_packs, w->capacity_packs, sizeof *w->packs) ||
            !grow(w, (void **)&w->packed, w->count_packs, w->capacity_packs, sizeof *w->packed))
            return SDX_FAIL_MEMORY(w->cx);
        w->capacity_packs = 2 * w->capacity_packs + 64;
    }
    w->packs[w->count_packs] = (struct sdx_plan_pack){
        .constant = w->placed[at].at, .variant = p->variant, .size = p->size, .key = w->keys.len};
    w->packed[w->count_packs++] = p;
    sdx_text_add_bytes(&w->keys, p->key, strlen(p->key) + 1);
    return w->keys.ok ? SDX_OK : SDX_FAIL_MEMORY(w->cx);
}

static enum sdx_status collect(struct plan_writer *w, struct sdx_model *m)
{
    const struct sdx_ir *ir = NULL;
    struct sdx_onnx_model *message = NULL;
    const struct sdx_ir_export options = {
        .from = m->message, .place = place, .user = w, .keeps_versions = true};
    SDX_TRY(sdx_model_graph_get(w->cx, m, SDX_LEVEL_ALL, false, &ir));
    SDX_TRY(sdx_ir_export(w->cx, &w->arena, ir, &options, &message));
    SDX_TRY(give_places(w));
    SDX_TRY(sdx_onnx_write_model_text(w->cx, message, &w->graph));
    SDX_TRY(sdx_plan_put_facts(w->cx, m, &w->facts));
    return sdx_store_each(m->store, note_pack, w);
}

static enum sdx_status put(struct plan_writer *w, const void *bytes, size_t size)
{
    w->written += size;
    return sdx_file_writer_put(&w->file, bytes, size);
}

static enum sdx_status put_zeros(struct plan_writer *w, uint64_t until)
{
    static const char zeros[64];
    SDX_ASSERT(until >= w->written);
    for (uint64_t left; (left = until - w->written) > 0;)
        SDX_TRY(put(w, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros));
    return SDX_OK;
}

/* Everything behind the header up to `lead_size`, as it will stand in the file. */
static enum sdx_status make_lead(struct plan_writer *w, struct sdx_plan_header *h,
                                 struct sdx_text *lead)
{
    const struct sdx_text *parts[] = {&w->keys, &w->facts, &w->graph};
    uint64_t *ats[] = {&h->keys, &h->facts, &h->graph};
    uint64_t *sizes[] = {&h->keys_size, &h->facts_size, &h->graph_size};
    static const char zeros[8];
    h->packs = sizeof *h;
    h->count_packs = (uint64_t)w->count_packs;
    uint64_t at = h->packs + h->count_packs * sizeof *w->packs;
    for (int i = 0; i < SDX_COUNT_OF(parts); i++) {
        *ats[i] = at;
        *sizes[i] = parts[i]->len;
        at = round_up(at + parts[i]->len, 8);
    }
    h->lead_size = at;
    h->constants = round_up(at, SDX_PLAN_PAGE);
    h->constants_size = w->constants_size;
    at = round_up(h->constants + h->constants_size, SDX_PLAN_PAGE);
    for (int32_t i = 0; i < w->count_packs; i++) {
        w->packs[i].at = at;
        at = round_up(at + w->packs[i].size, SDX_PLAN_ALIGN);
    }
    h->file_size = at;
    sdx_text_add_bytes(lead, w->packs, (size_t)w->count_packs * sizeof *w->packs);
    for (int i = 0; i < SDX_COUNT_OF(parts); i++) {
        sdx_text_add_bytes(lead, sdx_text_get(parts[i]), parts[i]->len);
        sdx_text_add_bytes(lead, zeros, (8 - lead->len % 8) % 8);
    }
    if (!lead->ok) return SDX_FAIL_MEMORY(w->cx);
    SDX_ASSERT(lead->len + sizeof *h == h->lead_size);
    h->checksum = sdx_plan_checksum(h, lead->ptr, lead->len);
    return SDX_OK;
}

static enum sdx_status put_constant(struct plan_writer *w, const struct sdx_tensor *t)
{
    if (!t->recipe) return put(w, t->data, t->bytes);
    void *elements = sdx_mem_alloc(w->cx->mem, SDX_MEM_OTHER, t->bytes);
    if (!elements) return SDX_FAIL_MEMORY(w->cx);
    sdx_tensor_copy_elements(t, elements);
    const enum sdx_status status = put(w, elements, t->bytes);
    sdx_mem_free(w->cx->mem, elements);
    return status;
}

static enum sdx_status put_file(struct plan_writer *w, const struct sdx_plan_header *h,
                                const struct sdx_text *lead)
{
    SDX_TRY(put(w, h, sizeof *h));
    SDX_TRY(put(w, lead->ptr, lead->len));
    SDX_TRY(put_zeros(w, h->constants));
    for (int32_t i = 0; i < w->count_placed; i++) {
        const struct placed *p = &w->placed[w->order[i]];
        SDX_TRY(put_zeros(w, h->constants + p->at));
        SDX_TRY(put_constant(w, p->constant));
    }
    SDX_TRY(put_zeros(w, h->constants + h->constants_size));
    for (int32_t i = 0; i < w->count_packs; i++) {
        SDX_TRY(put_zeros(w, w->packs[i].at));
        SDX_TRY(put(w, w->packed[i]->packed, w->packed[i]->used));
    }
    return put_zeros(w, h->file_size);
}

static enum sdx_status write_file(struct plan_writer *w, const char *path)
{
    struct sdx_plan_header h;
    struct sdx_text lead;
    sdx_plan_header_init(&h);
    h.level = SDX_LEVEL_ALL;
    sdx_text_init(&lead, w->cx->mem);
    enum sdx_status status = make_lead(w, &h, &lead);
    if (status == SDX_OK) status = sdx_file_writer_open(w->cx, path, &w->file);
    if (status == SDX_OK) {
        status = put_file(w, &h, &lead);
        if (status == SDX_OK)
            status = sdx_file_writer_close(&w->file);
        else
            sdx_file_writer_abandon(&w->file);
    }
    sdx_text_deinit(&lead);
    return status;
}

enum sdx_status sdx_plan_write(struct sdx_context *cx, struct sdx_model *m, const char *path)
{
    struct plan_writer w = {.cx = cx};
    sdx_arena_init(&w.arena, cx->mem, SDX_MEM_OTHER);
    sdx_map_init(&w.index, cx->mem);
    sdx_text_init(&w.keys, cx->mem);
    sdx_text_init(&w.facts, cx->mem);
    sdx_text_init(&w.graph, cx->mem);
    enum sdx_status status = collect(&w, m);
    if (status == SDX_OK) status = write_file(&w, path);
    sdx_text_deinit(&w.graph);
    sdx_text_deinit(&w.facts);
    sdx_text_deinit(&w.keys);
    sdx_map_deinit(&w.index);
    sdx_arena_deinit(&w.arena);
    return status;
}
