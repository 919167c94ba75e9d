/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "spurctld/query/query.h"

struct asking {
    query_fn done;
    void *arg;
};

static void on_loaded(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct asking *q = arg;
    struct buf bytes = {0};
    struct script_reply reply = {.script = p, .n_script = (uint32_t)n};
    if (!code)
        rec_encode(script_reply_rec(), &reply, &bytes);
    q->done(q->arg, code, why, bytes.p, bytes.n);
    buf_fini(&bytes);
    free(q);
}

void query_script(struct room *r, const struct who *who, uint32_t job_id, query_fn done, void *arg) {
    struct view v;
    struct err e = {0};
    auto_arena a = {0};
    bool is_yours = false;
    state_peek(r->state, &v);
    const struct job *j = view_job(&v, job_id);
    if (j)
        (void)query_visible(who, j, &a, &is_yours);
    int rc = !j ? err_set(&e, E_JOB_ID, NULL) : !is_yours ? err_set(&e, E_USER, NULL)
             : !j->spec->n_script_hash ? err_set(&e, E_NOT_FOUND, "the job has no script") : 0;
    if (rc) {
        done(arg, rc, &e, NULL, 0);
        return;
    }
    struct asking *q = xnew(struct asking);
    *q = (struct asking){done, arg};
    r->host->load(r->host->impl, j->spec->script_hash, on_loaded, q);
}
