/* SPDX-License-Identifier: Apache-2.0
 *
 * One committed entry: decode, answer a repeat from memory, else dispatch by the table, remember, count.
 */
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "core/state/inside.h"

struct handler {
    enum command command;
    const char *name;
    const struct rec_desc *(*record)(void);
    int (*fn)(struct apply *ap, const void *cmd);
};

/* One wrapper a command, so that each handler keeps the type of its own record. */
#define COMMAND(name, number, record, fn, doc)                                                                         \
    static int call_##fn(struct apply *ap, const void *cmd) {                                                          \
        return fn(ap, (const struct record *)cmd);                                                                     \
    }
#include "core/state/command.def"
#undef COMMAND

static const struct handler handlers[] = {
#define COMMAND(name, number, record, fn, doc) {CMD_##name, #name, record##_rec, call_##fn},
#include "core/state/command.def"
#undef COMMAND
};

#define COMMAND(name, number, record, fn, doc)                                                                         \
    _Static_assert(number > 0 && number < 65536, "a command's number is in the log");
#include "core/state/command.def"
#undef COMMAND

static const struct handler *handler_of(enum command c) {
    for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
        if (handlers[i].command == c)
            return &handlers[i];
    return NULL;
}

const char *command_name(enum command c) {
    const struct handler *h = handler_of(c);
    return h ? h->name : "UNKNOWN";
}

const struct rec_desc *command_record(enum command c) {
    const struct handler *h = handler_of(c);
    return h ? h->record() : NULL;
}

static void forget_lives(struct applied *r) {
    for (size_t i = 0; i < r->lives.n; i++)
        rec_free(r->lives.p[i]);
    r->lives.n = 0;
}

void applied_fini(struct applied *r) {
    buf_fini(&r->answer);
    vec_fini(&r->events);
    forget_lives(r);
    vec_fini(&r->lives);
}

void apply_event(struct apply *ap, enum event_kind kind, uint32_t job_id, uint32_t start_no, uint32_t node_id) {
    struct event ev = {kind, job_id, start_no, node_id, 0};
    vec_push(&ap->out->events, ev);
}

void apply_step_event(struct apply *ap, enum event_kind kind, const struct step *st) {
    struct event ev = {kind, st->job_id, st->start_no, 0, st->id};
    vec_push(&ap->out->events, ev);
}

int apply_refuse(struct apply *ap, int code, const char *fmt, ...) {
    va_list ap_list;
    va_start(ap_list, fmt);
    err_vset(&ap->out->why, code, fmt, ap_list);
    va_end(ap_list);
    return code;
}

struct answer_item *apply_items(struct apply *ap, uint32_t n) {
    struct answer_item *items = arena_calloc(ap->arena, n ? n : 1, sizeof(*items));
    ap->answer.items = items;
    ap->answer.n_items = n;
    return items;
}

void apply_item(struct answer_item *it, uint32_t job_id, int code) {
    it->job_id = job_id;
    it->error = (uint32_t)-code;
    it->text = code ? err_sentence(code) : NULL;
}

static int dispatch(struct apply *ap, const struct handler *h, const void *cmd) {
    const struct command_head *head = ap->head;
    const struct token_rec *before = head->token ? token_find(ap->s, head->token, head->uid) : NULL;
    if (before) {
        buf_add(&ap->out->answer, before->answer, before->n_answer);
        return 0;
    }
    int rc = h->fn(ap, cmd);
    if (rc == 0) {
        rec_encode(answer_rec(), &ap->answer, &ap->out->answer);
        if (head->token)
            token_remember(ap);
    }
    return rc;
}

int state_apply(struct state *s, uint64_t index, const void *entry, size_t n, struct applied *r, struct err *e) {
    auto_arena arena = {0};
    struct command_head head;
    void *cmd;
    r->code = 0;
    r->why = (struct err){0};
    buf_clear(&r->answer);
    r->events.n = 0;
    forget_lives(r);
    int rc = command_decode(entry, n, &arena, &head, &cmd, e);
    if (rc)
        return rc;
    must(index > s->index);
    s->index = index;
    s->counters.now_ms = MAX(s->counters.now_ms, head.now_ms);
    struct apply ap = {.s = s, .head = &head, .index = index, .now_ms = s->counters.now_ms, .arena = &arena, .out = r};
    cow_defer_begin(s->epochs); /* handlers copy records, change the copies and may put them twice */
    r->code = dispatch(&ap, handler_of(head.command), cmd);
    cow_defer_end(s->epochs);
    if (s->checking)
        must(state_check(s, NULL) == 0);
    return 0;
}
