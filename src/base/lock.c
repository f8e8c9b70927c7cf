/* SPDX-License-Identifier: Apache-2.0
 * All locks are in a list; around a fork its thread holds every one of them. */
#include "base/lock.h"

#include <stddef.h>

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static struct sdx_lock *first, *last;

static void before_fork(void)
{
    pthread_mutex_lock(&list);
    for (struct sdx_lock *lock = first; lock; lock = lock->after)
        pthread_mutex_lock(&lock->mutex);
}

static void after_fork(void)
{
    for (struct sdx_lock *lock = last; lock; lock = lock->before)
        pthread_mutex_unlock(&lock->mutex);
    pthread_mutex_unlock(&list);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

void sdx_lock_init(struct sdx_lock *lock)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_mutex_lock(&list);
    lock->before = last;
    lock->after = NULL;
    *(last ? &last->after : &first) = lock;
    last = lock;
    pthread_mutex_unlock(&list);
}

void sdx_lock_deinit(struct sdx_lock *lock)
{
    pthread_mutex_lock(&list);
    *(lock->before ? &lock->before->after : &first) = lock->after;
    *(lock->after ? &lock->after->before : &last) = lock->before;
    pthread_mutex_unlock(&list);
    pthread_mutex_destroy(&lock->mutex);
}

void sdx_lock_take(struct sdx_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

void sdx_lock_give(struct sdx_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
