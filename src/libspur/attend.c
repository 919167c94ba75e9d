/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread asks for the job and for the step one after the other; the last question waits at the controller until
 * something changed. News are posted when an answer reads differently from the one before.
 */
#include "spur/attend.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spur/spur.h"

#define PAUSE_MS 1000 /* after an error */
#define NEWS_MAX 64

struct spur_attend {
    pthread_mutex_t lock;
    int fd;
    uint32_t job_id, step; /* step: + 1; 0: none. By the lock */
    bool job;
    uint64_t first_ms;
    VEC(struct spur_news) news; /* by the lock */
    /* of the thread: */
    struct spur_client *client;
    uint32_t seen[2]; /* hash of the last answer about the job, the step */
    int code[2];
    char *state[2];
};

static void post(struct spur_attend *a, struct spur_news *n) {
    pthread_mutex_lock(&a->lock);
    if (a->news.n >= NEWS_MAX) { /* the newest says it all */
        rec_free(a->news.p[0].reply);
        vec_remove(&a->news, 0);
    }
    vec_push(&a->news, *n);
    pthread_mutex_unlock(&a->lock);
    uint64_t one = 1;
    while (write(a->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static const char *state_of(const struct attend_reply *r, bool of_step) {
    if (of_step && r->step)
        return job_state_name(r->step->state);
    return r->job && r->job->job ? job_shown_state(r->job->job) : NULL;
}

/* One question. false: no answer. */
static bool ask(struct spur_attend *a, uint32_t step, bool at_once) {
    bool of_step = step != 0;
    struct attend_request request = {.job_id = a->job_id, .step_id = step, .seen_state = at_once ? NULL : a->state[of_step]};
    auto_arena arena = {0};
    struct attend_reply reply = {0};
    struct err e = {0};
    int rc = a->client ? 0 : spur_open(NULL, &a->client, &e);
    rc = rc ? rc : spur_call(a->client, WIRE_Controller_Attend, &request, &arena, &reply, &e);
    struct spur_news n = {.code = rc, .of_step = of_step};
    if (rc) {
        memcpy(n.text, e.text, sizeof(n.text));
        if (a->code[of_step] != rc)
            post(a, &n);
        a->code[of_step] = rc;
        return false;
    }
    const char *state = state_of(&reply, of_step);
    n.reply = rec_pack(attend_reply_rec(), &reply);
    uint32_t hash = (uint32_t)rec_hash(n.reply);
    bool is_new = a->code[of_step] || !a->state[of_step] || !str_eq(state, a->state[of_step]) || hash != a->seen[of_step];
    a->code[of_step] = 0;
    a->seen[of_step] = hash;
    free(a->state[of_step]);
    a->state[of_step] = xstrdup(state);
    if (is_new)
        post(a, &n);
    else
        rec_free(n.reply);
    return true;
}

static void pause_ms(uint64_t ms) {
    struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

static void *attend(void *arg) {
    struct spur_attend *a = arg;
    pause_ms(a->first_ms);
    for (;;) {
        pthread_mutex_lock(&a->lock);
        uint32_t step = a->step;
        pthread_mutex_unlock(&a->lock);
        bool ok = true;
        if (a->job)
            ok = ask(a, 0, step != 0);
        if (step)
            ok = ask(a, step, false) && ok;
        if (!ok)
            pause_ms(PAUSE_MS);
    }
    return NULL;
}

struct spur_attend *spur_attend_start(uint32_t job_id, bool job, uint32_t step_id_plus_1, uint64_t first_ms) {
    struct spur_attend *a = xnew(struct spur_attend);
    pthread_mutex_init(&a->lock, NULL);
    a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    must(a->fd >= 0);
    a->job_id = job_id;
    a->job = job;
    a->step = step_id_plus_1;
    a->first_ms = first_ms;
    pthread_t thread;
    must(pthread_create(&thread, NULL, attend, a) == 0);
    pthread_detach(thread);
    return a;
}

void spur_attend_step(struct spur_attend *a, uint32_t step_id) {
    pthread_mutex_lock(&a->lock);
    a->step = step_id + 1;
    pthread_mutex_unlock(&a->lock);
}

int spur_attend_fd(const struct spur_attend *a) {
    return a->fd;
}

bool spur_attend_take(struct spur_attend *a, struct spur_news *out) {
    bool any = false;
    pthread_mutex_lock(&a->lock);
    if (a->news.n) {
        *out = a->news.p[0];
        vec_remove(&a->news, 0);
        any = true;
    } else {
        uint64_t n;
        while (read(a->fd, &n, sizeof(n)) < 0 && errno == EINTR)
            ;
    }
    pthread_mutex_unlock(&a->lock);
    return any;
}
