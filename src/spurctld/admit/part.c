/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol create, update and delete partition: the new values are checked as those of the file are. A partition that
 * jobs name isn't deleted, as with Slurm; which do is looked for on a worker.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurctld/admit/admit.h"

#define NAME_MAX_BYTES 64u

struct changing {
    struct room *room;
    struct cmd_partition cmd;
    struct part part;
    struct arena arena;
    struct view view; /* while a worker looks for jobs */
    bool is_used;
    uint32_t uid;
    uint8_t token[TOKEN_SIZE];
    bool has_token;
    admit_fn done;
    void *arg;
};

static void finish(struct changing *c, int code, const struct err *why) {
    struct nothing reply = {0};
    c->done(c->arg, code, why, &reply);
    arena_fini(&c->arena);
    free(c);
}

static void on_done(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    finish(arg, code, why);
}

static bool is_name(const char *s) {
    static const char more[] = "-_.";
    if (!s || !*s || strlen(s) > NAME_MAX_BYTES || strchr(more, *s))
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || strchr(more, *s)))
            return false;
    return true;
}

static int check(struct changing *c, const struct part *old, struct err *e) {
    struct part p = old ? *old : c->part;
    part_change(&p, &c->part, c->cmd.changes);
    if (c->cmd.op < PART_OP_CREATE || c->cmd.op > PART_OP_DELETE)
        return err_set(e, E_USAGE, "no such change");
    if (!is_name(c->part.name) || !old != (c->cmd.op == PART_OP_CREATE))
        return err_set(e, E_PARTITION, NULL);
    if (p.default_time_min > p.max_time_min || p.state > PART_INACTIVE || p.over_subscribe > OVER_FORCE)
        return err_set(e, E_TIME_LIMIT, NULL);
    if (p.max_nodes && p.min_nodes > p.max_nodes)
        return err_set(e, E_USAGE, "MinNodes is more than MaxNodes");
    return c->cmd.op == PART_OP_UPDATE && !c->cmd.changes ? err_set(e, E_USAGE, "No changes specified") : 0;
}

static void propose(struct changing *c) {
    room_propose(c->room, CMD_PARTITION, &c->cmd, c->uid, c->has_token ? c->token : NULL, on_done, c);
}

/* "a,b" has the name among its words. */
static bool names(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list ? list : ""; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

static void look(void *arg) {
    struct changing *c = arg;
    const struct job *j;
    for (uint64_t k = 0; !c->is_used && (j = view_next_job(&c->view, &k)); k++)
        c->is_used = !job_is_over(j) && (j->partition ? str_eq(j->partition, c->part.name) : names(j->spec->partition, c->part.name));
}

static void looked(void *arg) {
    struct changing *c = arg;
    struct err e;
    state_view_end(&c->view);
    if (c->is_used)
        finish(c, err_set(&e, E_PART_BUSY, NULL), &e);
    else
        propose(c);
}

/* The request goes with its answer: what the command needs is copied. */
static struct changing *take(struct room *r, const struct who *who, const struct part_update_request *req) {
    struct changing *c = xnew(struct changing);
    *c = (struct changing){.room = r, .uid = who->uid, .has_token = req->n_token == TOKEN_SIZE};
    if (c->has_token)
        memcpy(c->token, req->token, TOKEN_SIZE);
    if (req->part) {
        struct err e = {0};
        struct buf bytes = {0};
        rec_encode(part_rec(), req->part, &bytes);
        must(rec_decode(part_rec(), bytes.p, bytes.n, &c->arena, &c->part, &e) == 0);
        buf_fini(&bytes);
    }
    c->cmd = (struct cmd_partition){.op = req->op, .part = &c->part, .changes = req->changes & PART_CHANGES};
    return c;
}

/* What is not given when one is made: as in a file. */
static void fill_in(struct part *p, uint32_t given) {
    if (!(given & PART_CHANGE_MAX_TIME))
        p->max_time_min = TIME_LIMIT_NONE;
    if (!(given & PART_CHANGE_MIN_NODES))
        p->min_nodes = 1;
    if (!(given & PART_CHANGE_TIER))
        p->priority_tier = 1;
}

void admit_partition(struct room *r, const struct who *who, const struct part_update_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    struct view v;
    struct changing *c = take(r, who, req);
    c->done = done;
    c->arg = arg;
    state_peek(r->state, &v);
    if (c->cmd.op == PART_OP_CREATE)
        fill_in(&c->part, c->cmd.changes);
    int rc = check(c, view_find_part(&v, c->part.name ? c->part.name : ""), &e);
    if (rc) {
        finish(c, rc, &e);
        return;
    }
    if (c->cmd.op != PART_OP_DELETE) {
        propose(c);
        return;
    }
    state_view(r->state, &c->view);
    r->host->work(r->host->impl, look, looked, c);
}
