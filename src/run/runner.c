/* SPDX-License-Identifier: Apache-2.0
 * Running: choose or make the segment whose watches hold, bind memory, run its steps over the pool,
 * go on to the next; then hand out the results. */
#include "run/runner.h"

#include "base/thread_pool.h"
#include "run/profile.h"

enum {
    COLD_NS = 100000, /* waking sleeping workers costs more than they bring to a shorter run */
    GAP_NS = 20000    /* between two runs that find the workers still awake */
};

/* ---- set up ---- */

static void note_use(struct sdx_slot *slots, int32_t value, int32_t node)
{
    if (value >= 0 && slots[value].last_use < node) slots[value].last_use = node;
}

/* Outputs of the main graph are made directly in the result's memory where that is possible. */
static void claim_outputs(struct sdx_runner *r)
{
    const struct sdx_ir_graph *g = r->g;
    for (int32_t o = 0; o < g->count_outputs; o++) {
        int32_t v = g->outputs[o];
        while (g->values[v].producer >= 0 && !g->values[v].constant) {
            const struct sdx_ir_node *node = &g->nodes[g->values[v].producer];
            if (!node->op || !(node->op->flags & SDX_OP_VIEW) || node->inputs[0] < 0) break;
            v = node->inputs[0];
        }
        if (g->values[v].producer >= 0 && r->slots[v].claim < 0) r->slots[v].claim = o;
    }
}

static const struct sdx_tensor *initial_constant(const struct sdx_ir_value *v)
{
    return v->flags & SDX_IR_INPUT ? NULL : v->constant;
}

enum sdx_status sdx_runner_init(struct sdx_runner *r, struct sdx_run_shared *shared, int32_t graph,
                                const struct sdx_runner *parent)
{
    memset(r, 0, sizeof *r);
    struct sdx_context *cx = shared->cx;
    const struct sdx_ir_graph *g = &shared->ir->graphs[graph];
    r->shared = shared;
    r->graph = graph;
    r->g = g;
    r->is_body = parent != NULL;
    sdx_arena_init(&r->arena, cx->mem, SDX_MEM_PLAN);
    r->slots = sdx_arena_array(&r->arena, (size_t)g->count_values + 1, sizeof *r->slots);
    r->inputs = sdx_arena_array(&r->arena, (size_t)g->count_inputs + 1, sizeof *r->inputs);
    r->outputs = sdx_arena_array(&r->arena, (size_t)g->count_outputs + 1, sizeof *r->outputs);
    r->workers = sdx_arena_array(&r->arena, (size_t)shared->threads, sizeof *r->workers);
    r->grown = sdx_arena_array(&r->arena, (size_t)g->count_outputs + 1, sizeof *r->grown);
    if (!r->slots || !r->inputs || !r->outputs || !r->workers || !r->grown)
        return SDX_FAIL_MEMORY(cx);
    for (int32_t v = 0; v < g->count_values; v++) {
        struct sdx_slot *slot = &r->slots[v];
        const struct sdx_ir_value *value = &g->values[v];
        *slot = (struct sdx_slot){.last_use = -1, .block = -1, .depth = -1, .claim = -1};
        if (value->outer >= 0 && parent) {
            slot->tensor = parent->slots[value->outer].tensor;
            slot->is_dynamic = false; /* it has run: its shape is there */
        } else if (initial_constant(value)) {
            slot->tensor = value->constant;
        }
    }
    for (int32_t i = 0; i < g->count_inputs; i++) {
        r->inputs[i].dims = r->inputs[i].dims_inline;
        r->slots[g->inputs[i]].tensor = &r->inputs[i];
    }
    for (int32_t n = 0; n < g->count_nodes; n++) {
        const struct sdx_ir_node *node = &g->nodes[n];
        if (node->is_dead) continue;
        for (int i = 0; i < node->count_inputs; i++)
            note_use(r->slots, node->inputs[i], n);
        for (int i = 0; i < node->count_captures; i++) {
            note_use(r->slots, node->captures[i], n);
            r->slots[node->captures[i]].is_taken = true;
        }
    }
    for (int32_t o = 0; o < g->count_outputs; o++) {
        r->slots[g->outputs[o]].last_use = SDX_TIME_FOREVER;
        r->grown[o] = -1;
    }
    if (!r->is_body) claim_outputs(r);
    for (int w = 0; w < shared->threads; w++)
        r->workers[w] = (struct sdx_exec){
            .cx = cx, .worker = w, .cancel = shared->cancel, .threads = shared->threads, .host = r};
    return SDX_OK;
}

void sdx_runner_deinit(struct sdx_runner *r)
{
    if (!r->shared) return;
    struct sdx_mem *mem = r->shared->cx->mem;
    for (struct sdx_segment *s = r->plans, *next; s; s = next) {
        next = s->next;
        sdx_segment_destroy(s);
    }
    for (int d = 0; d < r->count_slabs; d++)
        sdx_mem_free(mem, r->slabs[d].data);
    sdx_mem_free(mem, r->slabs);
    for (int w = 0; r->workers && w < r->shared->threads; w++)
        sdx_mem_free(mem, r->workers[w].scratch);
    sdx_arena_deinit(&r->arena);
    r->shared = NULL;
}

/* ---- bodies ---- */

static enum sdx_status run_body(struct sdx_exec *x, struct sdx_body *body, int count_in,
                                const struct sdx_tensor *const *in, struct sdx_tensor *const **out)
{
    struct sdx_runner *r = &((struct sdx_body_runner *)body)->runner;
    if (count_in != r->g->count_inputs)
        return SDX_FAIL(x->cx, SDX_BAD_MODEL, "body \"%.*s\" has %d inputs, expected %d",
                        SDX_STR_ARG(r->g->name), r->g->count_inputs, count_in);
    SDX_TRY(sdx_runner_run(r, in, NULL, NULL));
    *out = r->outputs;
    return SDX_OK;
}

struct sdx_body *sdx_runner_body(struct sdx_runner *parent, struct sdx_segment *s, int32_t graph)
{
    struct sdx_body_runner *b = sdx_arena_alloc(&s->arena, sizeof *b);
    if (!b) {
        (void)SDX_FAIL_MEMORY(parent->shared->cx);
        return NULL;
    }
    b->body.run = run_body;
    b->next = s->bodies; /* destroyed with the segment, also when it is half built */
    s->bodies = b;
    return sdx_runner_init(&b->runner, parent->shared, graph, parent) == SDX_OK ? &b->body : NULL;
}

/* ---- choosing segments ---- */

static bool is_wide(const struct sdx_segment *s)
{
    for (int32_t i = 0; i < s->list.count; i++)
        if (s->list.steps[i].parts > 1) return true;
    return false;
}

static bool holds(const struct sdx_runner *r, const struct sdx_segment *s)
{
    if (s->grown && memcmp(s->grown, r->grown, (size_t)r->g->count_outputs * sizeof *s->grown) != 0)
        return false;
    for (int32_t i = 0; i < s->count_watches; i++) {
        const struct sdx_watch *w = &s->watches[i];
        const struct sdx_tensor *t = w->tensor;
        if (t->kind != w->kind || t->dtype != w->dtype || t->rank != w->rank) return false;
        if (t->layout != w->layout) return false;
        if (t->layout == SDX_LAYOUT_GROWING && (t->axis != w->axis || t->capacity != w->capacity))
            return false;
        for (int d = 0; d < w->rank; d++)
            if (t->dims[d] != w->dims[d]) return false;
        if (w->bytes && (t->bytes != w->size || memcmp(t->data, w->bytes, w->size) != 0))
            return false;
    }
    return true;
}

/* The variant that fits, moved to the front; or a new one. Drops the one not used for longest
 * beyond the limit. */
static enum sdx_status choose(struct sdx_runner *r, struct sdx_segment **variants, int depth,
                              int32_t node_begin, struct sdx_segment **out)
{
    int count = 0;
    struct sdx_segment **last = NULL;
    for (struct sdx_segment **at = variants; *at; at = &(*at)->next, count++) {
        struct sdx_segment *s = *at;
        if (holds(r, s)) {
            *at = s->next;
            s->next = *variants;
            *variants = s;
            *out = s;
            return SDX_OK;
        }
        last = at;
    }
    if (count >= r->shared->plans) {
        sdx_segment_destroy(*last);
        *last = NULL;
    }
    struct sdx_segment *s = NULL;
    r->settled = NULL; /* planning sets slots */
    SDX_TRY(sdx_segment_create(r, depth, node_begin, &s));
    s->is_wide = is_wide(s);
    s->next = *variants;
    *variants = s;
    *out = s;
    return SDX_OK;
}

/* ---- memory ---- */

static enum sdx_status bind_slab(struct sdx_runner *r, struct sdx_segment *s)
{
    struct sdx_context *cx = r->shared->cx;
    if (s->depth >= r->count_slabs) {
        size_t count = (size_t)s->depth + 8;
        struct sdx_slab *slabs =
            sdx_mem_realloc(cx->mem, SDX_MEM_PLAN, r->slabs, count * sizeof *slabs);
        if (!slabs) return SDX_FAIL_MEMORY(cx);
        memset(slabs + r->count_slabs, 0, (count - (size_t)r->count_slabs) * sizeof *slabs);
        r->slabs = slabs;
        r->count_slabs = (int)count;
    }
    struct sdx_slab *slab = &r->slabs[s->depth];
    size_t size = s->slab_size < 64 ? 64 : s->slab_size;
    if (slab->size < size) {
        sdx_mem_free(cx->mem, slab->data);
        *slab = (struct sdx_slab){0};
        slab->data = sdx_mem_alloc(cx->mem, SDX_MEM_SLAB, size);
        if (!slab->data) return SDX_FAIL_MEMORY(cx);
        slab->size = size;
    }
    if (s->bound != slab->data) {
        for (int32_t i = 0; i < s->count_placed; i++)
            s->placed[i].tensor->data = (char *)slab->data + s->placed[i].offset;
        s->bound = slab->data;
    }
    if (s->scratch > r->scratch) {
        for (int w = 0; w < r->shared->threads; w++) {
            sdx_mem_free(cx->mem, r->workers[w].scratch);
            r->workers[w].scratch = sdx_mem_alloc(cx->mem, SDX_MEM_SCRATCH, s->scratch);
            if (!r->workers[w].scratch) {
                r->scratch = 0;
                return SDX_FAIL_MEMORY(cx);
            }
        }
        r->scratch = s->scratch;
    }
    return SDX_OK;
}

/* A failure to make a result is told in the session's context. */
static enum sdx_status told(const struct sdx_runner *r, enum sdx_status status)
{
    if (status == SDX_OK) return SDX_OK;
    return SDX_FAIL(r->shared->cx, status, "%s", r->shared->results->error.text);
}

/* Memory of the results that this segment's steps write directly. made[o] is set for each. */
static enum sdx_status bind_externals(struct sdx_runner *r, struct sdx_segment *s,
                                      struct sdx_tensor **results, struct sdx_tensor **made)
{
    struct sdx_context *cx = r->shared->cx;
    for (int32_t i = 0; i < s->count_externals; i++) {
        struct sdx_tensor *t = s->externals[i].tensor;
        int32_t o = s->externals[i].output;
        struct sdx_tensor *to = results[o];
        if (to && to->layout == SDX_LAYOUT_GROWING) to = NULL; /* give_results copies */
        if (to && (to->kind != SDX_KIND_TENSOR || to->dtype != t->dtype || to->bytes != t->bytes)) {
            char a[200], b[200];
            return SDX_FAIL(cx, SDX_BAD_INPUT, "output \"%.*s\" was bound to %s, expected %s",
                            SDX_STR_ARG(r->g->values[r->g->outputs[o]].name),
                            sdx_tensor_describe(to, a, sizeof a),
                            sdx_tensor_describe(t, b, sizeof b));
        }
        if (!to) {
            if (!made[o])
                SDX_TRY(told(r, sdx_tensor_new_raw(r->shared->results, t->dtype, t->rank, t->dims,
                                                   &made[o])));
            to = made[o];
        }
        t->data = to->data;
    }
    return SDX_OK;
}

static void bind_aliases(struct sdx_segment *s)
{
    for (int32_t i = 0; i < s->count_aliases; i++) {
        struct sdx_tensor *view = s->aliases[i].view;
        const struct sdx_tensor *root = s->aliases[i].root;
        view->data = root->data ? (char *)root->data + s->aliases[i].shift : NULL;
        if (root->kind == SDX_KIND_TENSOR) continue;
        view->kind = root->kind;
        view->dtype = root->dtype;
        view->items = root->items;
        view->count = root->count;
    }
}

/* ---- running ---- */

struct job {
    struct sdx_runner *r;
    const struct sdx_step *step;
    atomic_int status;
};

static void run_range(void *arg, int64_t part, int64_t end, int worker)
{
    struct job *job = arg;
    const struct sdx_step *step = job->step;
    struct sdx_exec *x = &job->r->workers[worker];
    if (atomic_load_explicit(&job->status, memory_order_relaxed)) return;
    enum sdx_status status = SDX_OK;
    if (atomic_load_explicit(job->r->shared->cancel, memory_order_relaxed))
        status = SDX_CANCELLED;
    else {
        x->part_end = end;
        status = step->run(x, step, part);
    }
    if (status != SDX_OK) atomic_store_explicit(&job->status, (int)status, memory_order_relaxed);
}

/* As sdx_parallel_ranges takes it. */
static int64_t grain_of(struct sdx_pool *pool, int threads, const struct sdx_step *step)
{
    const int taken = sdx_pool_threads_of(pool, threads);
    const int64_t share = (step->parts + taken - 1) / taken;
    if (step->in_ranges) return 0;
    const int64_t calls = (share + step->together - 1) / step->together; /* of as many parts */
    return (share + calls - 1) / calls;
}
static enum sdx_status run_step(struct sdx_runner *r, const struct sdx_step *step, bool use_pool)
{
    struct sdx_pool *pool = use_pool ? r->shared->pool : NULL;
    struct job job = {.r = r, .step = step};
    r->workers[0].pool = step->parts == 1 ? pool : NULL;
    if (step->parts == 1) {
        r->workers[0].part_end = 1;
        return step->run(&r->workers[0], step, 0);
    }
    const int threads = r->shared->threads;
    sdx_parallel_ranges(pool, threads, step->parts, grain_of(pool, threads, step), run_range, &job);
    return (enum sdx_status)atomic_load_explicit(&job.status, memory_order_relaxed);
}

static bool has_body(const struct sdx_ir_node *node)
{
    for (int i = 0; i < node->count_attrs; i++)
        if (node->attrs[i].type == SDX_ATTR_GRAPH) return true;
    return false;
}

static enum sdx_status say_where(const struct sdx_runner *r, const struct sdx_step *step,
                                 enum sdx_status status)
{
    struct sdx_context *cx = r->shared->cx;
    const struct sdx_ir_node *node = &r->g->nodes[step->node];
    if (status == SDX_CANCELLED) {
        (void)SDX_FAIL(cx, SDX_CANCELLED, "the run was cancelled");
        return has_body(node) ? sdx_fail_where(cx, "node \"%.*s\" (%.*s)", SDX_STR_ARG(node->name),
                                               SDX_STR_ARG(node->op_type))
                              : SDX_CANCELLED;
    }
    struct sdx_text inputs;
    sdx_text_init(&inputs, cx->mem);
    for (int i = 0; i < step->count_in && i < 8; i++) {
        char shape[160];
        if (!step->in[i]) continue;
        const char *comma = inputs.len ? ", " : "";
        if (i < node->count_inputs && node->inputs[i] >= 0 && step->count_in == node->count_inputs)
            sdx_text_add(&inputs, "%s%.*s ", comma,
                         SDX_STR_ARG(r->g->values[node->inputs[i]].name));
        else
            sdx_text_add(&inputs, "%s", comma);
        sdx_text_add(&inputs, "%s", sdx_tensor_describe(step->in[i], shape, sizeof shape));
    }
    (void)SDX_FAIL(cx, status, "failed"); /* kept only when the kernel gave no text */
    status = sdx_fail_where(cx, "node \"%.*s\" (%.*s: %.400s)", SDX_STR_ARG(node->name),
                            SDX_STR_ARG(node->op_type), sdx_text_get(&inputs));
    sdx_text_deinit(&inputs);
    return status;
}

static enum sdx_status run_segment(struct sdx_runner *r, struct sdx_segment *s, bool use_pool)
{
    struct sdx_run_shared *shared = r->shared;
    for (int32_t i = 0; i < s->list.count; i++) {
        const struct sdx_step *step = &s->list.steps[i];
        if (atomic_load_explicit(shared->cancel, memory_order_relaxed))
            return SDX_FAIL(shared->cx, SDX_CANCELLED, "the run was cancelled");
        int64_t begin = shared->profile ? sdx_clock_ns() : 0;
        enum sdx_status status = run_step(r, step, use_pool);
        if (status != SDX_OK) return say_where(r, step, status);
        if (shared->profile)
            sdx_profile_record(shared->profile, s->profile_rows[i], begin, sdx_clock_ns(),
                               shared->run_begin_ns);
    }
    return SDX_OK;
}

/* The slots say again what this segment makes: it may not have been the last one planned. */
static void restore_slots(struct sdx_runner *r, const struct sdx_segment *s)
{
    for (int32_t i = 0; i < s->count_produced; i++) {
        struct sdx_slot *slot = &r->slots[s->produced[i].value];
        slot->tensor = s->produced[i].tensor;
        slot->depth = (int16_t)(slot->tensor->is_constant ? -1 : s->depth);
        slot->is_dynamic = s->produced[i].is_dynamic;
    }
}

static void bind_input(struct sdx_tensor *header, const struct sdx_tensor *feed)
{
    header->kind = feed->kind;
    header->dtype = feed->dtype;
    header->rank = feed->rank;
    header->dims = feed->dims;
    header->count = feed->count;
    header->bytes = feed->bytes;
    header->data = feed->data;
    header->items = feed->items;
    header->layout = feed->layout;
    header->axis = feed->axis;
    header->capacity = feed->capacity;
}

bool sdx_runner_takes_growing(const struct sdx_runner *r, int32_t i)
{
    const struct sdx_slot *slot = &r->slots[r->g->inputs[i]];
    return !slot->is_taken && slot->last_use != SDX_TIME_FOREVER;
}

/* Which outputs are bound to tensors that grow and are fed too. */
static void find_grown(struct sdx_runner *r, const struct sdx_tensor *const *feeds,
                       struct sdx_tensor *const *results)
{
    for (int32_t o = 0; o < r->g->count_outputs; o++) {
        r->grown[o] = -1;
        if (!results[o] || results[o]->layout != SDX_LAYOUT_GROWING) continue;
        for (int32_t i = 0; i < r->g->count_inputs; i++)
            if (feeds[i] == results[o]) r->grown[o] = i;
    }
}

enum sdx_status sdx_runner_check_capacity(const struct sdx_runner *r, int32_t o, int64_t length,
                                          const struct sdx_tensor *growing)
{
    if (length <= growing->capacity) return SDX_OK;
    return SDX_FAIL(r->shared->cx, SDX_BAD_INPUT,
                    "output \"%.*s\" has %lld positions on axis %d, expected at most %lld, the "
                    "capacity of its tensor",
                    SDX_STR_ARG(r->g->values[r->g->outputs[o]].name), (long long)length,
                    growing->axis, (long long)growing->capacity);
}

/* Has a tensor that grows room for result `t`? */
static enum sdx_status check_room(struct sdx_runner *r, int32_t o, const struct sdx_tensor *t,
                                  const struct sdx_tensor *growing)
{
    char a[200], b[200];
    bool fits =
        t->kind == SDX_KIND_TENSOR && t->dtype == growing->dtype && t->rank == growing->rank;
    for (int d = 0; fits && d < t->rank; d++)
        fits = d == growing->axis || t->dims[d] == growing->dims[d];
    const struct sdx_str name = r->g->values[r->g->outputs[o]].name;
    if (!fits)
        return SDX_FAIL(r->shared->cx, SDX_BAD_INPUT,
                        "output \"%.*s\" was bound to %s, expected %s", SDX_STR_ARG(name),
                        sdx_tensor_describe(growing, a, sizeof a),
                        sdx_tensor_describe(t, b, sizeof b));
    return sdx_runner_check_capacity(r, o, t->dims[growing->axis], growing);
}

/* What was not made there is copied to the tensors that grow, and their lengths are set. */
static void grow_results(struct sdx_runner *r, struct sdx_tensor **results)
{
    for (int32_t o = 0; o < r->g->count_outputs; o++) {
        struct sdx_tensor *to = results[o];
        const struct sdx_tensor *t = r->slots[r->g->outputs[o]].tensor;
        if (!to || to->layout != SDX_LAYOUT_GROWING) continue;
        const bool is_there = t->data == to->data;
        sdx_tensor_grow_to(to, t->dims[to->axis]);
        if (!is_there) sdx_tensor_copy(t, to, 0, sdx_tensor_copy_parts(t, to));
    }
}

/* Results that were not made in place are copied; shapes of views are put right. */
static enum sdx_status give_results(struct sdx_runner *r, struct sdx_tensor **results,
                                    struct sdx_tensor **made, const bool *wanted)
{
    struct sdx_context *cx = r->shared->cx;
    for (int32_t o = 0; o < r->g->count_outputs; o++) {
        const struct sdx_tensor *t = r->slots[r->g->outputs[o]].tensor;
        if (wanted && !wanted[o]) continue;
        if (results[o] && results[o]->layout == SDX_LAYOUT_GROWING) {
            SDX_TRY(check_room(r, o, t, results[o]));
        } else if (results[o]) {
            if (results[o]->data == t->data && results[o]->kind == SDX_KIND_TENSOR) continue;
            if (results[o]->kind != t->kind || results[o]->dtype != t->dtype ||
                t->kind != SDX_KIND_TENSOR || t->dtype == SDX_STRING ||
                !sdx_dims_equal(results[o]->dims, results[o]->rank, t->dims, t->rank)) {
                char a[200], b[200];
                return SDX_FAIL(cx, SDX_BAD_INPUT, "output \"%.*s\" was bound to %s, expected %s",
                                SDX_STR_ARG(r->g->values[r->g->outputs[o]].name),
                                sdx_tensor_describe(results[o], a, sizeof a),
                                sdx_tensor_describe(t, b, sizeof b));
            }
            if (t->bytes) memcpy(results[o]->data, t->data, t->bytes);
        } else if (!made[o]) {
            SDX_TRY(told(r, sdx_tensor_clone(r->shared->results, t, &made[o])));
        } else if (!sdx_dims_equal(made[o]->dims, made[o]->rank, t->dims, t->rank)) {
            SDX_TRY(told(r, sdx_tensor_reshape(r->shared->results, &made[o], t->rank, t->dims)));
        }
    }
    for (int32_t o = 0; o < r->g->count_outputs; o++) {
        if (results[o]) continue;
        if (wanted && !wanted[o])
            sdx_tensor_release(made[o]);
        else
            results[o] = made[o];
        made[o] = NULL;
    }
    return SDX_OK;
}

/* The workers are told of a run when it is long enough, as far as the last one tells, or follows
 * another so closely that they are awake. Parts, and so results, are the same either way. */
static bool begin_wide(struct sdx_runner *r)
{
    struct sdx_run_shared *shared = r->shared;
    if (shared->threads == 1) return false;
    int64_t now = sdx_clock_ns(), gap = now - r->last_begin_ns - r->last_ns;
    bool use_pool = r->last_ns == 0 || r->last_ns >= COLD_NS || gap < GAP_NS;
    if (use_pool) sdx_pool_run_begin(shared->pool, shared->threads);
    r->last_begin_ns = now;
    return use_pool;
}

static void end_wide(struct sdx_runner *r, bool use_pool)
{
    if (r->shared->threads == 1) return;
    r->last_ns = sdx_clock_ns() - r->last_begin_ns;
    if (use_pool) sdx_pool_run_end(r->shared->pool, r->shared->threads);
}

/* *wide, *use_pool: of the path so far. */
static enum sdx_status run_path(struct sdx_runner *r, struct sdx_tensor **results,
                                struct sdx_tensor **made, bool *wide, bool *use_pool)
{
    struct sdx_segment **variants = &r->plans;
    int32_t node_begin = 0;
    for (int depth = 0;; depth++) {
        struct sdx_segment *s = NULL;
        if (depth >= SDX_SEGMENTS_MAX)
            return SDX_FAIL(r->shared->cx, SDX_NOT_SUPPORTED, "more than %d shapes depend on data",
                            SDX_SEGMENTS_MAX);
        SDX_TRY(choose(r, variants, depth, node_begin, &s));
        SDX_TRY(bind_slab(r, s));
        if (results) SDX_TRY(bind_externals(r, s, results, made));
        bind_aliases(s);
        if (r->settled != s) {
            restore_slots(r, s);
            r->settled = depth == 0 && s->is_last ? s : NULL;
        }
        if (s->is_wide && !*wide) {
            *wide = true;
            *use_pool = begin_wide(r);
        }
        SDX_TRY(run_segment(r, s, *use_pool));
        if (s->is_last) return SDX_OK;
        variants = &s->children;
        node_begin = s->node_end;
    }
}

static enum sdx_status run(struct sdx_runner *r, struct sdx_tensor **results,
                           struct sdx_tensor **made)
{
    bool wide = false, use_pool = false;
    enum sdx_status status = run_path(r, results, made, &wide, &use_pool);
    if (wide) end_wide(r, use_pool);
    return status;
}

enum sdx_status sdx_runner_run(struct sdx_runner *r, const struct sdx_tensor *const *feeds,
                               struct sdx_tensor **results, const bool *wanted)
{
    const struct sdx_ir_graph *g = r->g;
    for (int32_t i = 0; i < g->count_inputs; i++) {
        const struct sdx_tensor *feed = feeds[i] ? feeds[i] : g->values[g->inputs[i]].constant;
        if (!feed)
            return SDX_FAIL(r->shared->cx, SDX_BAD_INPUT, "input \"%.*s\" was not given",
                            SDX_STR_ARG(g->values[g->inputs[i]].name));
        bind_input(&r->inputs[i], feed);
    }
    if (r->is_body) {
        SDX_TRY(run(r, NULL, NULL));
        for (int32_t o = 0; o < g->count_outputs; o++)
            r->outputs[o] = r->slots[g->outputs[o]].tensor;
        return SDX_OK;
    }
    struct sdx_tensor *small[16], **made = small;
    if (g->count_outputs > 16) {
        made = sdx_mem_alloc(r->shared->cx->mem, SDX_MEM_OTHER,
                             (size_t)g->count_outputs * sizeof *made);
        if (!made) return SDX_FAIL_MEMORY(r->shared->cx);
    }
    for (int32_t o = 0; o < g->count_outputs; o++)
        made[o] = NULL;
    find_grown(r, feeds, results);
    enum sdx_status status = run(r, results, made);
    if (status == SDX_OK) status = give_results(r, results, made, wanted);
    if (status == SDX_OK) grow_results(r, results);
    for (int32_t o = 0; o < g->count_outputs; o++)
        sdx_tensor_release(made[o]);
    if (made != small) sdx_mem_free(r->shared->cx->mem, made);
    return status;
}
