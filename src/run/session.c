/* SPDX-License-Identifier: Apache-2.0
 * Sessions: options, matching of names, checks of what is fed. */
#include "run/session.h"

#include "base/thread_pool.h"
#include "run/custom_nodes.h"
#include "run/tune.h"

static enum sdx_status init_maps(struct sdx_session *s)
{
    const struct sdx_model *m = s->model;
    const size_t inputs = (size_t)m->count_inputs + 1, outputs = (size_t)m->count_outputs + 1;
    bool ok = true;
    for (int32_t i = 0; i < m->count_inputs; i++)
        ok = ok && sdx_map_put(&s->input_index, sdx_str(m->inputs[i].name), i);
    for (int32_t o = m->count_outputs - 1; o >= 0; o--)
        ok = ok && sdx_map_put(&s->output_index, sdx_str(m->outputs[o].name), o);
    s->feeds = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, inputs, sizeof *s->feeds);
    s->stand_ins = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, inputs, sizeof *s->stand_ins);
    s->results = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, outputs, sizeof *s->results);
    s->wanted = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, outputs, sizeof *s->wanted);
    s->feed_order = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, inputs, sizeof *s->feed_order);
    s->output_order = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, outputs, sizeof *s->output_order);
    if (!ok || !s->feeds || !s->stand_ins || !s->results || !s->wanted || !s->feed_order ||
        !s->output_order)
        return SDX_FAIL_MEMORY(&s->cx);
    for (int32_t o = 0; o < m->count_outputs; o++) /* of two of one name each is its own */
        s->output_order[o] = o;
    return SDX_OK;
}

/* Finds the axes of inputs that have one name. */
static enum sdx_status find_alike(struct sdx_session *s)
{
    const struct sdx_model *m = s->model;
    struct sdx_map firsts;
    int32_t room = 0;
    bool ok = true;
    for (int32_t i = 0; i < m->count_inputs; i++)
        room += m->inputs[i].rank > 0 ? m->inputs[i].rank : 0;
    s->alike = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, (size_t)room + 1, sizeof *s->alike);
    if (!s->alike) return SDX_FAIL_MEMORY(&s->cx);
    sdx_map_init(&firsts, &s->mem);
    for (int32_t i = 0; i < m->count_inputs; i++) {
        const struct sdx_value_info *info = &m->inputs[i];
        for (int d = 0; info->dim_names && info->kind == SDX_KIND_TENSOR && d < info->rank; d++) {
            if (!info->dim_names[d] || info->dims[d] >= 0) continue;
            const struct sdx_str name = sdx_str(info->dim_names[d]);
            const int32_t first = sdx_map_get(&firsts, name);
            if (first < 0)
                ok = ok && sdx_map_put(&firsts, name, i * SDX_RANK_MAX + d);
            else
                s->alike[s->count_alike++] =
                    (struct sdx_alike){i, d, first / SDX_RANK_MAX, first % SDX_RANK_MAX};
        }
    }
    sdx_map_deinit(&firsts);
    return ok ? SDX_OK : SDX_FAIL_MEMORY(&s->cx);
}

/* Do two lengths that have one name differ in what is fed? */
static bool differs(const struct sdx_session *s)
{
    for (int32_t k = 0; k < s->count_alike; k++) {
        const struct sdx_alike *a = &s->alike[k];
        const struct sdx_tensor *x = s->feeds[a->input], *y = s->feeds[a->first];
        if (x && y && x->kind == SDX_KIND_TENSOR && y->kind == SDX_KIND_TENSOR &&
            a->axis < x->rank && a->first_axis < y->rank &&
            x->dims[a->axis] != y->dims[a->first_axis])
            return true;
    }
    return false;
}

/* graph->shared has all but the graph and its operators. */
static enum sdx_status init_graph(struct sdx_session *s, bool open, struct sdx_session_graph *graph)
{
    struct sdx_run_shared *shared = &graph->shared;
    shared->customs = NULL;
    SDX_TRY(sdx_model_graph_get(&s->cx, s->model, s->level, open, &shared->ir));
    SDX_TRY(sdx_custom_nodes_create(&s->cx, shared->ir, s->model->store, &shared->customs));
    return sdx_runner_init(&graph->runner, &graph->shared, 0, NULL);
}

static void deinit_graph(struct sdx_session_graph *graph)
{
    sdx_runner_deinit(&graph->runner);
    sdx_custom_nodes_destroy(graph->shared.customs);
}

static enum sdx_status open_session(struct sdx_session *s,
                                    const struct sdx_session_options *options)
{
    int threads = options->threads > 0 ? options->threads : sdx_pool_threads(s->cx.pool);
    if (threads > sdx_pool_threads(s->cx.pool)) {
        s->own_pool = sdx_pool_create(&s->mem, threads);
        if (!s->own_pool) return SDX_FAIL_MEMORY(&s->cx);
    }
    s->level = options->level;
    if (options->profile) sdx_profile_init(&s->profile, &s->mem);
    s->cancel_holds = options->cancel_holds;
    s->graph.shared = (struct sdx_run_shared){.cx = &s->cx,
                                              .results = &s->results_cx,
                                              .store = s->model->store,
                                              .pool = s->own_pool ? s->own_pool : s->cx.pool,
                                              .threads = threads,
                                              .plans = options->plans > 0 ? options->plans : 8,
                                              .cancel = &s->cancel,
                                              .profile = options->profile ? &s->profile : NULL};
    if (options->tune) SDX_TRY(sdx_tune_open(&s->cx, &s->graph.shared.tune));
    SDX_TRY(init_graph(s, false, &s->graph));
    SDX_TRY(find_alike(s));
    return init_maps(s);
}

struct sdx_session *sdx_session_new(struct sdx_context *cx, struct sdx_model *model,
                                    size_t memory_limit)
{
    struct sdx_session *s = sdx_mem_calloc(cx->mem, SDX_MEM_PLAN, 1, sizeof *s);
    if (!s) return NULL;
    s->user = cx;
    s->model = model;
    sdx_mem_init(&s->mem, &model->mem, memory_limit);
    sdx_context_init_child(&s->cx, cx);
    sdx_context_init_child(&s->results_cx, cx);
    s->cx.mem = &s->mem;
    sdx_map_init(&s->input_index, &s->mem);
    sdx_map_init(&s->output_index, &s->mem);
    return s;
}

enum sdx_status sdx_session_open(struct sdx_context *cx, struct sdx_model *model,
                                 const struct sdx_session_options *options,
                                 struct sdx_session **out)
{
    *out = NULL;
    struct sdx_session *s = sdx_session_new(cx, model, options->memory_limit);
    if (!s) return SDX_FAIL_MEMORY(cx);
    enum sdx_status status = open_session(s, options);
    if (status == SDX_OK)
        *out = s;
    else {
        (void)SDX_FAIL(cx, status, "%s", s->cx.error.text);
        sdx_session_close(s);
    }
    return status;
}

static void release_stand_ins(struct sdx_session *s)
{
    for (int32_t i = 0; s->stand_ins && i < s->model->count_inputs; i++) {
        sdx_tensor_release(s->stand_ins[i]);
        s->stand_ins[i] = NULL;
    }
}

void sdx_session_close(struct sdx_session *s)
{
    if (!s) return;
    deinit_graph(&s->graph);
    if (s->open_graph) deinit_graph(s->open_graph);
    sdx_mem_free(&s->mem, s->open_graph);
    sdx_tune_close(s->graph.shared.tune);
    if (s->graph.shared.profile) sdx_profile_deinit(&s->profile);
    sdx_pool_destroy(s->own_pool);
    sdx_map_deinit(&s->input_index);
    sdx_map_deinit(&s->output_index);
    release_stand_ins(s);
    sdx_mem_free(&s->mem, s->feeds);
    sdx_mem_free(&s->mem, s->stand_ins);
    sdx_mem_free(&s->mem, s->results);
    sdx_mem_free(&s->mem, s->wanted);
    sdx_mem_free(&s->mem, s->feed_order);
    sdx_mem_free(&s->mem, s->output_order);
    sdx_mem_free(&s->mem, s->alike);
    sdx_mem_free(s->user->mem, s);
}

/* A scalar is often fed as an array of one element. */
static bool is_scalar_as_array(const struct sdx_value_info *info, const struct sdx_tensor *t)
{
    return info->kind == SDX_KIND_TENSOR && info->rank == 0 && t->kind == SDX_KIND_TENSOR &&
           t->rank > 0 && t->count == 1 && t->dtype != SDX_STRING;
}

/* Unknown and symbolic lengths take anything. */
enum sdx_status sdx_session_check_feed(struct sdx_session *s, const struct sdx_value_info *info,
                                       const struct sdx_feed *feed)
{
    char text[256];
    const struct sdx_tensor *t = feed->value;
    if (!info)
        return SDX_FAIL(&s->cx, SDX_NOT_FOUND, "no input is named \"%s\"",
                        feed->name ? feed->name : "");
    if (!t) return SDX_FAIL(&s->cx, SDX_INVALID_ARGUMENT, "input \"%s\" has no value", feed->name);
    bool fits = info->kind == SDX_KIND_NONE || info->kind == (enum sdx_kind)t->kind;
    if (info->kind == SDX_KIND_OPTIONAL)
        fits = true; /* an optional of a tensor may be fed as the tensor */
    if (fits && t->kind == SDX_KIND_TENSOR) {
        fits = info->dtype == SDX_DTYPE_NONE || info->dtype == (enum sdx_dtype)t->dtype;
        if (fits && info->rank >= 0) fits = info->rank == t->rank || is_scalar_as_array(info, t);
        for (int d = 0; fits && d < info->rank; d++)
            fits = info->dims[d] < 0 || info->dims[d] == t->dims[d];
    }
    if (fits) return SDX_OK;
    return SDX_FAIL(&s->cx, SDX_BAD_INPUT, "input \"%s\": found %s, expected %s", info->name,
                    sdx_tensor_describe(t, text, sizeof text), info->type);
}

/* What is fed instead of input `i` where the run, whose input `at` it is, cannot take it as it is.
 */
static enum sdx_status stand_in(struct sdx_session *s, int32_t i, const struct sdx_runner *runner,
                                int32_t at)
{
    const struct sdx_tensor *t = s->feeds[i];
    struct sdx_tensor **to = &s->stand_ins[i];
    if (is_scalar_as_array(&s->model->inputs[i], t))
        return sdx_tensor_new_view(&s->cx, t->dtype, 0, NULL, t->data, to);
    if (t->layout == SDX_LAYOUT_GROWING && !sdx_runner_takes_growing(runner, at))
        return sdx_tensor_clone(&s->cx, t, to);
    return SDX_OK;
}

/* Where input `i` is not fed: an optional is empty, and of what nothing reads the type will do. */
static enum sdx_status stand_in_for_nothing(struct sdx_session *s, int32_t i)
{
    static char nothing;
    const struct sdx_value_info *info = &s->model->inputs[i];
    struct sdx_tensor **to = &s->stand_ins[i];
    int64_t dims[SDX_RANK_MAX];
    if (info->kind == SDX_KIND_OPTIONAL || (info->kind == SDX_KIND_SEQUENCE && info->unused))
        return sdx_tensor_new_items(&s->cx, (int)info->kind, (int)info->dtype, 0, NULL, 0, NULL,
                                    to);
    if (!info->unused || info->optional || info->kind != SDX_KIND_TENSOR) return SDX_OK;
    for (int d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] < 0 ? 0 : info->dims[d];
    const int rank = info->rank < 0 ? 0 : info->rank;
    return info->dtype == SDX_STRING
               ? sdx_tensor_new(&s->cx, SDX_STRING, rank, dims, to)
               : sdx_tensor_new_view(&s->cx, (int)info->dtype, rank, dims, &nothing, to);
}

/* Index of the input that feed `f` names, -1: none. Most callers name the same in every run. */
static int32_t find_input(struct sdx_session *s, int f, const char *name)
{
    bool has_guess = f < s->model->count_inputs;
    if (has_guess && strcmp(name, s->model->inputs[s->feed_order[f]].name) == 0)
        return s->feed_order[f];
    int32_t i = sdx_map_get(&s->input_index, sdx_str(name));
    if (has_guess && i >= 0) s->feed_order[f] = i;
    return i;
}

static int32_t find_output(struct sdx_session *s, int k, const char *name)
{
    bool has_guess = k < s->model->count_outputs;
    if (has_guess && strcmp(name, s->model->outputs[s->output_order[k]].name) == 0)
        return s->output_order[k];
    int32_t o = sdx_map_get(&s->output_index, sdx_str(name));
    if (has_guess && o >= 0) s->output_order[k] = o;
    return o;
}

static enum sdx_status get_open_graph(struct sdx_session *s)
{
    if (s->open_graph) return SDX_OK;
    struct sdx_session_graph *graph = sdx_mem_calloc(&s->mem, SDX_MEM_PLAN, 1, sizeof *graph);
    if (!graph) return SDX_FAIL_MEMORY(&s->cx);
    graph->shared = s->graph.shared;
    enum sdx_status status = init_graph(s, true, graph);
    if (status == SDX_OK) {
        s->open_graph = graph;
        return SDX_OK;
    }
    deinit_graph(graph);
    sdx_mem_free(&s->mem, graph);
    return status;
}

/* Leaves in s->feeds what the inputs of *graph are fed, the one that runs. */
static enum sdx_status take_feeds(struct sdx_session *s, int count_feeds,
                                  const struct sdx_feed *feeds, struct sdx_session_graph **graph)
{
    const struct sdx_value_info *inputs = s->model->inputs;
    bool open = false;
    release_stand_ins(s);
    for (int32_t i = 0; i < s->model->count_inputs; i++)
        s->feeds[i] = NULL;
    for (int f = 0; f < count_feeds; f++) {
        int32_t i = feeds[f].name ? find_input(s, f, feeds[f].name) : -1;
        SDX_TRY(sdx_session_check_feed(s, i < 0 ? NULL : &inputs[i], &feeds[f]));
        s->feeds[i] = feeds[f].value;
        open = open || inputs[i].optional;
    }
    open = open || differs(s);
    if (open) SDX_TRY(get_open_graph(s));
    *graph = open ? s->open_graph : &s->graph;
    int32_t at = 0;
    for (int32_t i = 0; i < s->model->count_inputs; i++) {
        if (inputs[i].optional && !open) continue; /* a constant there */
        SDX_TRY(s->feeds[i] ? stand_in(s, i, &(*graph)->runner, at) : stand_in_for_nothing(s, i));
        s->feeds[at++] = s->stand_ins[i] ? s->stand_ins[i] : s->feeds[i];
    }
    return SDX_OK;
}

static enum sdx_status take_outputs(struct sdx_session *s, int count, const char *const *names,
                                    struct sdx_tensor **outputs)
{
    const int32_t total = s->model->count_outputs;
    if (!names && count != total)
        return SDX_FAIL(&s->cx, SDX_INVALID_ARGUMENT, "room for %d outputs, the model has %d",
                        count, total);
    for (int32_t o = 0; o < total; o++) {
        s->results[o] = names ? NULL : outputs[o];
        s->wanted[o] = !names;
    }
    for (int k = 0; names && k < count; k++) {
        int32_t o = names[k] ? find_output(s, k, names[k]) : -1;
        if (o < 0)
            return SDX_FAIL(&s->cx, SDX_NOT_FOUND, "no output is named \"%s\"",
                            names[k] ? names[k] : "");
        if (s->wanted[o])
            return SDX_FAIL(&s->cx, SDX_INVALID_ARGUMENT, "output \"%s\" is asked for twice",
                            names[k]);
        s->wanted[o] = true;
        s->results[o] = outputs[k];
    }
    for (int32_t o = 0; o < total; o++)
        for (int32_t i = 0; i < o && s->results[o]; i++)
            if (s->results[i] == s->results[o])
                return SDX_FAIL(&s->cx, SDX_INVALID_ARGUMENT,
                                "outputs \"%s\" and \"%s\" are bound to one tensor",
                                s->model->outputs[i].name, s->model->outputs[o].name);
    return SDX_OK;
}

enum sdx_status sdx_session_run(struct sdx_session *s, int count_feeds,
                                const struct sdx_feed *feeds, int count_outputs,
                                const char *const *names, struct sdx_tensor **outputs)
{
    sdx_context_clear(&s->cx);
    sdx_context_clear(&s->results_cx);
    if (!s->cancel_holds && atomic_load_explicit(&s->cancel, memory_order_relaxed))
        atomic_store_explicit(&s->cancel, 0, memory_order_relaxed);
    struct sdx_session_graph *graph = NULL;
    enum sdx_status status = take_feeds(s, count_feeds, feeds, &graph);
    if (status == SDX_OK) status = take_outputs(s, count_outputs, names, outputs);
    if (status == SDX_OK) {
        graph->shared.run_begin_ns = graph->shared.profile ? sdx_clock_ns() : 0;
        status = sdx_runner_run(&graph->runner, s->feeds, s->results, s->wanted);
        if (graph->shared.tune) sdx_tune_save(graph->shared.tune);
    }
    if (status != SDX_OK) return SDX_FAIL(s->user, status, "%s", s->cx.error.text);
    for (int k = 0; k < count_outputs; k++)
        outputs[k] = s->results[names ? s->output_order[k] : k];
    return SDX_OK;
}
