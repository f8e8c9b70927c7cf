/* SPDX-License-Identifier: Apache-2.0
 * An ensemble of decision trees in the layout it is walked in: one array of nodes, the two children
 * of a branch side by side. */
#ifndef SDX_OPS_ML_FOREST_H
#define SDX_OPS_ML_FOREST_H

#include "ops/step.h"

enum sdx_forest_mode {
    SDX_FOREST_LEQ,
    SDX_FOREST_LT,
    SDX_FOREST_GTE,
    SDX_FOREST_GT,
    SDX_FOREST_EQ,
    SDX_FOREST_NEQ,
    SDX_FOREST_MEMBER,
    SDX_FOREST_LEAF
}; /* numbered as TreeEnsemble numbers them */

struct sdx_forest_node {
    float value;
    int32_t feature; /* leaf: its first entry in leaf_target and leaf_weight */
    int32_t child;   /* taken when the test holds; the other is child + 1. Leaf: -1 - entries */
    uint8_t mode, missing; /* missing: NaN takes `child` */
};

struct sdx_forest {
    struct sdx_forest_node *nodes;
    double *values; /* the same thresholds, not rounded to float */
    int32_t *roots;
    int32_t *leaf_target;
    double *leaf_weight;
    double *members;       /* of MEMBER node i: members[member_first[k] .. member_first[k + 1]), */
    int32_t *member_first; /* where k is the node's value */
    int64_t count_nodes, count_trees, count_leaves, features; /* features: a row must have */
    bool wide;                                                /* compare and add in double */
    bool simple; /* every test is LEQ and NaN never takes `child` */
};

enum { SDX_FOREST_LANES = 8 };

/* The forest of TreeEnsembleClassifier or -Regressor: `kind` is "class" or "target". */
SDX_MUST_CHECK enum sdx_status sdx_forest_from_lists(struct sdx_prepare *px, const char *kind,
                                                     struct sdx_forest *out);
/* The forest of TreeEnsemble. */
SDX_MUST_CHECK enum sdx_status sdx_forest_from_tensors(struct sdx_prepare *px,
                                                       struct sdx_forest *out);
/* Leaves (indices of nodes) that `lanes` pairs of row and root lead to. Rows are float, or double
 * when the forest is wide. leaf[] holds the roots on entry. */
void sdx_forest_walk(const struct sdx_forest *f, int lanes, const void *const *rows, int32_t *leaf);
#endif
