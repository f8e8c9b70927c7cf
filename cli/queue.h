/* SPDX-License-Identifier: Apache-2.0
 * A queue of pointers between two threads that holds so many and no more. */
#ifndef SDX_CLI_QUEUE_H
#define SDX_CLI_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

struct sdx_cli_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void **items;
    int first, count, capacity;
    bool closed;
};

void sdx_cli_queue_init(struct sdx_cli_queue *queue, int capacity);
void sdx_cli_queue_deinit(struct sdx_cli_queue *queue); /* accepts a zeroed one */
/* Waits for room; false when the queue was closed, the item stays the caller's. */
bool sdx_cli_queue_push(struct sdx_cli_queue *queue, void *item);
/* The same without waiting: false when there is no room. */
bool sdx_cli_queue_offer(struct sdx_cli_queue *queue, void *item);
/* Waits for an item; NULL when the queue was closed and is empty. */
void *sdx_cli_queue_pop(struct sdx_cli_queue *queue);
/* Nothing more goes in. */
void sdx_cli_queue_close(struct sdx_cli_queue *queue);

#endif
