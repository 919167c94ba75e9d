/* SPDX-License-Identifier: Apache-2.0 */
#include "libspur/link_frame.h"

#include <string.h>

#include "base/mem.h"
#include "libspur/link_dial.h"

#define RING_SIZE STREAM_WINDOW

/* ---- what is said ---- */

/* What was received of this node's tasks: it need not be sent again. */
static void add_marks(struct link *l, struct arena *a, struct stream_open *open) {
    const struct spur_streams *s = l->s;
    struct stream_mark *m = arena_calloc(a, (size_t)s->n_tasks * 2 + 1, sizeof(*m));
    uint32_t n = 0;
    for (uint32_t t = 0; t < s->n_tasks; t++)
        for (uint32_t k = 0; s->task[t].node == l->index && k < 2; k++)
            if (s->task[t].got[k])
                m[n++] = (struct stream_mark){t, k ? STREAM_ERR : STREAM_OUT, s->task[t].got[k]};
    open->have = m;
    open->n_have = n;
}

void link_frame_open(struct link *l) {
    const struct spur_streams *s = l->s;
    const struct step_ticket_signed *t = &s->ticket[l->index];
    auto_arena a = {0};
    struct stream_launch launch = s->launch ? *s->launch : (struct stream_launch){0};
    launch.launch_port = link_local_port(l->fd);
    struct stream_open open = {.ticket = s->ticket_text, .n_ticket = s->n_ticket_text, .signature = t->signature,
                               .n_signature = t->n_signature, .launch = s->launch ? &launch : NULL, .resume = l->was_welcome,
                               .no_input = s->no_input};
    if (l->was_welcome)
        add_marks(l, &a, &open);
    buf_clear(&l->out);
    l->out_at = 0;
    buf_add(&l->out, STREAM_MAGIC, STREAM_MAGIC_SIZE);
    stream_frame_add(&l->out, STREAM_OPEN, stream_open_rec(), &open);
}

void link_frame_wishes(struct link *l) {
    const struct spur_streams *s = l->s;
    if (l->window_size) {
        struct stream_winsize w = {s->rows, s->columns};
        stream_frame_add(&l->out, STREAM_WINDOW_SIZE, stream_winsize_rec(), &w);
        l->window_size = false;
    }
    for (uint32_t signo = 1; l->signals && signo < 64; signo++) {
        struct stream_signal sig = {signo};
        if (l->signals >> signo & 1)
            stream_frame_add(&l->out, STREAM_SIGNAL, stream_signal_rec(), &sig);
    }
    l->signals = 0;
    if (l->terminate) {
        struct nothing none = {0};
        stream_frame_add(&l->out, STREAM_TERMINATE, nothing_rec(), &none);
        l->terminate = false;
    }
}

bool link_frame_input(struct link *l) {
    struct spur_streams *s = l->s;
    if (!s->takes_input || l->in_ended)
        return false;
    uint64_t left = s->ring_end - l->in_sent, at = l->in_sent % RING_SIZE;
    uint64_t room = l->in_sent - l->in_acked < l->window ? l->window - (l->in_sent - l->in_acked) : 0;
    size_t n = (size_t)MIN(MIN(left, room), MIN((uint64_t)STREAM_DATA_MAX, RING_SIZE - at));
    if (!n && (left || !s->input_ended))
        return false;
    struct stream_data d = {s->input_task, STREAM_IN, l->in_sent, n ? s->ring + at : NULL, (uint32_t)n};
    stream_frame_add(&l->out, STREAM_DATA, stream_data_rec(), &d);
    l->in_sent += n;
    l->in_ended = !n;
    return true;
}

static void acknowledge(struct link *l, uint32_t task, uint32_t k) {
    struct link_task *t = &l->s->task[task];
    struct stream_ack ack = {task, k ? STREAM_ERR : STREAM_OUT, t->got[k]};
    stream_frame_add(&l->out, STREAM_ACK, stream_ack_rec(), &ack);
    t->acked[k] = t->got[k];
}

/* ---- what is heard ---- */

static enum link_dealt deal_data(struct link *l, const uint8_t *p, size_t n) {
    struct spur_streams *s = l->s;
    struct stream_data d;
    if (stream_data_read(p, n, &d) || d.task >= s->n_tasks || s->task[d.task].node != l->index ||
        (d.number != STREAM_OUT && d.number != STREAM_ERR))
        return LINK_BROKEN;
    struct link_task *t = &s->task[d.task];
    uint32_t k = d.number == STREAM_ERR;
    if (d.offset > t->got[k] && !s->launch) /* who attaches gets what comes from now on */
        t->got[k] = t->acked[k] = d.offset;
    if (d.offset > t->got[k]) /* something is missing */
        return LINK_BROKEN;
    uint64_t known = t->got[k] - d.offset;
    if (t->ended[k] || (d.n_bytes && known >= d.n_bytes)) /* sent again after a broken connection */
        return LINK_TAKEN;
    size_t fresh = d.n_bytes - (size_t)known;
    if (!s->on.data(s->on.arg, l->index, d.task, d.number, d.n_bytes ? d.bytes + known : NULL, d.n_bytes ? fresh : 0))
        return LINK_NOT_TAKEN;
    if (!d.n_bytes)
        t->ended[k] = true;
    else
        t->got[k] += fresh;
    if (t->ended[k] || t->got[k] - t->acked[k] >= l->window / 4)
        acknowledge(l, d.task, k);
    return LINK_TAKEN;
}

/* Bytes of the input that every node has are not needed any more. */
static void trim_ring(struct spur_streams *s) {
    uint64_t least = s->ring_end;
    for (uint32_t i = 0; i < s->n_links; i++)
        if (s->link[i].state != LINK_OVER && s->link[i].state != LINK_LEAVING)
            least = MIN(least, s->link[i].in_acked);
    s->ring_start = MAX(s->ring_start, least);
}

static enum link_dealt deal_ack(struct link *l, const struct stream_ack *a) {
    if (a->number != STREAM_IN || a->offset > l->in_sent)
        return LINK_BROKEN;
    l->in_acked = MAX(l->in_acked, a->offset);
    trim_ring(l->s);
    return LINK_TAKEN;
}

/* The node is ours: what it has of the input counts from now on. */
static enum link_dealt deal_welcome(struct link *l, const struct stream_welcome *w) {
    struct spur_streams *s = l->s;
    uint64_t have = s->launch || s->file ? 0 : l->in_sent; /* who attaches goes on behind what it sent */
    for (uint32_t i = 0; i < w->n_have; i++)
        if (w->have[i].number == STREAM_IN)
            have = MAX(have, w->have[i].offset);
    if (l->state != LINK_OPENING || (s->takes_input && (have > s->ring_end || have < s->ring_start)))
        return LINK_BROKEN;
    s->n_dialing--;
    l->state = LINK_OPEN;
    l->window = w->window ? MIN(w->window, STREAM_WINDOW) : STREAM_WINDOW;
    l->in_sent = l->in_acked = have;
    l->in_ended = false;
    if (!l->was_welcome && s->file)
        stream_frame_add(&l->out, STREAM_FILE, stream_file_rec(), s->file);
    l->was_welcome = true;
    l->window_size = s->rows != 0;
    s->on.welcome(s->on.arg, l->index, w);
    return LINK_TAKEN;
}

static enum link_dealt deal_refused(struct link *l, const struct stream_refused *r) {
    int code = -(int)r->error;
    if (code == E_BUSY || code == E_STOPPING || code == E_NOT_LEADER || code == E_UNREACHABLE || code == E_DEADLINE)
        return LINK_LATER;
    bool is_unknown = code == E_STEP_ID || code == E_NOT_FOUND;
    if (is_unknown && l->was_welcome && l->s->launch && !l->s->over_ms) /* the agent is back before its steps are */
        return LINK_LATER;
    link_fail(l, err_known(code) && code ? code : E_INTERNAL, "%s", r->text ? r->text : err_sentence(code));
    return LINK_GONE;
}

static enum link_dealt deal_done(struct link *l, const struct stream_done *d) {
    struct spur_streams *s = l->s;
    struct nothing none = {0};
    s->on.done(s->on.arg, l->index, d);
    stream_frame_add(&l->out, STREAM_BYE, nothing_rec(), &none);
    l->state = LINK_LEAVING;
    trim_ring(s);
    return LINK_TAKEN;
}

enum link_dealt link_frame_deal(struct link *l, const struct stream_header *h, const uint8_t *p) {
    struct spur_streams *s = l->s;
    if (l->state == LINK_OPENING && h->type != STREAM_WELCOME && h->type != STREAM_REFUSED && h->type != STREAM_TEXT)
        return LINK_BROKEN;
    if (h->type == STREAM_DATA)
        return deal_data(l, p, h->length);
    auto_arena a = {0};
#define READ(record, T)                                                                                                \
    struct T record;                                                                                                   \
    if (rec_decode(T##_rec(), p, h->length, &a, &record, NULL))                                                        \
        return LINK_BROKEN;
    switch (h->type) {
    case STREAM_WELCOME: {
        READ(w, stream_welcome)
        return deal_welcome(l, &w);
    }
    case STREAM_REFUSED: {
        READ(r, stream_refused)
        return deal_refused(l, &r);
    }
    case STREAM_ACK: {
        READ(ack, stream_ack)
        return deal_ack(l, &ack);
    }
    case STREAM_STARTED: {
        READ(started, stream_started)
        if (started.task < s->n_tasks)
            s->on.started(s->on.arg, l->index, &started);
        return LINK_TAKEN;
    }
    case STREAM_EXIT: {
        READ(x, stream_exit)
        if (x.task < s->n_tasks)
            s->on.exited(s->on.arg, l->index, &x);
        return LINK_TAKEN;
    }
    case STREAM_TEXT: {
        READ(t, stream_text)
        if (t.text)
            s->on.text(s->on.arg, l->index, t.text);
        return LINK_TAKEN;
    }
    case STREAM_DONE: {
        READ(d, stream_done)
        return deal_done(l, &d);
    }
    default:
        return LINK_TAKEN; /* of a newer node */
    }
#undef READ
}
