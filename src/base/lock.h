/* SPDX-License-Identifier: Apache-2.0
 * Locks that a fork does not leave held: fork() waits until no other thread holds one, so a child
 * finds what they guard whole, and the locks free. */
#ifndef SDX_BASE_LOCK_H
#define SDX_BASE_LOCK_H

#include <pthread.h>

struct sdx_lock {
    pthread_mutex_t mutex;
    struct sdx_lock *before, *after; /* of all there are, in the order in which they were made */
};

/* Who takes two takes the one first that was made first. */
void sdx_lock_init(struct sdx_lock *lock);
void sdx_lock_deinit(struct sdx_lock *lock);
void sdx_lock_take(struct sdx_lock *lock);
void sdx_lock_give(struct sdx_lock *lock);
#endif
