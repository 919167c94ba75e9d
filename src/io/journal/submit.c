/* SPDX-License-Identifier: Apache-2.0
 *
 * From the inbox to libraft, and which committed entry was whose.
 *
 * libraft 0.22 takes one entry a call, but what it is given while a write is in flight goes to disk in one write
 * after it; so whatever has gathered is handed over at once, up to a bound on what is not yet durable.
 *
 * A proposal ends in exactly one of two ways: its entry is applied (same index, same term: it is the very entry), or
 * libraft calls back that leadership was lost or the instance closed, without that having happened.
 */
#include <string.h>

#include "io/journal/inside.h"

static void own_unlink(struct own *o) {
    struct instance *in = o->inst;
    if (o->prev)
        o->prev->next = o->next;
    else
        in->own_first = o->next;
    if (o->next)
        o->next->prev = o->prev;
    else
        in->own_last = o->prev;
}

/* Those of an earlier leadership whose places are taken now; libraft will call back for them. */
static void own_drop_from(struct instance *in, uint64_t index) {
    while (in->own_last && in->own_last->index >= index) {
        struct own *o = in->own_last;
        own_unlink(o);
        o->matched = false;
        o->prev = o->next = o; /* in no list */
    }
}

static bool own_is_listed(const struct own *o) {
    return o->next != o;
}

void *own_match(struct instance *in, uint64_t index, uint64_t term) {
    struct own *o;
    while ((o = in->own_first) && o->index < index) {
        own_unlink(o);
        o->prev = o->next = o;
    }
    if (!o || o->index != index)
        return NULL;
    own_unlink(o);
    o->prev = o->next = o;
    if (o->term != term)
        return NULL;
    o->matched = true;
    return o->tag;
}

static void refuse_text(struct journal *j, int *out_code, const char **out_why) {
    struct instance *in = j->inst;
    *out_code = E_NOT_LEADER;
    *out_why = NULL;
    if (j->stopping) {
        *out_code = E_STOPPING;
    } else if (j->trouble.code != 0) {
        *out_code = j->trouble.code;
        *out_why = j->trouble.text;
    } else if (in && in->broken) {
        *out_code = in->broken_code;
        *out_why = in->broken_text;
    }
}

/* The callback comes in a later turn than the entry, or instead of it. */
static void on_apply(struct raft_apply *req, int status, void *result) {
    struct own *o = req->data;
    struct journal *j = o->inst->j;
    if (own_is_listed(o))
        own_unlink(o);
    if (!o->matched) {
        int code;
        const char *why;
        refuse_text(j, &code, &why);
        if (code == E_NOT_LEADER)
            why = "leadership was lost before the entry was committed; it may still become one";
        out_refused(j->out, o->tag, code, why);
        turn_soon(j);
    }
    free(o);
}

void own_forget_all(struct instance *in) {
    while (in->own_first)
        on_apply(&in->own_first->req, RAFT_SHUTDOWN, NULL);
}

/* 0: libraft has it. RAFT_NOSPACE and RAFT_NOTLEADER: it is still ours. Else it is gone, and so is the instance. */
static int hand_over(struct instance *in, struct proposal *p) {
    struct own *o = xnew(struct own);
    uint64_t stored = in->raft.last_stored;
    size_t n = p->entry.n;
    o->inst = in;
    o->tag = p->tag;
    o->index = raft_last_index(&in->raft) + 1;
    o->term = raft_current_term(&in->raft);
    o->req.data = o;
    struct frame f = {.index = o->index, .term = o->term};
    if (journal_alone(in->j))
        f.behind = (uint16_t)MIN(o->index - stored, (uint64_t)UINT16_MAX);
    frame_close(&p->entry, &f);
    struct raft_buffer b = {p->entry.p, p->entry.n};
    own_drop_from(in, o->index);
    int rv = raft_apply(&in->raft, &o->req, &b, 1, on_apply);
    if (rv != 0) {
        p->entry.n = n; /* without the tail */
        free(o);
        if (rv != RAFT_NOSPACE && rv != RAFT_NOTLEADER)
            instance_break(in, 0, "%s", raft_strerror(rv));
        return rv;
    }
    must(raft_last_index(&in->raft) == o->index);
    o->prev = in->own_last;
    o->next = NULL;
    *(in->own_last ? &in->own_last->next : &in->own_first) = o;
    in->own_last = o;
    p->entry = (struct buf){0};
    return 0;
}

static void refuse(struct journal *j, struct proposal *p, int code, const char *why) {
    out_refused(j->out, p->tag, code, why);
    buf_fini(&p->entry);
    j->waiting_at++;
}

void submit_refuse_waiting(struct journal *j, int code, const char *why) {
    while (j->waiting_at < j->waiting.n)
        refuse(j, &j->waiting.p[j->waiting_at], code, why);
}

static void take_inbox(struct journal *j) {
    if (j->waiting_at == j->waiting.n)
        j->waiting_at = j->waiting.n = 0;
    pthread_mutex_lock(&j->in_lock);
    if (j->waiting.n == 0) {
        __auto_type v = j->waiting;
        j->waiting.p = j->in.p, j->waiting.n = j->in.n, j->waiting.cap = j->in.cap;
        j->in.p = v.p, j->in.n = 0, j->in.cap = v.cap;
    }
    pthread_mutex_unlock(&j->in_lock);
}

/* False: stop here for this turn. */
static bool submit_one(struct journal *j, struct proposal *p) {
    struct instance *in = j->inst;
    int code;
    const char *why;
    if (j->stopping || !in || in->broken || !in->ready) {
        refuse_text(j, &code, &why);
        refuse(j, p, code, why);
        return true;
    }
    if (p->entry.n > ENTRY_BYTES_MAX) {
        refuse(j, p, E_TOO_BIG, NULL);
        return true;
    }
    if (in->unstored_bytes >= 2 * j->max_batch_bytes)
        return false; /* goes on when what is being written is durable */
    int rv = hand_over(in, p);
    if (rv == RAFT_NOSPACE) {
        if (j->trouble.code != 0) {
            refuse(j, p, j->trouble.code, j->trouble.text);
            trouble_no_room(j);
            return true;
        }
        trouble_no_room(j); /* it waits until we know why */
        return false;
    }
    if (rv == RAFT_NOTLEADER) {
        refuse(j, p, E_NOT_LEADER, NULL);
        return true;
    }
    if (rv != 0) {
        p->entry = (struct buf){0};
        refuse(j, p, E_SYS, in->broken_text);
        return true;
    }
    if (j->trouble.code != 0 || j->trouble.held_since_ms)
        trouble_clear(j);
    j->waiting_at++;
    return true;
}

void submit_waiting(struct journal *j) {
    do {
        take_inbox(j);
        while (j->waiting_at < j->waiting.n)
            if (!submit_one(j, &j->waiting.p[j->waiting_at]))
                return;
    } while (j->waiting.n > 0);
}
