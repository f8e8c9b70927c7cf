/* SPDX-License-Identifier: Apache-2.0
 * Sparse tensors of programs: what other families must know of them. */
#ifndef SDX_ABI_ORT_SPARSE_H
#define SDX_ABI_ORT_SPARSE_H

#include "ort_objects.h"

/* A sparse tensor that a program made; its indices are those of the format. */
struct ort_sparse {
    ONNXTensorElementDataType type;
    OrtSparseFormat format;
    OrtAllocator *allocator;       /* of values and indices that are copied */
    OrtValue *values, *indices[2]; /* NULL: not filled in yet */
    size_t rank;                   /* of the dense tensor */
    int64_t dims[];
};

/* NULL: the value is none. */
const struct ort_sparse *ort_sparse_of(const OrtValue *value);
#endif
