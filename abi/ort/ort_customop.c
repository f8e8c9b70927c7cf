/* SPDX-License-Identifier: Apache-2.0
 * Domains of custom operators, their registration, and the operators as the engine sees them.
 * Members of OrtCustomOp that came later are read only where the operator's version has them. */
#include "ort_customop.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    SINCE_OPTIONAL = 8,
    SINCE_VARIADIC = 14,
    SINCE_STATUS = 16, /* CreateKernelV2 and KernelComputeV2 */
    SINCE_RANGE = 17,
};

/* ---- domains ---- */

static OrtStatusPtr create_domain(const char *name, OrtCustomOpDomain **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    OrtStatusPtr failed = ort_set_text(&(*out)->name, name);
    if (!failed) return NULL;
    free(*out);
    *out = NULL;
    return failed;
}

static void release_domain(OrtCustomOpDomain *domain)
{
    if (!domain) return;
    free(domain->name);
    free(domain->ops);
    free(domain);
}

static OrtStatusPtr add_op(OrtCustomOpDomain *domain, const OrtCustomOp *op)
{
    ORT_TRY(ort_grow(&domain->ops, domain->count, sizeof *domain->ops));
    domain->ops[domain->count++] = op;
    return NULL;
}

/* ---- libraries ---- */

typedef OrtStatus *(*register_fn)(OrtSessionOptions *options, const OrtApiBase *api);

static OrtStatusPtr call_register(OrtSessionOptions *options, void *library, const char *function)
{
    void *symbol = dlsym(library, function);
    register_fn call = NULL;
    if (!symbol)
        return ort_fail(ORT_FAIL, "Failed to get symbol %s with error: %s", function, dlerror());
    memcpy(&call, &symbol, sizeof call);
    return call(options, OrtGetApiBase());
}

OrtStatusPtr ort_library_open(const char *path, void **out)
{
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*out) return NULL;
    return ort_fail(ORT_FAIL, "Failed to load library %s with error: %s", path, dlerror());
}

/* The caller closes *out. */
static OrtStatusPtr register_library(OrtSessionOptions *options, const char *path, void **out)
{
    ORT_TRY(ort_library_open(path, out));
    return call_register(options, *out, "RegisterCustomOps");
}

static OrtStatusPtr register_library_v2(OrtSessionOptions *options, const char *path)
{
    void *library = NULL;
    ORT_TRY(ort_library_open(path, &library));
    OrtStatusPtr failed = call_register(options, library, "RegisterCustomOps");
    if (!failed) failed = ort_options_add_library(options, library);
    if (failed) dlclose(library);
    return failed;
}

static OrtStatusPtr register_function(OrtSessionOptions *options, const char *function)
{
    return call_register(options, RTLD_DEFAULT, function);
}

static OrtStatusPtr enable_extensions(OrtSessionOptions *options)
{
    (void)options;
    return ort_fail(
        ORT_FAIL, "EnableOrtCustomOps: Custom operators in onnxruntime-extensions are not enabled");
}

/* ---- an operator's types ---- */

static OrtCustomOpInputOutputCharacteristic input_kind(const OrtCustomOp *op, size_t i)
{
    return op->version >= SINCE_OPTIONAL ? op->GetInputCharacteristic(op, i)
                                         : INPUT_OUTPUT_REQUIRED;
}

static OrtCustomOpInputOutputCharacteristic output_kind(const OrtCustomOp *op, size_t i)
{
    return op->version >= SINCE_OPTIONAL ? op->GetOutputCharacteristic(op, i)
                                         : INPUT_OUTPUT_REQUIRED;
}

ONNXTensorElementDataType ort_custom_input_type(const OrtCustomOp *op, size_t i)
{
    const size_t count = op->GetInputTypeCount(op);
    if (count == 0) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    return op->GetInputType(op, i < count ? i : count - 1);
}

ONNXTensorElementDataType ort_custom_output_type(const OrtCustomOp *op, size_t i)
{
    const size_t count = op->GetOutputTypeCount(op);
    if (count == 0) return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    return op->GetOutputType(op, i < count ? i : count - 1);
}

const OrtCustomOp *ort_custom_variant(const struct ort_custom_row *row, const sdx_node *node,
                                      int *wrong)
{
    for (size_t k = 0; k < row->count; k++) {
        const OrtCustomOp *op = row->variants[k];
        *wrong = -1;
        for (int i = 0; i < sdx_node_count_inputs(node) && *wrong < 0; i++) {
            const sdx_value_info *info = sdx_node_input(node, i);
            const ONNXTensorElementDataType type = ort_custom_input_type(op, (size_t)i);
            if (!info || info->dtype == SDX_DTYPE_NONE || !type) continue;
            if ((int)info->dtype != (int)type || info->kind != SDX_KIND_TENSOR) *wrong = i;
        }
        if (*wrong < 0) return op;
    }
    return NULL;
}

/* ---- kernels ---- */

static sdx_status status_of(OrtErrorCode code)
{
    return code == ORT_INVALID_ARGUMENT  ? SDX_INVALID_ARGUMENT
           : code == ORT_NOT_IMPLEMENTED ? SDX_NOT_SUPPORTED
                                         : SDX_RUN_FAILED;
}

static void free_kernel(struct ort_kernel *kernel)
{
    if (kernel->kernel && kernel->op->KernelDestroy) kernel->op->KernelDestroy(kernel->kernel);
    ort_kernel_info_release(kernel->info);
    free(kernel);
}

static OrtStatusPtr make_kernel(const OrtCustomOp *op, const sdx_node *node,
                                struct ort_custom_table *table, struct ort_kernel **out)
{
    const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    struct ort_kernel *made = calloc(1, sizeof *made);
    *out = NULL;
    if (!made) return ort_no_memory();
    made->node = sdx_node_number(node);
    made->op = op;
    made->refs = 1;
    OrtStatusPtr failed = ort_kernel_info_create(node, table, &made->info);
    if (!failed) {
        if (op->version >= SINCE_STATUS && op->CreateKernelV2)
            failed = op->CreateKernelV2(op, api, made->info, &made->kernel);
        else if (op->CreateKernel)
            made->kernel = op->CreateKernel(op, api, made->info);
    }
    if (failed)
        free_kernel(made);
    else
        *out = made;
    return failed;
}

static struct ort_kernel *find_kernel(struct ort_custom_table *table, int64_t node)
{
    struct ort_kernel *kernel = table->kernels;
    while (kernel && kernel->node != node)
        kernel = kernel->next;
    return kernel;
}

/* Sessions of one OrtSession are made one after the other, so no two make the same kernel. */
static sdx_status create(const sdx_node *node, void **state, void *user)
{
    const struct ort_custom_row *row = user;
    struct ort_custom_table *table = row->table;
    int wrong = -1;
    pthread_mutex_lock(&table->lock);
    struct ort_kernel *kernel = find_kernel(table, sdx_node_number(node));
    if (kernel) kernel->refs++;
    pthread_mutex_unlock(&table->lock);
    if (!kernel) {
        const OrtCustomOp *op = ort_custom_variant(row, node, &wrong);
        if (!op) return sdx_node_fail(node, SDX_BAD_MODEL, "no kernel takes these types");
        OrtStatusPtr failed = make_kernel(op, node, table, &kernel);
        if (failed) {
            ort_release_status(table->failure);
            table->failure = failed;
            return sdx_node_fail(node, SDX_RUN_FAILED, "its kernel could not be made");
        }
        pthread_mutex_lock(&table->lock);
        kernel->next = table->kernels;
        table->kernels = kernel;
        pthread_mutex_unlock(&table->lock);
    }
    *state = kernel;
    return SDX_OK;
}

static void destroy(void *state, void *user)
{
    const struct ort_custom_row *row = user;
    struct ort_custom_table *table = row->table;
    struct ort_kernel *kernel = state;
    if (!kernel) return;
    pthread_mutex_lock(&table->lock);
    const bool last = --kernel->refs == 0;
    if (last) {
        struct ort_kernel **at = &table->kernels;
        while (*at != kernel)
            at = &(*at)->next;
        *at = kernel->next;
    }
    pthread_mutex_unlock(&table->lock);
    if (last) free_kernel(kernel);
}

/* Strings, and memory that the engine did not give, become outputs when the kernel is done. */
static sdx_status hand_over(OrtKernelContext *context)
{
    for (int i = 0; i < context->count_outputs; i++) {
        OrtValue *value = context->outputs[i];
        sdx_tensor *tensor = value ? ort_value_tensor(value) : NULL;
        if (!tensor || sdx_tensor_dtype(tensor) != SDX_STRING) continue;
        const sdx_status status = sdx_call_set_output(context->call, i, tensor);
        if (status) return status;
    }
    return SDX_OK;
}

static void end_context(OrtKernelContext *context)
{
    OrtAllocator *allocator = ort_default_allocator();
    for (int i = 0; i < context->count_inputs; i++)
        ort_value_release(context->inputs[i]);
    for (int i = 0; i < context->count_outputs; i++)
        ort_value_release(context->outputs[i]);
    for (size_t i = 0; i < context->count_scratch; i++)
        allocator->Free(allocator, context->scratch[i]);
    free(context->scratch);
    free(context->inputs);
}

static sdx_status run(sdx_call *call, void *state, void *user)
{
    const struct ort_custom_row *row = user;
    const struct ort_kernel *kernel = state;
    const sdx_node *node = sdx_call_node(call);
    OrtKernelContext context = {.call = call,
                                .kernel = kernel,
                                .table = row->table,
                                .count_inputs = sdx_node_count_inputs(node),
                                .count_outputs = sdx_node_count_outputs(node)};
    const size_t values = (size_t)context.count_inputs + (size_t)context.count_outputs;
    context.inputs = calloc(values + 1, sizeof(OrtValue *));
    if (!context.inputs) return SDX_OUT_OF_MEMORY;
    context.outputs = context.inputs + context.count_inputs;
    OrtStatusPtr failed = NULL;
    if (kernel->op->version >= SINCE_STATUS && kernel->op->KernelComputeV2)
        failed = kernel->op->KernelComputeV2(kernel->kernel, &context);
    else
        kernel->op->KernelCompute(kernel->kernel, &context);
    sdx_status status = SDX_OK;
    if (failed) {
        const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
        status =
            sdx_call_fail(call, status_of(api->GetErrorCode(failed)), api->GetErrorMessage(failed));
        ort_release_status(failed);
    } else {
        status = hand_over(&context);
    }
    end_context(&context);
    return status;
}

/* ---- the operators of a session ---- */

/* How many inputs or outputs a node may have. */
static void count_values(const OrtCustomOp *op, bool inputs, int *min, int *max, uint64_t *optional)
{
    const size_t count = inputs ? op->GetInputTypeCount(op) : op->GetOutputTypeCount(op);
    *min = 0;
    *max = (int)count;
    *optional = 0;
    for (size_t i = 0; i < count; i++) {
        const OrtCustomOpInputOutputCharacteristic kind =
            inputs ? input_kind(op, i) : output_kind(op, i);
        if (kind == INPUT_OUTPUT_REQUIRED) *min = (int)i + 1;
        if (kind == INPUT_OUTPUT_OPTIONAL && i < 64) *optional |= (uint64_t)1 << i;
        if (kind != INPUT_OUTPUT_VARIADIC) continue;
        const int least = op->version < SINCE_VARIADIC ? 1
                          : inputs                     ? op->GetVariadicInputMinArity(op)
                                                       : op->GetVariadicOutputMinArity(op);
        *min = (int)i + least;
        *max = INT_MAX;
    }
}

static void free_row(struct ort_custom_row *row)
{
    free(row->variants);
    free(row);
}

static OrtStatusPtr add_variant(struct ort_custom_table *table, const char *domain,
                                const OrtCustomOp *op)
{
    const int since =
        op->version >= SINCE_RANGE && op->GetStartVersion ? op->GetStartVersion(op) : 1;
    int until = op->version >= SINCE_RANGE && op->GetEndVersion ? op->GetEndVersion(op) : 0;
    if (until == INT_MAX) until = 0;
    struct ort_custom_row *row = NULL;
    for (size_t i = 0; i < table->count && !row; i++) {
        const sdx_custom_op *has = &table->rows[i]->engine;
        if (!strcmp(has->name, op->GetName(op)) && !strcmp(has->domain, domain) &&
            has->since == since && has->until == until)
            row = table->rows[i];
    }
    if (!row) {
        ORT_TRY(ort_grow(&table->rows, table->count, sizeof *table->rows));
        row = calloc(1, sizeof *row);
        if (!row) return ort_no_memory();
        table->rows[table->count++] = row;
        row->table = table;
        row->engine = (sdx_custom_op){.size = sizeof row->engine,
                                      .domain = domain,
                                      .name = op->GetName(op),
                                      .since = since,
                                      .until = until,
                                      .infer = ort_custom_infer,
                                      .create = create,
                                      .run = run,
                                      .destroy = destroy,
                                      .user = row};
        count_values(op, true, &row->engine.inputs_min, &row->engine.inputs_max,
                     &row->engine.inputs_optional);
        count_values(op, false, &row->engine.outputs_min, &row->engine.outputs_max,
                     &row->engine.outputs_optional);
    }
    ORT_TRY(ort_grow(&row->variants, row->count, sizeof *row->variants));
    row->variants[row->count++] = op;
    return NULL;
}

static OrtStatusPtr fill_table(struct ort_custom_table *table, const OrtSessionOptions *options)
{
    ORT_TRY(ort_pairs_copy(&table->config, &options->config));
    for (size_t i = 0; i < options->count_domains; i++) {
        const OrtCustomOpDomain *domain = options->domains[i];
        for (size_t k = 0; k < domain->count; k++)
            ORT_TRY(add_variant(table, domain->name, domain->ops[k]));
    }
    table->engine = calloc(table->count + 1, sizeof *table->engine);
    if (!table->engine) return ort_no_memory();
    for (size_t i = 0; i < table->count; i++)
        table->engine[i] = &table->rows[i]->engine;
    return NULL;
}

OrtStatusPtr ort_custom_open(const OrtSessionOptions *options, const struct OrtLogger *logger,
                             sdx_model_options *model, struct ort_custom_table **out)
{
    *out = NULL;
    if (options->count_domains == 0) return NULL;
    struct ort_custom_table *table = calloc(1, sizeof *table);
    if (!table) return ort_no_memory();
    pthread_mutex_init(&table->lock, NULL);
    table->logger = *logger;
    OrtStatusPtr failed = fill_table(table, options);
    if (failed) {
        ort_custom_close(table);
        return failed;
    }
    model->custom_ops = table->engine;
    model->count_custom_ops = (int)table->count;
    *out = table;
    return NULL;
}

OrtStatusPtr ort_custom_failure(struct ort_custom_table *table)
{
    if (!table || !table->failure) return NULL;
    const char *text = OrtGetApiBase()->GetApi(ORT_API_VERSION)->GetErrorMessage(table->failure);
    return ort_fail(ORT_RUNTIME_EXCEPTION, "Exception during initialization: %s", text);
}

void ort_custom_close(struct ort_custom_table *table)
{
    if (!table) return;
    ort_release_status(table->failure);
    for (size_t i = 0; i < table->count; i++)
        free_row(table->rows[i]);
    ort_pairs_deinit(&table->config);
    pthread_mutex_destroy(&table->lock);
    free(table->rows);
    free(table->engine);
    free(table);
}

void ort_fill_customop(OrtApi *api)
{
    api->CreateCustomOpDomain = create_domain;
    api->ReleaseCustomOpDomain = release_domain;
    api->CustomOpDomain_Add = add_op;
    api->AddCustomOpDomain = ort_options_add_domain;
    api->RegisterCustomOpsLibrary = register_library;
    api->RegisterCustomOpsLibrary_V2 = register_library_v2;
    api->RegisterCustomOpsUsingFunction = register_function;
    api->EnableOrtCustomOps = enable_extensions;
}
