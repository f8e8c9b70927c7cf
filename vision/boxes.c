/* SPDX-License-Identifier: Apache-2.0
 * Lists of boxes: greedy suppression within each class, as torchvision.ops.nms does it on boxes
 * that are kept apart by class, and the way back from a model's input to the picture. */
#include "boxes.h"
#include "fault.h"

#include <stdlib.h>

sdx_status sdx_boxes_append(sdx_boxes *boxes, sdx_box box, sdx_vision_fault *fault)
{
    if (boxes->count == boxes->capacity) {
        size_t capacity = boxes->capacity ? 2 * boxes->capacity : 64;
        sdx_box *items = realloc(boxes->items, capacity * sizeof *items);
        if (items == NULL)
            return sdx_vision_fail(fault, SDX_OUT_OF_MEMORY, "no memory for %zu boxes", capacity);
        boxes->items = items;
        boxes->capacity = capacity;
    }
    boxes->items[boxes->count++] = box;
    return SDX_OK;
}

void sdx_boxes_deinit(sdx_boxes *boxes)
{
    free(boxes->items);
    *boxes = (sdx_boxes){0};
}

/* Falling score; equal scores by place and class, so that the order never depends on qsort. */
static int compare(const void *left, const void *right)
{
    const sdx_box *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    if (a->label != b->label) return a->label < b->label ? -1 : 1;
    if (a->x0 != b->x0) return a->x0 < b->x0 ? -1 : 1;
    if (a->y0 != b->y0) return a->y0 < b->y0 ? -1 : 1;
    return 0;
}

static double area(const sdx_box *b)
{
    return ((double)b->x1 - b->x0) * ((double)b->y1 - b->y0);
}

static double overlap(const sdx_box *a, const sdx_box *b)
{
    double w = (double)(a->x1 < b->x1 ? a->x1 : b->x1) - (a->x0 > b->x0 ? a->x0 : b->x0);
    double h = (double)(a->y1 < b->y1 ? a->y1 : b->y1) - (a->y0 > b->y0 ? a->y0 : b->y0);
    if (w <= 0 || h <= 0) return 0;
    double both = area(a) + area(b) - w * h;
    return both > 0 ? w * h / both : 0;
}

void sdx_boxes_suppress(sdx_boxes *boxes, double iou, size_t limit)
{
    if (boxes->count == 0) return;
    qsort(boxes->items, boxes->count, sizeof *boxes->items, compare);
    size_t kept = 0;
    for (size_t i = 0; i < boxes->count && kept < limit; i++) {
        sdx_box box = boxes->items[i];
        bool keep = true;
        for (size_t k = 0; k < kept && keep; k++)
            keep = boxes->items[k].label != box.label || overlap(&boxes->items[k], &box) <= iou;
        if (keep) boxes->items[kept++] = box;
    }
    boxes->count = kept;
}

static float between(double value, int most)
{
    return (float)(value < 0 ? 0 : value > most ? most : value);
}

void sdx_boxes_to_picture(sdx_boxes *boxes, const sdx_letterbox *place, int width, int height)
{
    for (size_t i = 0; i < boxes->count; i++) {
        sdx_box *b = &boxes->items[i];
        b->x0 = between((b->x0 - place->left) / place->scale, width);
        b->x1 = between((b->x1 - place->left) / place->scale, width);
        b->y0 = between((b->y0 - place->top) / place->scale, height);
        b->y1 = between((b->y1 - place->top) / place->scale, height);
    }
}
