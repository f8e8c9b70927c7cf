/* SPDX-License-Identifier: Apache-2.0
 * Metadata of a model: a copy, which may outlive the session. */
#include "ort_objects.h"

#include <stdlib.h>
#include <string.h>

struct OrtModelMetadata {
    char *producer, *graph, *domain, *description, *graph_description;
    int64_t version;
    struct OrtKeyValuePairs custom;
};

static void release(OrtModelMetadata *metadata)
{
    if (!metadata) return;
    free(metadata->producer);
    free(metadata->graph);
    free(metadata->domain);
    free(metadata->description);
    free(metadata->graph_description);
    ort_pairs_deinit(&metadata->custom);
    free(metadata);
}

static OrtStatusPtr copy_facts(const sdx_model_facts *facts, OrtModelMetadata *metadata)
{
    ORT_TRY(ort_set_text(&metadata->producer, facts->producer));
    ORT_TRY(ort_set_text(&metadata->graph, facts->name));
    ORT_TRY(ort_set_text(&metadata->domain, facts->domain));
    ORT_TRY(ort_set_text(&metadata->description, facts->doc));
    ORT_TRY(ort_set_text(&metadata->graph_description, facts->graph_doc));
    /* Absent is 0 in the engine, and the largest number there is in the real library. */
    metadata->version = facts->model_version ? facts->model_version : INT64_MAX;
    for (int i = 0; i < facts->count_metadata; i++)
        ORT_TRY(
            ort_pairs_set(&metadata->custom, facts->metadata_keys[i], facts->metadata_values[i]));
    return NULL;
}

OrtStatusPtr ort_metadata_of(const sdx_model *model, OrtModelMetadata **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return ort_no_memory();
    OrtStatusPtr status = copy_facts(sdx_model_get_facts(model), *out);
    if (!status) return NULL;
    release(*out);
    *out = NULL;
    return status;
}

static OrtStatusPtr of_session(const OrtSession *session, OrtModelMetadata **out)
{
    return ort_metadata_of(session->model, out);
}

static OrtStatusPtr producer(const OrtModelMetadata *metadata, OrtAllocator *allocator, char **out)
{
    return ort_copy_text(allocator, metadata->producer, out);
}

static OrtStatusPtr graph(const OrtModelMetadata *metadata, OrtAllocator *allocator, char **out)
{
    return ort_copy_text(allocator, metadata->graph, out);
}

static OrtStatusPtr domain(const OrtModelMetadata *metadata, OrtAllocator *allocator, char **out)
{
    return ort_copy_text(allocator, metadata->domain, out);
}

static OrtStatusPtr description(const OrtModelMetadata *metadata, OrtAllocator *allocator,
                                char **out)
{
    return ort_copy_text(allocator, metadata->description, out);
}

static OrtStatusPtr graph_description(const OrtModelMetadata *metadata, OrtAllocator *allocator,
                                      char **out)
{
    return ort_copy_text(allocator, metadata->graph_description, out);
}

static OrtStatusPtr version(const OrtModelMetadata *metadata, int64_t *out)
{
    *out = metadata->version;
    return NULL;
}

static OrtStatusPtr look_up(const OrtModelMetadata *metadata, OrtAllocator *allocator,
                            const char *key, char **out)
{
    const char *value = ort_pairs_get(&metadata->custom, key);
    *out = NULL;
    return value ? ort_copy_text(allocator, value, out) : NULL;
}

static OrtStatusPtr keys(const OrtModelMetadata *metadata, OrtAllocator *allocator, char ***out,
                         int64_t *count)
{
    *out = NULL;
    *count = (int64_t)metadata->custom.count;
    if (!*count) return NULL;
    char **list = allocator->Alloc(allocator, metadata->custom.count * sizeof *list);
    if (!list) return ort_no_memory();
    for (size_t i = 0; i < metadata->custom.count; i++) {
        OrtStatusPtr status = ort_copy_text(allocator, metadata->custom.keys[i], &list[i]);
        if (!status) continue;
        while (i-- > 0)
            allocator->Free(allocator, list[i]);
        allocator->Free(allocator, list);
        return status;
    }
    *out = list;
    return NULL;
}

void ort_fill_metadata(OrtApi *api)
{
    api->SessionGetModelMetadata = of_session;
    api->ReleaseModelMetadata = release;
    api->ModelMetadataGetProducerName = producer;
    api->ModelMetadataGetGraphName = graph;
    api->ModelMetadataGetDomain = domain;
    api->ModelMetadataGetDescription = description;
    api->ModelMetadataGetGraphDescription = graph_description;
    api->ModelMetadataGetVersion = version;
    api->ModelMetadataLookupCustomMetadataMap = look_up;
    api->ModelMetadataGetCustomMetadataMapKeys = keys;
}
