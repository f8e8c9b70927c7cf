/* SPDX-License-Identifier: Apache-2.0
 * Custom operators: those of a session's options as operators of the engine, and what is behind
 * their kernels' handles. */
#ifndef SDX_ABI_ORT_CUSTOMOP_H
#define SDX_ABI_ORT_CUSTOMOP_H

#include "ort_objects.h"
#include "ort_opattr.h"

struct OrtCustomOpDomain {
    char *name;
    const OrtCustomOp **ops; /* the program's, who keeps them */
    size_t count;
};

/* All operators of one name and version range; they differ in the types that they take. */
struct ort_custom_row {
    struct sdx_custom_op engine;
    struct ort_custom_table *table;
    const OrtCustomOp **variants;
    size_t count;
};

/* A kernel of the program, shared by the engine's sessions of one OrtSession: like ONNX Runtime's
 * it may be called by several threads at once. */
struct ort_kernel {
    int64_t node; /* sdx_node_number */
    const OrtCustomOp *op;
    void *kernel;
    OrtKernelInfo *info;
    int refs;
    struct ort_kernel *next;
};

/* The custom operators of one OrtSession. */
struct ort_custom_table {
    struct ort_custom_row **rows;
    const sdx_custom_op **engine; /* of the rows */
    size_t count;
    struct OrtLogger logger;
    struct OrtKeyValuePairs config;
    pthread_mutex_t lock; /* of `kernels` and their refs */
    struct ort_kernel *kernels;
    OrtStatusPtr failure; /* of the last kernel that could not be made; NULL: none */
};

/* What a kernel may ask of its node, also later on. */
struct OrtKernelInfo {
    atomic_int refs;
    const sdx_node *node;
    struct ort_custom_table *table;
    OrtValue **constants; /* of each input; NULL: not one, or not asked for yet */
};

struct OrtKernelContext {
    sdx_call *call;
    const struct ort_kernel *kernel;
    struct ort_custom_table *table;
    OrtValue **inputs, **outputs; /* made when they are asked for */
    int count_inputs, count_outputs;
    void **scratch;
    size_t count_scratch;
};

/* Fills in the operators that the options bring. *out (NULL: none) lives until the model does not.
 */
OrtStatusPtr ort_custom_open(const OrtSessionOptions *options, const struct OrtLogger *logger,
                             sdx_model_options *model, struct ort_custom_table **out);
void ort_custom_close(struct ort_custom_table *table);
/* Why a session could not be made, where a kernel said it; NULL: it was another reason. `table` may
 * be NULL. */
OrtStatusPtr ort_custom_failure(struct ort_custom_table *table);

/* ort_custom_hand.c. What sdx_session_options.ort_setup is for an OrtSession, `user`, with custom
 * operators. */
const char *ort_custom_hand(const void *api, void *options, void *user);
void ort_custom_unhand(
    struct ort_handed *handed); /* once the session of the other library is gone */

/* Copies a text as functions do that take a buffer and its size: text NULL asks for the size with
 * its NUL. `error`: what is said when there is too little room. */
OrtStatusPtr ort_give_text(const char *from, char *text, size_t *size, const char *error);
/* The type of input or output `i` of an operator, of which the last may be repeated. */
ONNXTensorElementDataType ort_custom_input_type(const OrtCustomOp *op, size_t i);
ONNXTensorElementDataType ort_custom_output_type(const OrtCustomOp *op, size_t i);
/* The engine's callback: types and shapes of a node's outputs. */
sdx_status ort_custom_infer(sdx_node *node, void *row);
/* The variant that takes the node's inputs; NULL: none, then *wrong is the first input that does
 * not fit the last one. */
const OrtCustomOp *ort_custom_variant(const struct ort_custom_row *row, const sdx_node *node,
                                      int *wrong);
/* Opens a shared library; the caller closes *out. */
OrtStatusPtr ort_library_open(const char *path, void **out);
OrtStatusPtr ort_kernel_info_create(const sdx_node *node, struct ort_custom_table *table,
                                    OrtKernelInfo **out);
void ort_kernel_info_release(OrtKernelInfo *info);
#endif
