/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model that is converted to a version of the standard, or of ai.onnx.ml, which the
 * bytes choose too; every second one unchecked. What was checked before and after must load. The
 * corpus is that of fuzz_model. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sardonyx/sardonyx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/fuzz_convert_XXXXXX";
static char from[64], to[64];

static void remove_files(void)
{
    (void)unlink(from);
    (void)unlink(to);
    (void)rmdir(folder);
}

static void make_folder(void)
{
    if (from[0]) return;
    if (!mkdtemp(folder)) abort();
    snprintf(from, sizeof from, "%s/from.onnx", folder);
    snprintf(to, sizeof to, "%s/to.onnx", folder);
    (void)atexit(remove_files);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    sdx_context_options options;
    sdx_convert_options how;
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = 31 * sum + bytes[i];
    make_folder();
    FILE *file = fopen(from, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
    sdx_context_options_init(&options);
    sdx_convert_options_init(&how);
    options.memory_limit = (size_t)256 << 20;
    options.threads = 1;
    how.check_fully = sum / 64 % 2 != 0;
    const bool ml = sum / 128 % 4 == 0;
    const sdx_opset opset = {ml ? "ai.onnx.ml" : "", ml ? 1 + sum % 5 : 1 + sum % 28};
    sdx_context *cx = sdx_context_create(&options);
    if (!cx) abort();
    const size_t before = sdx_memory_now(cx);
    sdx_status status = sdx_model_convert(cx, from, 1, &opset, &how, to);
    if (status == SDX_INTERNAL || (status != SDX_OK && sdx_error(cx)[0] == 0)) abort();
    sdx_model *model = NULL;
    if (status == SDX_OK && how.check_fully && sdx_model_open(cx, to, NULL, &model) != SDX_OK)
        abort();
    sdx_model_destroy(model);
    if (sdx_memory_now(cx) != before) abort();
    sdx_context_destroy(cx);
    return 0;
}
