/* SPDX-License-Identifier: Apache-2.0
 * From TensorProto to tensors: raw and typed data, external data, and the .pb files of the test
 * suites. */
#ifndef SDX_PROTO_TENSOR_DATA_H
#define SDX_PROTO_TENSOR_DATA_H

#include "proto/onnx.h"

/* Files with external data, opened once a model and kept mapped. */
struct sdx_external {
    struct sdx_arena *arena;
    const char *folder;           /* NULL: only files that are given */
    const unsigned char *section; /* not NULL: holds all external data, whatever the location */
    size_t section_size;
    struct sdx_given { /* initializers of the main graph that the caller gives */
        struct sdx_str name;
        const struct sdx_tensor *tensor;
    } * given;
    int32_t count_given, capacity_given;
    bool tolerate; /* names that are given and not there are ignored */
    struct sdx_map given_index;
    struct sdx_file_map *files; /* in the arena */
    int32_t count, capacity;
    struct sdx_map index; /* location to place in `files` */
};
void sdx_external_init(struct sdx_external *ex, struct sdx_arena *arena, const char *folder);
void sdx_external_deinit(struct sdx_external *ex);
/* A tensor for the initializer of this name, bytes for the file of this name. The name is copied.
 */
SDX_MUST_CHECK enum sdx_status sdx_external_give_tensor(struct sdx_context *cx,
                                                        struct sdx_external *ex, const char *name,
                                                        const struct sdx_tensor *tensor);
SDX_MUST_CHECK enum sdx_status sdx_external_give_file(struct sdx_context *cx,
                                                      struct sdx_external *ex, const char *name,
                                                      const void *bytes, size_t size);
/* The tensor given for an initializer; NULL: none, or ex is NULL. */
const struct sdx_tensor *sdx_external_given(const struct sdx_external *ex, struct sdx_str name);
/* The `bytes` bytes that a tensor's external_data entries name, in place. */
SDX_MUST_CHECK enum sdx_status sdx_external_get(struct sdx_context *cx, struct sdx_external *ex,
                                                const struct sdx_onnx_tensor *from, size_t bytes,
                                                const void **data);

/* sdx_file_map_drop of the file that the bytes lie in, if it is one of these. */
void sdx_external_drop(const struct sdx_external *ex, const void *bytes, size_t size);

/* Checks type, dims, exactly one data field with the right length, segment, external keys and
 * bounds; the texts say found and expected. On success *data (when not NULL) holds the bytes: in
 * place (raw or external, little endian as stored, alignment 1!) or decoded in `arena`; strings:
 * array of struct sdx_str in `arena`. */
SDX_MUST_CHECK enum sdx_status sdx_onnx_tensor_data(struct sdx_context *cx, struct sdx_arena *arena,
                                                    struct sdx_external *ex,
                                                    const struct sdx_onnx_tensor *from,
                                                    const void **data);
/* As a constant operand in `arena` (refs 0, is_constant). Data is used in place (in the file, or
 * decoded beside the message, which both must live as long) where its address is aligned to the
 * element size; otherwise small ones are copied into the arena and large ones marked needs_copy.
 */
SDX_MUST_CHECK enum sdx_status
sdx_onnx_tensor_import(struct sdx_context *cx, struct sdx_arena *arena, struct sdx_external *ex,
                       const struct sdx_onnx_tensor *from, struct sdx_tensor **out);
/* Sparse initializer, expanded to a dense constant (checks index order and range; size limited by
 * `limit` bytes). */
SDX_MUST_CHECK enum sdx_status
sdx_onnx_sparse_import(struct sdx_context *cx, struct sdx_arena *arena, struct sdx_external *ex,
                       const struct sdx_onnx_sparse *from, size_t limit, struct sdx_tensor **out);
/* As handles with memory of their own, for data files: faults are SDX_BAD_DATA, external data is
 * refused. `arena` is for the work only. */
SDX_MUST_CHECK enum sdx_status sdx_onnx_tensor_load(struct sdx_context *cx, struct sdx_arena *arena,
                                                    const struct sdx_onnx_tensor *from,
                                                    struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_onnx_sparse_load(struct sdx_context *cx, struct sdx_arena *arena,
                                                    const struct sdx_onnx_sparse *from,
                                                    struct sdx_tensor **out);
/* .pb files: TensorProto, SequenceProto, OptionalProto, MapProto, SparseTensorProto as `kind` says.
 */
SDX_MUST_CHECK enum sdx_status sdx_pb_read(struct sdx_context *cx, const void *bytes, size_t size,
                                           int kind, struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_pb_load(struct sdx_context *cx, const char *path, int kind,
                                           struct sdx_tensor **out);
SDX_MUST_CHECK enum sdx_status sdx_pb_save(struct sdx_context *cx, const char *path,
                                           const char *name, const struct sdx_tensor *tensor);
#endif
