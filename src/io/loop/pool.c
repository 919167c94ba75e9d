/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of threads for what blocks. Not libuv's: that one is shared by the whole process, so that a slow name look-up
 * would hold up a disk.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/mem.h"
#include "io/loop/loop.h"

struct pool_job {
    struct pool_job *next;
    struct loop *back_to;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

struct pool {
    pthread_mutex_t lock; /* guards all but `threads` */
    pthread_cond_t more;
    struct pool_job *first, **last;
    size_t waiting;
    bool stopping;
    unsigned n_threads;
    pthread_t threads[];
};

/* The next job; NULL when the pool stops and nothing is left. */
static struct pool_job *job_take(struct pool *p) {
    pthread_mutex_lock(&p->lock);
    while (!p->first && !p->stopping)
        pthread_cond_wait(&p->more, &p->lock);
    struct pool_job *j = p->first;
    if (j) {
        p->first = j->next;
        if (!p->first)
            p->last = &p->first;
        p->waiting--;
    }
    pthread_mutex_unlock(&p->lock);
    return j;
}

static void *worker(void *arg) {
    struct pool *p = arg;
    for (struct pool_job *j; (j = job_take(p));) {
        j->work(j->arg);
        if (j->done)
            loop_post(j->back_to, j->done, j->arg);
        free(j);
    }
    return NULL;
}

struct pool *pool_new(const char *name, unsigned n_threads) {
    must(n_threads > 0);
    struct pool *p = xcalloc(1, sizeof(*p) + n_threads * sizeof(pthread_t));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    p->last = &p->first;
    p->n_threads = n_threads;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* threads inherit it: signals are for the loops */
    for (unsigned i = 0; i < n_threads; i++) {
        must(pthread_create(&p->threads[i], NULL, worker, p) == 0);
        char title[16]; /* the kernel's limit */
        snprintf(title, sizeof(title), "%.11s-%u", name, i % 100);
        pthread_setname_np(p->threads[i], title);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p;
}

void pool_free(struct pool *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void pool_run(struct pool *p, struct loop *back_to, void (*work)(void *arg), void (*done)(void *arg), void *arg) {
    struct pool_job *j = xnew(struct pool_job);
    *j = (struct pool_job){NULL, back_to, work, done, arg};
    pthread_mutex_lock(&p->lock);
    must(!p->stopping);
    *p->last = j;
    p->last = &j->next;
    p->waiting++;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
}

size_t pool_waiting(struct pool *p) {
    pthread_mutex_lock(&p->lock);
    size_t n = p->waiting;
    pthread_mutex_unlock(&p->lock);
    return n;
}
