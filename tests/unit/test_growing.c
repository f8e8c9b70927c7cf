/* SPDX-License-Identifier: Apache-2.0
 * Tensors that grow: what a decoder hands from run to run is written behind what is there. The bits
 * are those of runs that copy, in graphs where the output is made in place and where it cannot be,
 * and over a model of the zoo. */
#include <pthread.h>

#include "unit.h"

#include "make_model.h"
#include "run/session.h"

enum { BATCH = 2, HEADS = 3, SIZE = 5, CAPACITY = 40, STEPS = 6 };

struct fixture {
    char path[300];
    bool is_ours; /* the file goes with the fixture */
    sdx_context *cx;
    sdx_model *model;
    sdx_session *session;
};

static void open_path(struct fixture *f, int threads)
{
    sdx_session_options options;
    sdx_session_options_init(&options);
    options.threads = threads;
    f->cx = sdx_context_create(NULL);
    assert_non_null(f->cx);
    if (sdx_model_open(f->cx, f->path, NULL, &f->model) ||
        sdx_session_create(f->cx, f->model, &options, &f->session))
        fail_msg("%s", sdx_error(f->cx));
}

static void open_fixture(struct fixture *f, struct make *m)
{
    make_write(m, f->path, sizeof f->path);
    f->is_ours = true;
    open_path(f, 3);
}

static void close_fixture(struct fixture *f)
{
    sdx_session_destroy(f->session);
    sdx_model_destroy(f->model);
    sdx_context_destroy(f->cx);
    if (f->is_ours) unlink(f->path);
}

static sdx_tensor *create(struct fixture *f, int rank, const int64_t *dims, int seed)
{
    sdx_tensor *t = NULL;
    if (sdx_tensor_create(f->cx, SDX_F32, rank, dims, &t)) fail_msg("%s", sdx_error(f->cx));
    float *data = sdx_tensor_data(t);
    for (int64_t i = 0; i < sdx_tensor_count(t); i++)
        data[i] = (float)((i * 37 + seed * 101) % 64) / 16 - 2;
    return t;
}

static sdx_tensor *growing(struct fixture *f, int rank, const int64_t *dims, int axis,
                           int64_t capacity)
{
    sdx_tensor *t = NULL;
    if (sdx_tensor_create_growing(f->cx, SDX_F32, rank, dims, axis, capacity, &t))
        fail_msg("%s", sdx_error(f->cx));
    return t;
}

/* Equal in shape and in every bit. */
static void assert_same(const sdx_tensor *found, const sdx_tensor *expected)
{
    sdx_difference d;
    const sdx_tolerance exact = {.size = sizeof exact};
    sdx_compare(found, expected, &exact, &d);
    assert_true(d.same_type);
    assert_int_equal(d.count_bad, 0);
    for (int64_t i = 0; i < sdx_tensor_count(found); i++) {
        const double a = sdx_tensor_f64(found, i), b = sdx_tensor_f64(expected, i);
        if (memcmp(&a, &b, sizeof a) != 0) fail_msg("element %lld: %g, not %g", (long long)i, a, b);
    }
}

/* ---- the tensors themselves ---- */

static void test_tensor(void **state)
{
    (void)state;
    struct fixture f = {.cx = sdx_context_create(NULL)};
    sdx_tensor *t = growing(&f, 3, (int64_t[]){2, 1, 2}, 1, 3), *bad = NULL, *back = NULL;
    assert_int_equal(sdx_tensor_capacity(t), 3);
    assert_int_equal(sdx_tensor_count(t), 4);
    assert_int_equal(sdx_tensor_bytes(t), 2 * 3 * 2 * 4);
    float *data = sdx_tensor_data(t);
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    assert_true(sdx_tensor_f64(t, 1) == 1 && sdx_tensor_f64(t, 2) == 6);
    assert_int_equal(sdx_tensor_set_length(f.cx, t, 2), SDX_OK);
    assert_int_equal(sdx_tensor_dims(t)[1], 2);
    static const float used[] = {0, 1, 2, 3, 6, 7, 8, 9};
    for (int i = 0; i < 8; i++)
        assert_true(sdx_tensor_f64(t, i) == (double)used[i] && sdx_tensor_i64(t, i) == used[i]);
    char path[64];
    snprintf(path, sizeof path, "/tmp/sdx_growing_%ld.npy", (long)getpid());
    assert_int_equal(sdx_tensor_save_npy(f.cx, path, t), SDX_OK);
    assert_int_equal(sdx_tensor_load_npy(f.cx, path, &back), SDX_OK);
    assert_int_equal(sdx_tensor_capacity(back), -1);
    assert_same(back, t);
    sdx_tensor_destroy(back);
    assert_int_equal(
        sdx_tensor_save_npz(f.cx, path, 2, (const char *[]){"a", "b"}, (sdx_tensor *[]){t, t}),
        SDX_OK);
    assert_int_equal(sdx_tensor_load_npz(f.cx, path, "b", &back), SDX_OK);
    assert_same(back, t);
    assert_int_equal(sdx_tensor_save_pb(f.cx, path, "t", t), SDX_OK);
    sdx_tensor_destroy(back);
    assert_int_equal(sdx_tensor_load_pb(f.cx, path, SDX_KIND_TENSOR, &back), SDX_OK);
    assert_same(back, t);
    unlink(path);
    assert_int_equal(sdx_tensor_set_length(f.cx, t, 4), SDX_INVALID_ARGUMENT);
    assert_string_equal(sdx_error(f.cx), "length 4, expected 0 to the capacity, 3");
    assert_int_equal(sdx_tensor_set_length(f.cx, back, 1), SDX_INVALID_ARGUMENT);
    const int64_t dims[] = {2, 5, 2};
    assert_int_equal(sdx_tensor_create_growing(f.cx, SDX_F32, 3, dims, 1, 4, &bad),
                     SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_tensor_create_growing(f.cx, SDX_F32, 3, dims, 3, 9, &bad),
                     SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_tensor_create_growing(f.cx, SDX_I4, 3, dims, 1, 9, &bad),
                     SDX_INVALID_ARGUMENT);
    assert_string_equal(sdx_error(f.cx), "a tensor of type int4 cannot grow");
    assert_int_equal(sdx_tensor_create_growing(f.cx, SDX_F32, 3, dims, 1, INT64_MAX / 4, &bad),
                     SDX_INVALID_ARGUMENT);
    assert_int_equal(sdx_value_create(f.cx, SDX_KIND_SEQUENCE, SDX_F32, 1, &t, &bad),
                     SDX_INVALID_ARGUMENT);
    assert_null(bad);
    sdx_tensor_destroy(back);
    sdx_tensor_destroy(t);
    sdx_context_destroy(f.cx);
}

/* ---- decoders ---- */

/* past, x and q to present; the rest of the graph is the caller's. */
static void make_start(struct make *m)
{
    make_init(m);
    make_input(m, "past", SDX_F32, 4, (int64_t[]){BATCH, HEADS, -1, SIZE});
    make_input(m, "x", SDX_F32, 4, (int64_t[]){BATCH, HEADS, -1, SIZE});
    make_input(m, "q", SDX_F32, 4, (int64_t[]){BATCH, HEADS, -1, SIZE});
    m->types[1].dims[2].param = SDX_STR("M");
    m->types[2].dims[2].param = SDX_STR("M");
}

static void make_end(struct make *m)
{
    make_output(m, "y", SDX_F32, -1, NULL);
    make_output(m, "present", SDX_F32, -1, NULL);
}

static void make_concat(struct make *m, const char *names)
{
    make_attr_int(make_node(m, "Concat", names), "axis", -2);
}

/* The form that the pass `attention` recognises. */
static void make_attention(struct make *m)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    struct sdx_onnx_node *node = make_node(m, "Transpose", "present -> k");
    node->attrs.at[node->attrs.count++] = (struct sdx_onnx_attr){
        .name = SDX_STR("perm"), .type = SDX_ATTR_INTS, .ints = {(int64_t *)(uintptr_t)perm, 4}};
    make_node(m, "MatMul", "q k -> scores");
    make_attr_int(make_node(m, "Softmax", "scores -> weights"), "axis", -1);
    make_node(m, "MatMul", "weights present -> y");
}

/* STEPS runs of the session with present becoming past, of 1 new position but for the first and
 * third. Returns the tensors of the last; */
static void generate(struct fixture *f, bool grows, int outside, sdx_tensor *out[2])
{
    static const int fresh[STEPS] = {4, 1, 7, 1, 1, 1};
    int64_t dims[] = {BATCH, HEADS, 0, SIZE};
    sdx_tensor *past = grows ? growing(f, 4, dims, 2, CAPACITY) : create(f, 4, dims, 0);
    for (int s = 0; s < STEPS; s++) {
        dims[2] = fresh[s];
        sdx_tensor *x = create(f, 4, dims, s + 1), *q = create(f, 4, dims, s + 100);
        out[0] = NULL;
        out[1] = grows ? past : NULL;
        const sdx_feed feeds[] = {{"past", past}, {"x", x}, {"q", q}};
        if (sdx_run(f->session, 3, feeds, 2, NULL, out)) fail_msg("%s", sdx_error(f->cx));
        if (grows) {
            assert_ptr_equal(out[1], past);
            /* y alone is made in memory that the caller gets, or present too; -1: later */
            if (outside >= 0)
                assert_int_equal(f->session->graph.runner.plans->count_externals, 1 + outside);
        } else {
            sdx_tensor_destroy(past);
        }
        past = out[1];
        sdx_tensor_destroy(x);
        sdx_tensor_destroy(q);
        if (s + 1 < STEPS) sdx_tensor_destroy(out[0]);
    }
}

static void compare_ways(struct make *m, int outside)
{
    sdx_tensor *copied[2], *grown[2];
    struct fixture f = {0};
    make_end(m);
    open_fixture(&f, m);
    generate(&f, false, 0, copied);
    generate(&f, true, outside, grown);
    assert_int_equal(sdx_tensor_dims(grown[1])[2], 15);
    for (int i = 0; i < 2; i++) {
        assert_same(grown[i], copied[i]);
        sdx_tensor_destroy(copied[i]);
        sdx_tensor_destroy(grown[i]);
    }
    close_fixture(&f);
}

static void test_fused_attention(void **state)
{
    (void)state;
    struct make m;
    make_start(&m);
    make_concat(&m, "past x -> present");
    make_attention(&m);
    compare_ways(&m, 0);
}

static void test_standard_attention(void **state)
{
    (void)state;
    struct make m;
    make_start(&m);
    m.opset = 23;
    make_attr_int(make_node(&m, "Attention", "q x x _ past past -> y present unused"), "is_causal",
                  1);
    compare_ways(&m, 0);
}

/* Operators that know nothing of growing tensors read packed ones. */
static void test_other_readers(void **state)
{
    (void)state;
    struct make m;
    make_start(&m);
    make_concat(&m, "past x -> present");
    make_node(&m, "Relu", "present -> a");
    make_node(&m, "Shape", "past -> shape");
    make_attr_int(make_node(&m, "Cast", "shape -> length"), "to", SDX_F32);
    make_attr_int(make_node(&m, "ReduceSum", "length -> total"), "keepdims", 0);
    make_node(&m, "Add", "a total -> b");
    make_node(&m, "Mul", "q x -> c");
    make_attr_int(make_node(&m, "Concat", "past b c past -> y"), "axis", 2);
    compare_ways(&m, 0);
}

/* The new positions come first: present is made elsewhere and copied. */
static void test_other_order(void **state)
{
    (void)state;
    struct make m;
    make_start(&m);
    make_concat(&m, "x past -> present");
    make_attention(&m);
    compare_ways(&m, 1);
}

/* A body takes the past from outside, and it is an output as it is. */
static void test_captured(void **state)
{
    (void)state;
    struct make m, *then_branch = calloc(1, sizeof m), *else_branch = calloc(1, sizeof m);
    static const bool yes = true;
    make_start(&m);
    make_init(then_branch);
    make_node(then_branch, "Neg", "past -> t");
    make_output(then_branch, "t", SDX_F32, -1, NULL);
    make_init(else_branch);
    make_node(else_branch, "Identity", "past -> e");
    make_output(else_branch, "e", SDX_F32, -1, NULL);
    make_initializer(&m, "yes", SDX_BOOL, 0, NULL, &yes, 1);
    make_attr_int(make_node(&m, "ReduceSum", "q -> sum"), "keepdims", 0);
    make_attr_int(make_node(&m, "Cast", "sum -> positive"), "to", SDX_BOOL);
    struct sdx_onnx_node *node = make_node(&m, "If", "positive -> z");
    make_attr_graph(node, "then_branch", then_branch);
    make_attr_graph(node, "else_branch", else_branch);
    make_concat(&m, "past x -> present");
    make_attr_int(make_node(&m, "Concat", "z present -> y"), "axis", 2);
    compare_ways(&m, -1);
    free(then_branch);
    free(else_branch);
}

/* ---- faults ---- */

static void test_capacity(void **state)
{
    (void)state;
    struct make m;
    struct fixture f = {0};
    make_start(&m);
    make_concat(&m, "past x -> present");
    make_attention(&m);
    make_end(&m);
    open_fixture(&f, &m);
    int64_t dims[] = {BATCH, HEADS, 0, SIZE};
    sdx_tensor *past = growing(&f, 4, dims, 2, 3), *narrow = NULL;
    dims[2] = 2;
    sdx_tensor *x = create(&f, 4, dims, 1);
    const sdx_feed feeds[] = {{"past", past}, {"x", x}, {"q", x}};
    sdx_tensor *out[2] = {NULL, past};
    assert_int_equal(sdx_run(f.session, 3, feeds, 2, NULL, out), SDX_OK);
    sdx_tensor_destroy(out[0]);
    for (int turn = 0; turn < 2; turn++) {
        out[0] = NULL;
        assert_int_equal(sdx_run(f.session, 3, feeds, 2, NULL, out), SDX_BAD_INPUT);
        assert_contains(sdx_error(f.cx),
                        "output \"present\" has 4 positions on axis 2, expected at "
                        "most 3, the capacity of its tensor");
        assert_null(out[0]);
        assert_int_equal(sdx_tensor_dims(past)[2], 2);
    }
    sdx_tensor *plain = create(&f, 4, dims, 3); /* the same where present is copied */
    const sdx_feed other[] = {{"past", plain}, {"x", x}, {"q", x}};
    assert_int_equal(sdx_run(f.session, 3, other, 2, NULL, out), SDX_BAD_INPUT);
    assert_contains(sdx_error(f.cx), "output \"present\" has 4 positions on axis 2");
    assert_int_equal(sdx_tensor_dims(past)[2], 2);
    assert_int_equal(sdx_tensor_set_length(f.cx, past, 1), SDX_OK);
    assert_int_equal(sdx_run(f.session, 3, feeds, 2, NULL, out), SDX_OK);
    assert_int_equal(sdx_tensor_dims(past)[2], 3);
    sdx_tensor_destroy(out[0]);
    dims[3] = SIZE + 1;
    narrow = growing(&f, 4, dims, 2, 9);
    out[0] = NULL;
    out[1] = narrow;
    assert_int_equal(sdx_run(f.session, 3, other, 2, NULL, out), SDX_BAD_INPUT);
    assert_contains(sdx_error(f.cx), "output \"present\" was bound to f32[2,3,2,6] growing, "
                                     "expected f32[2,3,4,5]");
    out[0] = out[1] = past;
    assert_int_equal(sdx_run(f.session, 3, feeds, 2, NULL, out), SDX_INVALID_ARGUMENT);
    assert_contains(sdx_error(f.cx), "outputs \"y\" and \"present\" are bound to one tensor");
    sdx_tensor_destroy(narrow);
    sdx_tensor_destroy(plain);
    sdx_tensor_destroy(x);
    sdx_tensor_destroy(past);
    close_fixture(&f);
}

static void *alloc_few(size_t size, void *user)
{
    int *left = user;
    return (*left)-- > 0 ? malloc(size) : NULL;
}

static void free_one(void *block, void *user)
{
    (void)user;
    free(block);
}

/* Whichever allocation of the run fails, the length stays, and the next run does it. */
static void test_failing_allocations(void **state)
{
    (void)state;
    struct make m;
    int left = 1 << 30;
    sdx_context_options options;
    make_start(&m);
    make_concat(&m, "past x -> present");
    make_attention(&m);
    make_end(&m);
    sdx_context_options_init(&options);
    options.alloc = alloc_few;
    options.free = free_one;
    options.alloc_user = &left;
    options.threads = 1;
    struct fixture f = {.is_ours = true, .cx = sdx_context_create(&options)};
    make_write(&m, f.path, sizeof f.path);
    assert_int_equal(sdx_model_open(f.cx, f.path, NULL, &f.model), SDX_OK);
    int64_t dims[] = {BATCH, HEADS, 3, SIZE};
    sdx_tensor *x = create(&f, 4, dims, 1), *expected = NULL;
    dims[2] = 0;
    for (int allowed = 0;; allowed++) {
        sdx_tensor *past = growing(&f, 4, dims, 2, 9), *out[2] = {NULL, past};
        const sdx_feed feeds[] = {{"past", past}, {"x", x}, {"q", x}};
        assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &f.session), SDX_OK);
        left = allowed;
        const sdx_status status = sdx_run(f.session, 3, feeds, 2, NULL, out);
        left = 1 << 30;
        if (status != SDX_OK) {
            assert_int_equal(status, SDX_OUT_OF_MEMORY);
            assert_int_equal(sdx_tensor_dims(past)[2], 0);
            assert_null(out[0]);
            assert_int_equal(sdx_run(f.session, 3, feeds, 2, NULL, out), SDX_OK);
        }
        assert_int_equal(sdx_tensor_dims(past)[2], 3);
        assert_same(past, x);
        if (expected) assert_same(out[0], expected);
        sdx_tensor_destroy(past);
        sdx_session_destroy(f.session);
        f.session = NULL;
        sdx_tensor_destroy(expected);
        expected = out[0];
        if (status == SDX_OK) {
            assert_true(allowed > 5);
            break;
        }
    }
    sdx_tensor_destroy(expected);
    sdx_tensor_destroy(x);
    close_fixture(&f);
}

/* Two threads, each with a session of one model and a tensor of its own. */
static void *run_thread(void *arg)
{
    struct fixture *f = arg;
    sdx_tensor **out = calloc(2, sizeof *out);
    generate(f, true, 0, out);
    return out;
}

static void test_threads(void **state)
{
    (void)state;
    struct make m;
    struct fixture f = {0}, second;
    make_start(&m);
    make_concat(&m, "past x -> present");
    make_attention(&m);
    make_end(&m);
    open_fixture(&f, &m);
    second = f;
    assert_int_equal(sdx_session_create(f.cx, f.model, NULL, &second.session), SDX_OK);
    pthread_t threads[2];
    sdx_tensor **out[2];
    pthread_create(&threads[0], NULL, run_thread, &f);
    pthread_create(&threads[1], NULL, run_thread, &second);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], (void **)&out[i]);
    for (int k = 0; k < 2; k++) {
        assert_same(out[0][k], out[1][k]);
        sdx_tensor_destroy(out[0][k]);
        sdx_tensor_destroy(out[1][k]);
    }
    free(out[0]);
    free(out[1]);
    sdx_session_destroy(second.session);
    close_fixture(&f);
}

/* ---- a model ---- */

enum { TOKENS = 5, PROMPT = 3, PAIRS_MAX = 64 };

static sdx_tensor *int64s(struct fixture *f, int64_t count, int64_t first, int64_t step)
{
    sdx_tensor *t = NULL;
    if (sdx_tensor_create(f->cx, SDX_I64, 2, (int64_t[]){1, count}, &t))
        fail_msg("%s", sdx_error(f->cx));
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)sdx_tensor_data(t))[i] = first + i * step;
    return t;
}

/* The prompt and TOKENS - 1 greedy tokens. Returns the last logits, the caches in past[]. */
static sdx_tensor *decode(struct fixture *f, bool grows, sdx_tensor **past)
{
    const int pairs = sdx_model_count_outputs(f->model) - 1;
    int64_t length = 0, token = 11;
    sdx_tensor *logits = NULL;
    for (int i = 0; i < pairs; i++) {
        const int64_t dims[] = {1, 12, 0, 64};
        past[i] = grows ? growing(f, 4, dims, 2, PROMPT + TOKENS) : create(f, 4, dims, 0);
    }
    for (int turn = 0; turn < TOKENS; turn++) {
        const int64_t fresh = turn ? 1 : PROMPT;
        sdx_tensor *in[] = {int64s(f, fresh, token, 5), int64s(f, length + fresh, 1, 0),
                            int64s(f, fresh, length, 1)};
        sdx_feed feeds[PAIRS_MAX + 3];
        sdx_tensor *out[PAIRS_MAX + 1] = {NULL};
        for (int i = 0; i < pairs + 3; i++)
            feeds[i] = (sdx_feed){sdx_model_input(f->model, i)->name, i < 3 ? in[i] : past[i - 3]};
        for (int i = 0; grows && i < pairs; i++)
            out[i + 1] = past[i];
        sdx_tensor_destroy(logits);
        if (sdx_run(f->session, pairs + 3, feeds, pairs + 1, NULL, out))
            fail_msg("%s", sdx_error(f->cx));
        for (int i = 0; i < pairs; i++) {
            if (!grows) sdx_tensor_destroy(past[i]);
            past[i] = out[i + 1];
        }
        if (grows) assert_int_equal(f->session->graph.runner.plans->count_externals, 1);
        logits = out[0];
        length += fresh;
        const int64_t words = sdx_tensor_dims(logits)[2], row = (fresh - 1) * words;
        token = 0;
        for (int64_t w = 1; w < words; w++)
            if (sdx_tensor_f64(logits, row + w) > sdx_tensor_f64(logits, row + token)) token = w;
        for (int i = 0; i < 3; i++)
            sdx_tensor_destroy(in[i]);
    }
    return logits;
}

static void test_gpt2(void **state)
{
    (void)state;
    struct fixture f = {0};
    const char *zoo = getenv("SDX_ZOO");
    snprintf(f.path, sizeof f.path, "%s/gpt2_past/model.onnx", zoo ? zoo : "build/zoo");
    if (access(f.path, R_OK) != 0) {
        print_message("no model at %s (SDX_ZOO)\n", f.path);
        skip();
    }
    open_path(&f, 2);
    sdx_tensor *copied[PAIRS_MAX], *grown[PAIRS_MAX];
    const int pairs = sdx_model_count_outputs(f.model) - 1;
    sdx_tensor *a = decode(&f, false, copied), *b = decode(&f, true, grown);
    assert_same(b, a);
    for (int i = 0; i < pairs; i++) {
        assert_int_equal(sdx_tensor_dims(grown[i])[2], PROMPT + TOKENS - 1);
        assert_same(grown[i], copied[i]);
        sdx_tensor_destroy(copied[i]);
        sdx_tensor_destroy(grown[i]);
    }
    sdx_tensor_destroy(a);
    sdx_tensor_destroy(b);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_fused_attention),
        cmocka_unit_test(test_standard_attention),
        cmocka_unit_test(test_other_readers),
        cmocka_unit_test(test_other_order),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gpt2),
    };
    return cmocka_run_group_tests_name("growing", tests, NULL, NULL);
}
