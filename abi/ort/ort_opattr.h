/* SPDX-License-Identifier: Apache-2.0
 * An attribute of an operator, as programs make it for nodes and read it from them. */
#ifndef SDX_ABI_ORT_OPATTR_H
#define SDX_ABI_ORT_OPATTR_H

#include "ort_bytes.h"
#include "ort_objects.h"

/* `count` elements of the member that `type` names; all owned. */
struct OrtOpAttr {
    char *name;
    OrtOpAttrType type;
    size_t count; /* 1 for those that are no list */
    int64_t *ints;
    float *floats;
    struct ort_text *texts;
    OrtValue *tensor;
};

/* data: as CreateOpAttr takes it. */
OrtStatusPtr ort_attr_create(const char *name, const void *data, int count, OrtOpAttrType type,
                             OrtOpAttr **out);
OrtStatusPtr ort_attr_copy(const OrtOpAttr *attr, OrtOpAttr **out);
/* What an engine's node says; kinds that the ABI does not have become ORT_OP_ATTR_UNDEFINED. */
OrtStatusPtr ort_attr_of(const sdx_attr *attr, OrtOpAttr **out);
void ort_attr_free(OrtOpAttr *attr);
/* Adds field attribute of a NodeProto. */
void ort_attr_write(struct ort_bytes *node, const OrtOpAttr *attr);
#endif
