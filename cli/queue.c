/* SPDX-License-Identifier: Apache-2.0
 * A queue of pointers between two threads that holds so many and no more. */
#include "queue.h"
#include "cli.h"

#include <stdlib.h>

void sdx_cli_queue_init(struct sdx_cli_queue *queue, int capacity)
{
    *queue = (struct sdx_cli_queue){.capacity = capacity};
    queue->items = calloc((size_t)capacity, sizeof *queue->items);
    if (queue->items == NULL) sdx_cli_no_memory();
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
}

void sdx_cli_queue_deinit(struct sdx_cli_queue *queue)
{
    if (queue->items == NULL) return;
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
    free(queue->items);
    *queue = (struct sdx_cli_queue){0};
}

static bool put(struct sdx_cli_queue *queue, void *item, bool wait)
{
    pthread_mutex_lock(&queue->lock);
    while (wait && !queue->closed && queue->count == queue->capacity)
        pthread_cond_wait(&queue->changed, &queue->lock);
    bool ok = !queue->closed && queue->count < queue->capacity;
    if (ok) {
        queue->items[(queue->first + queue->count++) % queue->capacity] = item;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return ok;
}

bool sdx_cli_queue_push(struct sdx_cli_queue *queue, void *item)
{
    return put(queue, item, true);
}

bool sdx_cli_queue_offer(struct sdx_cli_queue *queue, void *item)
{
    return put(queue, item, false);
}

void *sdx_cli_queue_pop(struct sdx_cli_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0)
        pthread_cond_wait(&queue->changed, &queue->lock);
    void *item = NULL;
    if (queue->count > 0) {
        item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void sdx_cli_queue_close(struct sdx_cli_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}
