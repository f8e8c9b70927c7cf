/* SPDX-License-Identifier: Apache-2.0
 * Each allocation of loading and running a model fails once, for models of many operator families:
 * the call says SDX_OUT_OF_MEMORY (or gets by without the block), nothing leaks, and the same
 * context works afterwards. The models are cases of the standard's suite (SDX_SUITE or
 * build/suite). */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sardonyx/sardonyx.h>

enum { INPUTS_MAX = 8, OUTPUTS_MAX = 8, POINTS = 60 };

static const char *const cases[] = {
    "test_abs",
    "test_add_bcast",
    "test_and_bcast4v4d",
    "test_argmax_keepdims_example",
    "test_averagepool_2d_same_upper",
    "test_basic_conv_with_padding",
    "test_batchnorm_epsilon",
    "test_bitshift_left_uint8",
    "test_cast_FLOAT_to_FLOAT16",
    "test_celu",
    "test_concat_2d_axis_0",
    "test_constantofshape_float_ones",
    "test_convinteger_with_padding",
    "test_convtranspose",
    "test_cumsum_1d",
    "test_depthtospace_example",
    "test_dynamicquantizelinear",
    "test_einsum_batch_matmul",
    "test_expand_dim_changed",
    "test_gather_0",
    "test_gemm_all_attributes",
    "test_gru_defaults",
    "test_identity_sequence",
    "test_if",
    "test_instancenorm_example",
    "test_layer_normalization_2d_axis0",
    "test_loop11",
    "test_loop13_seq",
    "test_lstm_defaults",
    "test_matmul_3d",
    "test_maxpool_2d_dilations",
    "test_nonmaxsuppression_two_batches",
    "test_nonzero_example",
    "test_onehot_with_axis",
    "test_qlinearconv",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_range_int32_type_negative_delta",
    "test_reduce_l2_do_not_keepdims_random",
    "test_resize_upsample_scales_cubic",
    "test_scan9_sum",
    "test_scatter_elements_with_axis",
    "test_sequence_insert_at_back",
    "test_sequence_map_add_2_sequences",
    "test_softmax_axis_1",
    "test_split_equal_parts_2d",
    "test_strnormalizer_export_monday_casesensintive_lower",
    "test_tfidfvectorizer_tf_batch_onlybigrams_skip0",
    "test_top_k",
    "test_transpose_all_permutations_3",
    "test_unique_sorted_with_axis",
    "test_where_example",
};

/* The folder of the node cases, NULL when there is none. */
static const char *suite(void)
{
    static char folder[512];
    const char *given = getenv("SDX_SUITE");
    snprintf(folder, sizeof folder, "%s/node", given && *given ? given : "build/suite");
    return access(folder, R_OK) == 0 ? folder : NULL;
}

/* Loads and runs folder once; what was made is destroyed before it returns. */
static sdx_status run_once(sdx_context *cx, const char *folder)
{
    char path[640];
    sdx_model *model = NULL;
    sdx_session *session = NULL;
    sdx_tensor *in[INPUTS_MAX] = {0}, *out[OUTPUTS_MAX] = {0};
    sdx_feed feeds[INPUTS_MAX];
    int count_in = 0, count_out = 0;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    sdx_status status = sdx_model_open(cx, path, NULL, &model);
    if (status == SDX_OK) status = sdx_session_create(cx, model, NULL, &session);
    for (int i = 0; status == SDX_OK && i < sdx_model_count_inputs(model); i++) {
        const sdx_value_info *info = sdx_model_input(model, i);
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", folder, i);
        status = sdx_tensor_load_pb(cx, path, info->kind, &in[i]);
        feeds[count_in++] = (sdx_feed){info->name, in[i]};
    }
    if (status == SDX_OK) {
        count_out = sdx_model_count_outputs(model);
        status = sdx_run(session, count_in, feeds, count_out, NULL, out);
    }
    if (status != SDX_OK && sdx_error(cx)[0] == 0) fail_msg("%s: a failure without a text", folder);
    for (int i = 0; i < count_out; i++)
        sdx_tensor_destroy(out[i]);
    for (int i = 0; i < count_in; i++)
        sdx_tensor_destroy(in[i]);
    sdx_session_destroy(session);
    sdx_model_destroy(model);
    return status;
}

/* The allocations of one run; at most POINTS of them are made to fail, evenly spread. */
static void fail_each(const char *folder)
{
    sdx_context *cx = sdx_context_create(NULL);
    sdx_status status = run_once(cx, folder);
    if (status != SDX_OK) fail_msg("%s: %s", folder, sdx_error(cx));
    size_t held = atomic_load(&cx->mem->now), first = atomic_load(&cx->mem->count);
    status = run_once(cx, folder);
    assert_int_equal(status, SDX_OK);
    size_t count = atomic_load(&cx->mem->count) - first, step = count / POINTS + 1;
    for (size_t at = 0; at < count; at += step) {
        atomic_store(&cx->mem->fail_at, (long long)at);
        status = run_once(cx, folder);
        atomic_store(&cx->mem->fail_at, -1);
        if (status != SDX_OK && status != SDX_OUT_OF_MEMORY)
            fail_msg("%s: allocation %zu of %zu failed: %s", folder, at, count, sdx_error(cx));
        if (atomic_load(&cx->mem->now) != held)
            fail_msg("%s: allocation %zu of %zu failed: %zu bytes are left", folder, at, count,
                     atomic_load(&cx->mem->now) - held);
    }
    if (run_once(cx, folder) != SDX_OK) fail_msg("%s: afterwards: %s", folder, sdx_error(cx));
    sdx_context_destroy(cx);
}

static void test_suite_cases(void **state)
{
    (void)state;
    const char *folder = suite();
    if (folder == NULL) {
        printf("no suite at build/suite (SDX_SUITE): run scripts/test suite first\n");
        skip();
    }
    int count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, cases[i]);
        if (access(path, R_OK) != 0) fail_msg("%s is not in the suite", cases[i]);
        fail_each(path);
        count++;
    }
    assert_true(count >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suite_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
