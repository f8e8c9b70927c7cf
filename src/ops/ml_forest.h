/* SPDX-License-Identifier: Apache-2.0
 * An ensemble of decision trees in the layout it is walked in: one array of nodes, the two children
 * of a branch side by side, leaves that lead to themselves. Tests for an order are all turned into
 * "at most": x < v is x <= the number before v, and x > v has its children swapped. */
#ifndef SDX_OPS_ML_FOREST_H
#define SDX_OPS_ML_FOREST_H

#include "ops/ml_names.h"
#include "ops/step.h"

struct sdx_forest_node {
    float value;    /* leaf: NaN */
    uint32_t child; /* taken when the test holds; the other is child + 1. Leaf: itself - 1 */
};

/* How far a walk can be simplified. */
enum sdx_forest_kind {
    SDX_FOREST_PLAIN,   /* every test is LEQ and NaN never takes `child` */
    SDX_FOREST_ORDERED, /* every test is LEQ: rows without NaN take the plain walk */
    SDX_FOREST_MIXED
};

struct sdx_forest {
    struct sdx_forest_node *nodes;
    double *values;    /* the same thresholds, not rounded to float */
    uint32_t *feature; /* of each node; leaf: 0 */
    uint8_t *mode;     /* LEQ, EQ, NEQ, MEMBER or LEAF */
    uint8_t *missing;  /* NaN takes `child` */
    int32_t *roots;    /* the last is there again until SDX_FOREST_LANES divides their number */
    int32_t depth;     /* branches on the longest path */
    struct sdx_forest_leaf {
        int32_t first, count; /* entries in leaf_target and leaf_weight */
    } * leaves;               /* one a node */
    int32_t *leaf_target;
    double *leaf_weight;
    float *leaf_narrow;    /* the same, rounded */
    double *members;       /* of MEMBER node i: members[member_first[k] .. member_first[k + 1]), */
    int32_t *member_first; /* where k is the node's value */
    int64_t count_nodes, count_trees, count_leaves, features; /* features: a row must have */
    bool wide;                                                /* compare and add in double */
    enum sdx_forest_kind kind;
};

enum { SDX_FOREST_LANES = 16 };

/* The forest of TreeEnsembleClassifier or -Regressor: `kind` is "class" or "target". */
SDX_MUST_CHECK enum sdx_status sdx_forest_from_lists(struct sdx_prepare *px, const char *kind,
                                                     struct sdx_forest *out);
/* The forest of TreeEnsemble. */
SDX_MUST_CHECK enum sdx_status sdx_forest_from_tensors(struct sdx_prepare *px,
                                                       struct sdx_forest *out);
/* Leaves (indices of nodes) that SDX_FOREST_LANES pairs of row and root lead to. Rows are float, or
 * double when the forest is wide. leaf[] holds the roots on entry. */
void sdx_forest_walk(const struct sdx_forest *f, enum sdx_forest_kind kind, const void *const *rows,
                     int32_t *leaf);
/* The same for one row and as many trees. */
void sdx_forest_walk_row(const struct sdx_forest *f, enum sdx_forest_kind kind, const void *row,
                         int32_t *leaf);
/* The kind of walk that a row needs. */
enum sdx_forest_kind sdx_forest_row_kind(const struct sdx_forest *f, const void *row,
                                         int64_t columns);
#endif
