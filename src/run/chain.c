/* SPDX-License-Identifier: Apache-2.0
 * Chains: once all steps of a segment are there, those that work element by element over the same
 * elements and feed one another become one step at the place of the last of them (ops/tile.h).
 * Decided from the memory that steps read and write, not from the graph, so that views, pieces,
 * memory written over, conversions of narrow floats and temporaries need no rules of their own. */
#include "ops/tile.h"
#include "run/planning.h"

enum { MEMBERS_MAX = 32, NAMES_MAX = 12 };

/* A step reads or writes a range of memory. Memory is a block of the slab or what a tensor from
 * outside brings. */
struct access {
    int32_t step;
    int32_t before, next; /* accesses of the same memory, in the order of the steps; -1: none */
    int32_t memory;       /* < count_blocks: that block */
    size_t begin, end;
    unsigned bits; /* of an element */
    bool write, full;
};

/* What the planner knows of a step. Groups are lists through `next` that begin at `group`. */
struct node {
    int32_t first; /* access; those of a step lie together */
    int32_t group, next, last, size;
    bool inside; /* of the group in question */
};

struct chains {
    struct sdx_planning *p;
    struct sdx_step *steps;
    int32_t count;
    struct node *nodes; /* one a step, and one behind */
    struct access *accesses;
    int32_t count_accesses, capacity_accesses;
    int32_t *newest; /* access of each memory */
    int32_t count_memories, capacity_memories;
    /* places of tensors, by address */
    struct place {
        const struct sdx_tensor *tensor;
        struct sdx_spot spot;
        int32_t memory; /* of what is no block, once a step uses it; -1 */
    } * places;
    size_t mask;
};

/* ---- where tensors lie ---- */

static struct place *place_of(struct chains *c, const struct sdx_tensor *t)
{
    size_t at = (size_t)sdx_hash_number((uintptr_t)t >> 4) & c->mask;
    while (c->places[at].tensor && c->places[at].tensor != t)
        at = (at + 1) & c->mask;
    return &c->places[at];
}

static void place_add(struct chains *c, const struct sdx_tensor *t, struct sdx_spot spot)
{
    struct place *place = place_of(c, t);
    *place = (struct place){t, spot, -1};
}

/* Room for every tensor that a step may name. */
static enum sdx_status places_init(struct chains *c)
{
    const struct sdx_planning *p = c->p;
    size_t count = (size_t)p->count_pending + (size_t)p->s->count_aliases, room = 64;
    for (int32_t s = 0; s < c->count; s++)
        count += (size_t)c->steps[s].count_in + (size_t)c->steps[s].count_out +
                 (size_t)p->r->g->nodes[c->steps[s].node].count_captures;
    while (room < 2 * count)
        room *= 2;
    c->places = sdx_arena_array(&c->p->work, room, sizeof *c->places);
    if (!c->places) return SDX_FAIL_MEMORY(p->cx);
    c->mask = room - 1;
    for (int32_t i = 0; i < p->count_pending; i++)
        place_add(c, p->pending[i].tensor, p->pending[i].spot);
    for (int32_t i = 0; i < p->s->count_aliases; i++) {
        const struct sdx_alias *alias = &p->s->aliases[i];
        place_add(c, alias->view,
                  (struct sdx_spot){.block = -1, .root = alias->root, .shift = alias->shift});
    }
    return SDX_OK;
}

/* The memory that `t` lies in, and where. -1: no memory (error set). */
static int32_t memory_of(struct chains *c, const struct sdx_tensor *t, size_t *shift)
{
    *shift = 0;
    struct place *place = place_of(c, t);
    while (place->tensor && place->spot.block < 0 && place->spot.root != place->tensor) {
        *shift += place->spot.shift;
        t = place->spot.root;
        place = place_of(c, t);
    }
    if (!place->tensor) *place = (struct place){t, {.block = -1, .root = t}, -1};
    if (place->spot.block >= 0) {
        *shift += place->spot.shift;
        return sdx_place_whole(c->p, place->spot.block, shift);
    }
    if (place->memory >= 0) return place->memory;
    if (!SDX_RESERVE(c->p, &c->p->work, c->newest, c->count_memories, c->capacity_memories))
        return -1;
    c->newest[c->count_memories] = -1;
    return place->memory = c->count_memories++;
}

/* ---- what steps do ---- */

static enum sdx_status add_access(struct chains *c, int32_t step, const struct sdx_tensor *t,
                                  bool write, bool full)
{
    size_t shift = 0;
    if (!t || (t->is_constant && !write)) t = NULL;
    const int32_t memory = t ? memory_of(c, t, &shift) : -1;
    if (t && memory < 0) return c->p->cx->error.status;
    if (!SDX_RESERVE(c->p, &c->p->work, c->accesses, c->count_accesses, c->capacity_accesses))
        return c->p->cx->error.status;
    const int32_t at = c->count_accesses++;
    struct access *a = &c->accesses[at];
    *a = (struct access){.step = step, .before = -1, .next = -1, .memory = memory};
    if (!t) return SDX_OK;
    a->begin = shift;
    a->end = shift + t->bytes;
    a->bits = (unsigned)sdx_dtype_bits(t->dtype);
    a->write = write;
    a->full = full;
    a->before = c->newest[memory];
    if (a->before >= 0) c->accesses[a->before].next = at;
    c->newest[memory] = at;
    return SDX_OK;
}

/* Accesses of a step: its inputs, its outputs, and what the bodies of its node take. */
static enum sdx_status add_step(struct chains *c, int32_t s)
{
    const struct sdx_step *step = &c->steps[s];
    const struct sdx_ir_node *node = &c->p->r->g->nodes[step->node];
    c->nodes[s] =
        (struct node){.first = c->count_accesses, .group = s, .next = -1, .last = s, .size = 1};
    for (int32_t i = 0; i < step->count_in; i++)
        SDX_TRY(add_access(c, s, step->in[i], false, step->tiles && step->tiles->full >> i & 1));
    for (int32_t k = 0; k < step->count_out; k++)
        SDX_TRY(add_access(c, s, step->out[k], true, true));
    for (int32_t i = 0; i < node->count_captures; i++)
        SDX_TRY(add_access(c, s, sdx_planning_slot(c->p, node->captures[i])->tensor, false, false));
    return SDX_OK;
}

static bool overlaps(const struct access *a, const struct access *b)
{
    return a->begin < b->end && b->begin < a->end;
}

static bool is_same(const struct access *a, const struct access *b)
{
    return a->begin == b->begin && a->end == b->end && a->bits == b->bits && a->full && b->full;
}

/* ---- groups ---- */

static void mark(struct chains *c, int32_t group, bool inside)
{
    for (int32_t s = group; s >= 0; s = c->nodes[s].next)
        c->nodes[s].inside = inside;
}

/* May the steps marked as inside run at the place of `last`? Then no other step between them and
 * that place writes what they read, or reads or writes what they write; and what one of them writes
 * the others meet at the same elements only. */
static bool may_wait(const struct chains *c, int32_t group, int32_t last)
{
    for (int32_t s = group; s >= 0; s = c->nodes[s].next)
        for (int32_t at = c->nodes[s].first; at < c->nodes[s + 1].first; at++) {
            const struct access *a = &c->accesses[at], *b;
            for (int32_t n = a->next; n >= 0 && c->accesses[n].step <= last; n = b->next) {
                b = &c->accesses[n];
                if (b->step == s || !(a->write || b->write) || !overlaps(a, b)) continue;
                if (!c->nodes[b->step].inside || !is_same(a, b)) return false;
            }
        }
    return true;
}

/* The step that made what access `at` reads; -1: none, or it made it in pieces. */
static int32_t maker_of(const struct chains *c, int32_t at)
{
    const struct access *a = &c->accesses[at];
    for (int32_t n = a->before; n >= 0; n = c->accesses[n].before) {
        const struct access *b = &c->accesses[n];
        if (b->step < a->step && b->write && overlaps(a, b)) return is_same(a, b) ? b->step : -1;
    }
    return -1;
}

/* The group of `s` is taken into that of `t`, whose last step is later. */
static void merge(struct chains *c, int32_t group, int32_t t)
{
    struct node *head = &c->nodes[group], *tail = &c->nodes[head->last];
    const int32_t later = c->nodes[t].group;
    tail->next = later;
    head->last = c->nodes[later].last;
    head->size += c->nodes[later].size;
    for (int32_t s = later; s >= 0; s = c->nodes[s].next)
        c->nodes[s].group = group;
}

/* Joins the groups that make operands of step t. */
static void join_makers(struct chains *c, int32_t t)
{
    const struct sdx_step *step = &c->steps[t];
    for (int32_t at = c->nodes[t].first; at < c->nodes[t].first + step->count_in; at++) {
        if (!c->accesses[at].full) continue;
        const int32_t maker = maker_of(c, at);
        if (maker < 0 || !c->steps[maker].tiles ||
            c->steps[maker].tiles->count != step->tiles->count)
            continue;
        const int32_t a = c->nodes[maker].group, b = c->nodes[t].group;
        if (a == b || c->nodes[a].size + c->nodes[b].size > MEMBERS_MAX) continue;
        mark(c, a, true);
        mark(c, b, true);
        const bool joins = may_wait(c, a, t) && may_wait(c, b, t);
        mark(c, a, false);
        mark(c, b, false);
        if (joins) merge(c, a, t);
    }
}

/* ---- chains from groups ---- */

/* Does nothing but steps of the group, marked as inside, read what access `a` writes? */
static bool is_inner(const struct chains *c, const struct access *a, int32_t last_node)
{
    for (int32_t n = a->next; n >= 0; n = c->accesses[n].next) {
        const struct access *b = &c->accesses[n];
        if (!overlaps(a, b)) continue;
        if (!is_same(a, b)) return false;
        if (b->write) return c->steps[b->step].tiles; /* another step might add to it */
        if (!c->nodes[b->step].inside) return false;
    }
    return a->memory < c->p->count_blocks && c->p->blocks[a->memory].last <= last_node;
}

/* The last of the members that reads what member `m` makes. */
static int32_t last_reader(const struct chains *c, const int32_t *member, int32_t count, int32_t m,
                           int32_t (*maker)[SDX_TILE_IN])
{
    int32_t last = m;
    for (int32_t k = m + 1; k < count; k++)
        for (int32_t i = 0; i < c->steps[member[k]].count_in; i++)
            if (maker[k][i] == m) last = k;
    return last;
}

/* A scratch tile for what member m makes: that of an operand of the same size that it is the last
 * to read, or one that is free. busy[n]: the last member that reads tile n. */
static int32_t take_tile(struct sdx_chain *chain, int32_t m, int32_t *busy, int32_t until)
{
    const struct sdx_chain_member *member = &chain->members[m];
    int32_t tile = 0;
    for (int32_t i = 0; i < member->step.count_in; i++) {
        const int32_t from = member->from[i];
        if (from == SDX_TILE_MEMORY || busy[from] != m) continue;
        if (sdx_dtype_bits(member->step.in[i]->dtype) != sdx_dtype_bits(member->step.out[0]->dtype))
            continue;
        busy[from] = until;
        return from;
    }
    while (tile < chain->count_tiles && busy[tile] >= m)
        tile++;
    if (tile == chain->count_tiles) chain->count_tiles++;
    busy[tile] = until;
    return tile;
}

static const char *name_of(struct chains *c, const struct sdx_chain *chain)
{
    struct sdx_text text;
    sdx_text_init(&text, c->p->cx->mem);
    sdx_text_add(&text, "chain of %d:", chain->count);
    for (int32_t m = 0; m < chain->count && m < NAMES_MAX; m++)
        sdx_text_add(&text, " %s", chain->members[m].step.kernel);
    if (chain->count > NAMES_MAX) sdx_text_add(&text, " ...");
    const char *name = sdx_arena_strndup(&c->p->s->arena, sdx_text_get(&text), text.len);
    sdx_text_deinit(&text);
    return name;
}

/* Operands of the chain: what its members read and write in memory, each once. */
static enum sdx_status list_operands(struct chains *c, const struct sdx_chain *chain,
                                     struct sdx_step *step)
{
    struct sdx_arena *arena = &c->p->s->arena;
    const size_t most = (size_t)chain->count * SDX_TILE_IN;
    struct sdx_tensor **in = sdx_arena_array(arena, most, sizeof *in);
    struct sdx_tensor **out = sdx_arena_array(arena, (size_t)chain->count, sizeof *out);
    if (!in || !out) return SDX_FAIL_MEMORY(c->p->cx);
    step->in = in;
    step->out = out;
    step->count_in = step->count_out = 0;
    for (int32_t m = 0; m < chain->count; m++) {
        const struct sdx_chain_member *member = &chain->members[m];
        for (int32_t i = 0; i < member->step.count_in; i++) {
            struct sdx_tensor *t = member->step.in[i];
            bool known = !t || member->from[i] != SDX_TILE_MEMORY;
            for (int32_t k = 0; k < step->count_in && !known; k++)
                known = in[k] == t;
            for (int32_t k = 0; k < step->count_out && !known; k++)
                known = out[k] == t;
            if (!known) in[step->count_in++] = t;
        }
        if (member->to == SDX_TILE_MEMORY) out[step->count_out++] = member->step.out[0];
    }
    return SDX_OK;
}

/* The memory that a chain uses is needed where it runs. */
static void extend(struct chains *c, const int32_t *member, int32_t count, int32_t node)
{
    for (int32_t m = 0; m < count; m++)
        for (int32_t at = c->nodes[member[m]].first; at < c->nodes[member[m] + 1].first; at++) {
            const int32_t memory = c->accesses[at].memory;
            if (memory >= 0 && memory < c->p->count_blocks) sdx_place_extend(c->p, memory, node);
        }
}

/* The steps of a group, in the order of the list, become the last of them. */
static enum sdx_status make_chain(struct chains *c, int32_t group)
{
    int32_t member[MEMBERS_MAX], maker[MEMBERS_MAX][SDX_TILE_IN], busy[MEMBERS_MAX], count = 0;
    for (int32_t s = 0; s < c->count && count < c->nodes[group].size; s++)
        if (c->nodes[s].group == group) member[count++] = s;
    struct sdx_arena *arena = &c->p->s->arena;
    struct sdx_step *last = &c->steps[member[count - 1]], step = *last;
    struct sdx_chain *chain = sdx_arena_alloc(arena, sizeof *chain);
    if (!chain) return SDX_FAIL_MEMORY(c->p->cx);
    chain->members = sdx_arena_array(arena, (size_t)count, sizeof *chain->members);
    if (!chain->members) return SDX_FAIL_MEMORY(c->p->cx);
    chain->count = count;
    for (int32_t m = 0; m < count; m++) {
        chain->members[m].step = c->steps[member[m]];
        for (int32_t i = 0; i < c->steps[member[m]].count_in; i++) {
            const int32_t s = maker_of(c, c->nodes[member[m]].first + i);
            maker[m][i] = -1;
            for (int32_t k = 0; k < m; k++)
                if (member[k] == s && s >= 0) maker[m][i] = k;
        }
    }
    mark(c, group, true);
    for (int32_t m = 0; m < count; m++) {
        struct sdx_chain_member *to = &chain->members[m];
        const struct access *a = &c->accesses[c->nodes[member[m]].first + to->step.count_in];
        for (int32_t i = 0; i < to->step.count_in; i++)
            to->from[i] = maker[m][i] < 0 ? SDX_TILE_MEMORY : chain->members[maker[m][i]].to;
        to->to = SDX_TILE_MEMORY;
        if (is_inner(c, a, last->node))
            to->to = take_tile(chain, m, busy, last_reader(c, member, count, m, maker));
    }
    mark(c, group, false);
    extend(c, member, count, last->node);
    sdx_chain_size(chain);
    SDX_TRY(list_operands(c, chain, &step));
    step.run = sdx_chain_run;
    step.params = chain;
    step.tiles = NULL;
    step.parts = sdx_tile_parts(last->tiles->count, sdx_chain_weight(chain));
    step.scratch = sdx_chain_scratch(chain);
    step.kernel = name_of(c, chain);
    if (!step.kernel) return SDX_FAIL_MEMORY(c->p->cx);
    for (int32_t m = 0; m < count; m++)
        c->steps[member[m]].run = NULL;
    *last = step;
    return SDX_OK;
}

static void note_used(const struct chains *c, bool *used, int32_t memory)
{
    if (memory >= 0 && memory < c->p->count_blocks) used[memory] = true;
}

/* Blocks that only members of chains used take no memory. */
static enum sdx_status drop_blocks(struct chains *c)
{
    struct sdx_planning *p = c->p;
    bool *used = sdx_arena_array(&p->work, (size_t)p->count_blocks + 1, sizeof *used);
    if (!used) return SDX_FAIL_MEMORY(p->cx);
    for (int32_t s = 0; s < c->count; s++) {
        const struct sdx_step *step = &c->steps[s];
        const bool is_chain = step->run && sdx_chain_of(step);
        for (int32_t i = 0; is_chain && i < step->count_in + step->count_out; i++) {
            size_t shift = 0;
            const struct sdx_tensor *t =
                i < step->count_in ? step->in[i] : step->out[i - step->count_in];
            note_used(c, used, t->is_constant ? -1 : memory_of(c, t, &shift));
        }
        for (int32_t a = c->nodes[s].first; step->run && !is_chain && a < c->nodes[s + 1].first;
             a++)
            note_used(c, used, c->accesses[a].memory);
    }
    for (int32_t a = 0; a < c->count_accesses; a++) {
        const int32_t memory = c->accesses[a].memory;
        if (memory >= 0 && memory < p->count_blocks && !used[memory]) p->blocks[memory].size = 0;
    }
    return SDX_OK;
}

static enum sdx_status make_chains(struct chains *c)
{
    bool any = false;
    for (int32_t s = 0; s < c->count; s++)
        if (c->nodes[s].group == s && c->nodes[s].size > 1) {
            SDX_TRY(make_chain(c, s));
            any = true;
        }
    if (!any) return SDX_OK;
    SDX_TRY(drop_blocks(c));
    int32_t kept = 0;
    for (int32_t s = 0; s < c->count; s++)
        if (c->steps[s].run) c->steps[kept++] = c->steps[s];
    c->p->s->list.count = kept;
    return SDX_OK;
}

enum sdx_status sdx_chain_join(struct sdx_planning *p)
{
    struct sdx_step_list *list = &p->s->list;
    struct chains c = {.p = p,
                       .steps = list->steps,
                       .count = list->count,
                       .count_memories = p->count_blocks,
                       .capacity_memories = p->count_blocks + 64};
    int32_t candidates = 0;
    for (int32_t s = 0; s < c.count; s++)
        candidates += c.steps[s].tiles && c.steps[s].tiles->count > 0;
    if (candidates < 2) return SDX_OK;
    c.nodes = sdx_arena_array(&p->work, (size_t)c.count + 1, sizeof *c.nodes);
    c.newest = sdx_arena_array(&p->work, (size_t)c.capacity_memories, sizeof *c.newest);
    if (!c.nodes || !c.newest) return SDX_FAIL_MEMORY(p->cx);
    for (int32_t b = 0; b < p->count_blocks; b++)
        c.newest[b] = -1;
    SDX_TRY(places_init(&c));
    for (int32_t s = 0; s < c.count; s++)
        SDX_TRY(add_step(&c, s));
    c.nodes[c.count].first = c.count_accesses;
    for (int32_t s = 0; s < c.count; s++)
        if (c.steps[s].tiles && c.steps[s].tiles->count > 0) join_makers(&c, s);
    return make_chains(&c);
}
