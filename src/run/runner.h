/* SPDX-License-Identifier: Apache-2.0
 * A runner runs one graph (the main one, or a body) again and again: it makes plans for the shapes
 * it meets and keeps them.
 *
 * A plan is a chain of segments. A segment is a stretch of nodes whose shapes are known before its
 * first step runs; where a shape depends on data the segment ends, and the next one is planned when
 * the data is there. A segment may have several successors, one for each set of facts ("watches":
 * shapes and small contents) that its planning relied on. Values live in one slab a depth of the
 * chain; steps point at tensor headers in the segment's arena. */
#ifndef SDX_RUN_RUNNER_H
#define SDX_RUN_RUNNER_H

#include "ops/step_host.h"
#include "run/store.h"

struct sdx_custom_nodes;
struct sdx_pool;
struct sdx_profile;
struct sdx_tune;

/* What all runners of a session share. */
struct sdx_run_shared {
    struct sdx_context *cx;
    struct sdx_context *results; /* memory of what the caller gets: it may outlive the session */
    const struct sdx_ir *ir;
    struct sdx_store *store;
    struct sdx_pool *pool;
    int threads;
    int plans; /* variants kept of each segment */
    const atomic_int *cancel;
    struct sdx_profile *profile;      /* NULL: not recorded */
    struct sdx_tune *tune;            /* NULL: not tuned */
    struct sdx_custom_nodes *customs; /* of operators of the caller's own; NULL: none */
    int64_t run_begin_ns;
};

enum { SDX_SEGMENTS_MAX = 4096, SDX_TIME_FOREVER = INT32_MAX };

/* A fact that a segment's plan relies on. */
struct sdx_watch {
    const struct sdx_tensor *tensor;
    int32_t rank;
    uint8_t kind, dtype, layout, axis;
    int64_t capacity;
    int64_t *dims;
    void *bytes; /* content, or NULL: the shape only */
    size_t size;
};

struct sdx_segment {
    struct sdx_arena arena;
    struct sdx_segment *next; /* variants, newest use first */
    struct sdx_segment *children;
    int depth;
    int32_t node_begin, node_end;
    bool is_last;
    struct sdx_watch *watches;
    int32_t count_watches, capacity_watches;
    int32_t *grown; /* the runner's when this was planned; first segments only, else NULL */
    struct sdx_step_list list;
    int32_t *profile_rows; /* of the steps, when profiling */
    struct sdx_placed {
        struct sdx_tensor *tensor;
        size_t offset;
    } * placed;
    int32_t count_placed;
    struct sdx_alias {
        struct sdx_tensor *view;
        const struct sdx_tensor *root;
        size_t shift; /* bytes into root */
    } * aliases;
    int32_t count_aliases, capacity_aliases;
    struct sdx_external_output {
        struct sdx_tensor *tensor;
        int32_t output;
    } * externals;
    int32_t count_externals;
    struct sdx_tensor **dynamic; /* headers that own their data */
    int32_t count_dynamic, capacity_dynamic;
    struct sdx_produced {
        int32_t value;
        struct sdx_tensor *tensor;
        bool is_dynamic;
    } * produced;
    int32_t count_produced, capacity_produced;
    struct sdx_body_runner *bodies;
    size_t slab_size, scratch;
    const void *bound; /* slab the headers point into */
    bool is_wide;      /* a step has several parts */
};

/* State of a value on the current path. */
struct sdx_slot {
    struct sdx_tensor *tensor; /* NULL: not planned yet */
    int32_t last_use;          /* node index, -1: never; FOREVER: output or unknown */
    int32_t block;             /* memory block while its segment is planned, -1: none */
    size_t shift;              /* bytes into the block */
    int16_t depth;             /* segment that makes it; -1: input, capture, constant */
    bool is_dynamic;           /* shape known only after its step has run */
    bool is_taken;             /* by a body */
    int32_t claim;             /* graph output whose memory it is made in, -1: none */
};

struct sdx_runner {
    struct sdx_run_shared *shared;
    int32_t graph;
    const struct sdx_ir_graph *g;
    bool is_body;
    struct sdx_arena arena;      /* slots, input headers */
    struct sdx_slot *slots;      /* one a value */
    struct sdx_tensor *inputs;   /* headers of the graph inputs */
    struct sdx_tensor **outputs; /* bodies: headers of the outputs after a run */
    int32_t *grown; /* main graph: the input whose growing tensor output o is bound to, -1: none */
    struct sdx_segment *plans;
    struct sdx_slab {
        void *data;
        size_t size;
    } * slabs;
    int count_slabs;
    struct sdx_exec *workers; /* threads of them */
    size_t scratch;
    struct sdx_segment *settled;    /* the only one of its path; the slots say what it makes */
    int64_t last_ns, last_begin_ns; /* time the last run with wide segments took, and its begin */
};

struct sdx_body_runner {
    struct sdx_body body; /* first */
    struct sdx_body_runner *next;
    struct sdx_runner runner;
};

/* parent: the runner whose node holds this body (captures are taken from its slots), NULL for the
 * main graph. */
SDX_MUST_CHECK enum sdx_status sdx_runner_init(struct sdx_runner *r, struct sdx_run_shared *shared,
                                               int32_t graph, const struct sdx_runner *parent);
void sdx_runner_deinit(struct sdx_runner *r);
/* Runs. feeds[i]: input i of the graph (NULL: its initializer); of SDX_LAYOUT_GROWING only where
 * sdx_runner_takes_growing. results: main graph only, one an output; an entry that is not NULL is
 * written into (one that grows takes any length it has room for), the others are made and belong to
 * the caller; `wanted` NULL: all. */
SDX_MUST_CHECK enum sdx_status sdx_runner_run(struct sdx_runner *r,
                                              const struct sdx_tensor *const *feeds,
                                              struct sdx_tensor **results, const bool *wanted);
/* May input i be fed in SDX_LAYOUT_GROWING? Not what bodies or outputs read as it is. */
bool sdx_runner_takes_growing(const struct sdx_runner *r, int32_t i);
/* BAD_INPUT when output o is longer than the tensor that grows, which it is bound to, can hold. */
SDX_MUST_CHECK enum sdx_status sdx_runner_check_capacity(const struct sdx_runner *r, int32_t o,
                                                         int64_t length,
                                                         const struct sdx_tensor *growing);

/* segment.c: plans nodes from node_begin on until the end or the first that must wait. */
SDX_MUST_CHECK enum sdx_status sdx_segment_create(struct sdx_runner *r, int depth,
                                                  int32_t node_begin, struct sdx_segment **out);
void sdx_segment_destroy(struct sdx_segment *s); /* with its children */
/* slab.c: a place in the slab for every block. */
struct sdx_block {
    size_t size, offset; /* offset: in the slab, or in `whole` */
    int32_t first, last; /* nodes between which it is in use */
    int32_t whole;       /* block that it is a slice of, -1: none */
};
SDX_MUST_CHECK enum sdx_status sdx_slab_plan(struct sdx_context *cx, struct sdx_arena *work,
                                             struct sdx_block **blocks, int32_t count,
                                             size_t *slab_size);
/* bodies of control operators, for segment.c */
struct sdx_body *sdx_runner_body(struct sdx_runner *parent, struct sdx_segment *s, int32_t graph);
#endif
