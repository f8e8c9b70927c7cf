/* SPDX-License-Identifier: Apache-2.0
 * Operators of the library called by kernels: each is a model of one node, and a session of it for
 * every list of element types it is called with. */
#include "ort_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A session of the node for inputs and outputs of these types, 0 for one that is left out. */
struct ort_op_session {
    unsigned char *types; /* of the inputs, then of the outputs */
    OrtSession *session;
    struct ort_op_session *next;
};

struct OrtOp {
    char *op, *domain;
    int version;
    OrtOpAttr **attributes;
    size_t count_attributes, count_inputs, count_outputs;
    pthread_mutex_t lock; /* of `sessions` */
    struct ort_op_session *sessions;
};

/* Names of values: "i0", "o12". */
enum { NAME_ROOM = 16 };

static void name_of(char *name, char side, size_t i)
{
    snprintf(name, NAME_ROOM, "%c%zu", side, i);
}

static void release_op(OrtOp *op)
{
    if (!op) return;
    for (struct ort_op_session *at = op->sessions, *next; at; at = next) {
        next = at->next;
        ort_session_free(at->session);
        free(at->types);
        free(at);
    }
    for (size_t i = 0; op->attributes && i < op->count_attributes; i++)
        ort_attr_free(op->attributes[i]);
    pthread_mutex_destroy(&op->lock);
    free(op->attributes);
    free(op->op);
    free(op->domain);
    free(op);
}

/* Is there such an operator in that version of its domain? */
static bool is_known(const char *domain, const char *name, int version)
{
    sdx_op_info row;
    const char *sought = *domain ? domain : "ai.onnx";
    for (int i = 0; sdx_op_info_get(i, &row); i++)
        if (row.support && row.since <= version && !strcmp(row.name, name) &&
            !strcmp(*row.domain ? row.domain : "ai.onnx", sought))
            return true;
    return false;
}

/* Types come with the values of each call, so constraints have nothing to say. */
static OrtStatusPtr create_op(const OrtKernelInfo *info, const char *name, const char *domain,
                              int version, const char **constraints,
                              const ONNXTensorElementDataType *types, int count_constraints,
                              const OrtOpAttr *const *attributes, int count_attributes,
                              int count_inputs, int count_outputs, OrtOp **out)
{
    (void)info, (void)constraints, (void)types, (void)count_constraints;
    *out = NULL;
    if (!is_known(domain, name, version)) return ort_fail(ORT_FAIL, "Kernel not found");
    OrtOp *op = calloc(1, sizeof *op);
    if (!op) return ort_no_memory();
    pthread_mutex_init(&op->lock, NULL);
    op->version = version;
    op->count_inputs = (size_t)count_inputs;
    op->count_outputs = (size_t)count_outputs;
    op->attributes = calloc((size_t)count_attributes + 1, sizeof(OrtOpAttr *));
    OrtStatusPtr failed = op->attributes ? ort_set_text(&op->op, name) : ort_no_memory();
    if (!failed) failed = ort_set_text(&op->domain, domain);
    for (int i = 0; i < count_attributes && !failed; i++) {
        failed = ort_attr_copy(attributes[i], &op->attributes[op->count_attributes]);
        op->count_attributes += !failed;
    }
    if (failed)
        release_op(op);
    else
        *out = op;
    return failed;
}

/* ---- the model of a node ---- */

static void write_names(struct ort_bytes *node, int field, char side, size_t count,
                        const unsigned char *types)
{
    char name[NAME_ROOM];
    for (size_t i = 0; i < count; i++) {
        name_of(name, side, i);
        ort_pb_bytes(node, field, name, types[i] ? strlen(name) : 0);
    }
}

/* A tensor of that type and any shape. */
static void write_value(struct ort_bytes *graph, int field, char side, size_t i, unsigned char type)
{
    struct ort_bytes info = {0}, kind = {0}, tensor = {0};
    char name[NAME_ROOM];
    name_of(name, side, i);
    ort_pb_text(&info, 1, name);
    ort_pb_int(&tensor, 1, type);
    ort_pb_message(&kind, 1, &tensor);
    ort_pb_message(&info, 2, &kind);
    ort_pb_message(graph, field, &info);
    ort_bytes_deinit(&tensor);
    ort_bytes_deinit(&kind);
    ort_bytes_deinit(&info);
}

static void write_model(struct ort_bytes *model, const OrtOp *op, const unsigned char *types)
{
    struct ort_bytes graph = {0}, node = {0}, opset = {0};
    write_names(&node, 1, 'i', op->count_inputs, types);
    write_names(&node, 2, 'o', op->count_outputs, types + op->count_inputs);
    ort_pb_text(&node, 4, op->op);
    ort_pb_text(&node, 7, op->domain);
    for (size_t i = 0; i < op->count_attributes; i++)
        ort_attr_write(&node, op->attributes[i]);
    ort_pb_message(&graph, 1, &node);
    ort_pb_text(&graph, 2, op->op);
    for (size_t i = 0; i < op->count_inputs; i++)
        if (types[i]) write_value(&graph, 11, 'i', i, types[i]);
    for (size_t i = 0; i < op->count_outputs; i++)
        if (types[op->count_inputs + i])
            write_value(&graph, 12, 'o', i, types[op->count_inputs + i]);
    ort_pb_int(model, 1, ORT_EDITOR_IR_VERSION);
    ort_pb_message(model, 7, &graph);
    ort_pb_text(&opset, 1, op->domain);
    ort_pb_int(&opset, 2, op->version);
    ort_pb_message(model, 8, &opset);
    ort_bytes_deinit(&opset);
    ort_bytes_deinit(&node);
    ort_bytes_deinit(&graph);
}

/* One thread: the caller is at work for a session already. `types` are taken when it succeeds. */
static OrtStatusPtr add_session(OrtOp *op, unsigned char *types)
{
    const OrtEnv env = {.threads = -1, .logger = ort_env_logger()};
    struct ort_op_session *made = calloc(1, sizeof *made);
    struct ort_bytes model = {0};
    OrtSessionOptions *options = NULL;
    if (!made) return ort_no_memory();
    OrtStatusPtr failed = ort_options_copy(NULL, &options);
    if (!failed) {
        options->threads_intra = 1;
        write_model(&model, op, types);
        failed = model.failed ? ort_no_memory()
                              : ort_session_create(&env, NULL, model.data, model.size, options,
                                                   &made->session);
    }
    ort_options_free(options);
    ort_bytes_deinit(&model);
    if (failed) {
        free(made);
        return failed;
    }
    made->types = types;
    made->next = op->sessions;
    op->sessions = made;
    return NULL;
}

static unsigned char type_of(const OrtValue *value)
{
    const sdx_tensor *tensor = value ? ort_value_tensor(value) : NULL;
    return tensor ? (unsigned char)sdx_tensor_dtype(tensor) : 0;
}

static OrtStatusPtr session_for(OrtOp *op, const OrtValue *const *inputs,
                                const OrtValue *const *outputs, OrtSession **out)
{
    const size_t count = op->count_inputs + op->count_outputs;
    unsigned char *types = malloc(count + 1);
    OrtStatusPtr failed = NULL;
    if (!types) return ort_no_memory();
    for (size_t i = 0; i < count; i++)
        types[i] = type_of(i < op->count_inputs ? inputs[i] : outputs[i - op->count_inputs]);
    pthread_mutex_lock(&op->lock);
    struct ort_op_session *at = op->sessions;
    while (at && memcmp(at->types, types, count) != 0)
        at = at->next;
    const bool is_new = !at;
    if (is_new) failed = add_session(op, types);
    if (!failed) *out = is_new ? op->sessions->session : at->session;
    pthread_mutex_unlock(&op->lock);
    if (!is_new || failed) free(types);
    return failed;
}

/* Names and values of those that are there. */
struct side {
    char names[32][NAME_ROOM];
    const char *list[32];
    OrtValue *values[32];
    size_t count;
};

static OrtStatusPtr gather(struct side *side, char letter, const OrtValue *const *values,
                           size_t count)
{
    enum { MOST = sizeof side->list / sizeof side->list[0] };
    side->count = 0;
    if (count > MOST) return ort_fail(ORT_NOT_IMPLEMENTED, "InvokeOp of more than %d values", MOST);
    for (size_t i = 0; i < count; i++) {
        if (!values[i]) continue;
        name_of(side->names[side->count], letter, i);
        side->list[side->count] = side->names[side->count];
        side->values[side->count++] = (OrtValue *)(uintptr_t)values[i];
    }
    return NULL;
}

static OrtStatusPtr invoke_op(const OrtKernelContext *context, const OrtOp *given,
                              const OrtValue *const *inputs, int count_inputs,
                              OrtValue *const *outputs, int count_outputs)
{
    OrtOp *op = (OrtOp *)(uintptr_t)given; /* its sessions are made when they are needed */
    OrtSession *session = NULL;
    struct side in, out;
    (void)context;
    if ((size_t)count_inputs != op->count_inputs || (size_t)count_outputs != op->count_outputs)
        return ort_fail(ORT_INVALID_ARGUMENT, "%s has %zu inputs and %zu outputs, got %d and %d",
                        op->op, op->count_inputs, op->count_outputs, count_inputs, count_outputs);
    ORT_TRY(session_for(op, inputs, (const OrtValue *const *)outputs, &session));
    ORT_TRY(gather(&in, 'i', inputs, op->count_inputs));
    ORT_TRY(gather(&out, 'o', (const OrtValue *const *)outputs, op->count_outputs));
    return ort_run(session, NULL, in.list, (const OrtValue *const *)in.values, in.count, out.list,
                   out.count, out.values);
}

void ort_fill_op(OrtApi *api)
{
    api->CreateOp = create_op;
    api->InvokeOp = invoke_op;
    api->ReleaseOp = release_op;
}
