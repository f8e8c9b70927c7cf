/* SPDX-License-Identifier: Apache-2.0
 * Export: what comes back from an import of it is the same graph, for every model of the standard's
 * suite; names, outputs and versions where they need care. */
#include "make_model.h"
#include "unit.h"

#include "data.h"
#include "ir/ir_export.h"
#include "proto/tensor_data.h"

struct trip {
    struct unit unit;
    struct sdx_arena arena;
    struct sdx_external ex;
    struct sdx_ir *irs[8];
    int count;
};

static void trip_begin(struct trip *t)
{
    static const unsigned char nothing[1];
    memset(t, 0, sizeof *t);
    unit_init(&t->unit);
    sdx_arena_init(&t->arena, &t->unit.mem, SDX_MEM_MODEL);
    sdx_external_init(&t->ex, &t->arena, NULL);
    t->ex.section = nothing; /* as in a plan file: versions are kept */
}

static void trip_end(struct trip *t)
{
    for (int i = 0; i < t->count; i++)
        sdx_ir_deinit(t->irs[i]);
    sdx_external_deinit(&t->ex);
    sdx_arena_deinit(&t->arena);
    unit_deinit(&t->unit);
}

static struct sdx_ir *import(struct trip *t, const char *name, const struct sdx_onnx_model *model)
{
    struct sdx_ir *ir = NULL;
    if (sdx_ir_import(&t->unit.cx, &t->arena, &t->ex, model, &ir) != SDX_OK)
        fail_msg("%s: %s", name, t->unit.cx.error.text);
    t->irs[t->count++] = ir;
    return ir;
}

/* Exported, written, read. */
static struct sdx_onnx_model *rewrite(struct trip *t, const char *name, const struct sdx_ir *ir,
                                      const struct sdx_onnx_model *from)
{
    const struct sdx_ir_export options = {.from = from, .with_types = true, .keeps_versions = true};
    struct sdx_onnx_model *model = NULL;
    struct sdx_text bytes;
    sdx_text_init(&bytes, &t->unit.mem);
    if (sdx_ir_export(&t->unit.cx, &t->arena, ir, &options, &model) != SDX_OK ||
        sdx_onnx_write_model_text(&t->unit.cx, model, &bytes) != SDX_OK)
        fail_msg("%s: %s", name, t->unit.cx.error.text);
    const void *kept = sdx_arena_copy(&t->arena, sdx_text_get(&bytes), bytes.len + 1);
    if (sdx_onnx_read_model(&t->unit.cx, &t->arena, kept, bytes.len, &model) != SDX_OK)
        fail_msg("%s: %s", name, t->unit.cx.error.text);
    sdx_text_deinit(&bytes);
    return model;
}

static void add_line(const char *line, void *user)
{
    sdx_text_add(user, "%s\n", line);
}

static void print(struct trip *t, const struct sdx_ir *ir, struct sdx_text *text)
{
    sdx_text_init(text, &t->unit.mem);
    assert_int_equal(sdx_ir_print(&t->unit.cx, ir, add_line, text), SDX_OK);
}

/* The first export may rename values; from then on nothing changes. */
static void check_trip(const char *name, const void *bytes, size_t size)
{
    struct trip t;
    struct sdx_onnx_model *first = NULL;
    struct sdx_text texts[2];
    trip_begin(&t);
    t.ex.section = NULL;
    if (sdx_onnx_read_model(&t.unit.cx, &t.arena, bytes, size, &first) == SDX_OK) {
        const struct sdx_ir *ir = import(&t, name, first);
        t.ex.section = (const unsigned char *)"";
        const struct sdx_onnx_model *second = rewrite(&t, name, ir, first);
        const struct sdx_ir *again = import(&t, name, second);
        const struct sdx_onnx_model *third = rewrite(&t, name, again, second);
        const struct sdx_ir *last = import(&t, name, third);
        for (int32_t g = 0; g < ir->count_graphs; g++)
            assert_true(again->graphs[g].count_nodes >= ir->graphs[g].count_nodes);
        assert_int_equal(ir->count_graphs, again->count_graphs);
        if (sdx_ir_verify(&t.unit.cx, again) != SDX_OK)
            fail_msg("%s: %s", name, t.unit.cx.error.text);
        print(&t, again, &texts[0]);
        print(&t, last, &texts[1]);
        if (strcmp(sdx_text_get(&texts[0]), sdx_text_get(&texts[1])) != 0)
            fail_msg("%s:\n%s\nbecame\n%s", name, sdx_text_get(&texts[0]), sdx_text_get(&texts[1]));
        sdx_text_deinit(&texts[0]);
        sdx_text_deinit(&texts[1]);
    }
    trip_end(&t);
}

static int count_models;

static int visit(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    struct unit unit;
    struct sdx_file_map map;
    if (kind != FTW_F || strcmp(path + ftw->base, "model.onnx") != 0) return 0;
    if (info->st_size > 1 << 20) return 0;
    unit_init(&unit);
    if (sdx_file_map_open(&unit.cx, path, &map) != SDX_OK) fail_msg("%s", unit.cx.error.text);
    check_trip(path, map.data, map.size);
    sdx_file_map_close(&map);
    count_models++;
    return 0;
}

static void suite(void **state)
{
    (void)state;
    char path[300];
    if (!data_path("suite", path, sizeof path)) skip();
    nftw(path, visit, 16, 0);
    printf("%d models\n", count_models);
    assert_true(count_models > 0);
}

/* y = Relu(x), given out as y and z; names of passes' making that clash. */
static void outputs_have_their_names(void **state)
{
    (void)state;
    struct trip t;
    struct make m;
    const int64_t dims[] = {2};
    trip_begin(&t);
    make_init(&m);
    make_input(&m, "x", SDX_F32, 1, dims);
    make_node(&m, "Relu", "x -> y");
    make_node(&m, "Neg", "y -> w");
    make_node(&m, "Abs", "y -> z");
    make_output(&m, "y", SDX_F32, 1, dims);
    make_output(&m, "z", SDX_F32, 1, dims);
    struct sdx_onnx_opset opset = {.version = 17, .has_version = true};
    const struct sdx_onnx_model model = {
        .ir_version = 8, .has_ir_version = true, .opsets = {&opset, 1}, .graph = &m.graph};
    struct sdx_ir *ir = import(&t, "outputs", &model);
    struct sdx_ir_graph *g = &ir->graphs[0];
    g->outputs[1] = g->outputs[0]; /* as when a pass finds that Abs does nothing */
    g->nodes[1].opset = 6;         /* and another takes an older Neg */
    g->values[g->nodes[1].outputs[0]].name = SDX_STR("z");
    const struct sdx_onnx_model *out = rewrite(&t, "outputs", ir, &model);
    const struct sdx_onnx_nodes *nodes = &out->graph->nodes;
    assert_int_equal(out->graph->outputs.count, 2);
    assert_true(sdx_str_is(out->graph->outputs.at[0].name, "y"));
    assert_true(sdx_str_is(out->graph->outputs.at[1].name, "z"));
    const struct sdx_onnx_node *last = &nodes->at[nodes->count - 1];
    assert_true(sdx_str_is(last->op_type, "Identity"));
    assert_true(sdx_str_is(last->inputs.at[0], "y"));
    assert_true(sdx_str_is(last->outputs.at[0], "z"));
    const struct sdx_ir *again = import(&t, "outputs", out);
    assert_int_equal(again->graphs[0].nodes[1].opset, 6);
    assert_int_equal(again->graphs[0].nodes[0].opset, 17);
    /* without leave to keep versions it is an error */
    struct sdx_onnx_model *none = NULL;
    const struct sdx_ir_export plain = {.from = &model};
    assert_int_equal(sdx_ir_export(&t.unit.cx, &t.arena, ir, &plain, &none), SDX_NOT_SUPPORTED);
    assert_contains(t.unit.cx.error.text, "is of version 6, but the model imports version 17");
    assert_null(none);
    trip_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_have_their_names),
        cmocka_unit_test(suite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
