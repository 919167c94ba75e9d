/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/stream.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "libspur/link.h"
#include "libspur/link_dial.h"
#include "libspur/link_tls.h"

#define RING_SIZE STREAM_WINDOW
#define GIVE_UP_MS 60000

static struct step_ticket_signed *copy_tickets(struct arena *a, const struct step_ticket_signed *t, uint32_t n) {
    struct step_ticket_signed *out = arena_calloc(a, n, sizeof(*out));
    for (uint32_t i = 0; i < n; i++) {
        out[i] = t[i];
        out[i].signature = arena_memdup(a, t[i].signature, t[i].n_signature);
        struct node_place *place = arena_calloc(a, 1, sizeof(*place));
        if (t[i].place)
            *place = (struct node_place){arena_strdup(a, t[i].place->name), arena_strdup(a, t[i].place->address),
                                         t[i].place->port};
        out[i].place = place;
    }
    return out;
}

void spur_streams_place(struct spur_streams *s, const struct node_place *place) {
    for (uint32_t i = 0; i < s->n_links && place->name && place->address; i++) {
        const struct node_place *at = s->ticket[i].place;
        if (!str_eq(at->name, place->name) || (str_eq(at->address, place->address) && at->port == place->port))
            continue;
        struct node_place *now = arena_calloc(&s->arena, 1, sizeof(*now));
        *now = (struct node_place){at->name, arena_strdup(&s->arena, place->address), place->port};
        s->ticket[i].place = now;
        link_moved(&s->link[i]);
    }
}

/* Which rank is whose. A rank that no node has belongs to none. */
static void place_tasks(struct spur_streams *s, const struct step *step) {
    uint32_t n = 1; /* a copy has a stream of task 0 */
    for (uint32_t i = 0; step && i < step->n_nodes; i++)
        for (uint32_t k = 0; k < step->nodes[i].n_ranks; k++)
            n = MAX(n, step->nodes[i].ranks[k] + 1);
    s->n_tasks = n;
    s->task = xcalloc(n, sizeof(*s->task));
    for (uint32_t t = 0; t < n; t++)
        s->task[t].node = UINT32_MAX;
    for (uint32_t i = 0; step && i < step->n_nodes; i++)
        for (uint32_t k = 0; k < step->nodes[i].n_ranks; k++)
            s->task[step->nodes[i].ranks[k]].node = i;
}

struct spur_streams *spur_streams_new(const struct spur_streams_conf *conf) {
    struct spur_streams *s = xnew(struct spur_streams);
    s->on = conf->on;
    s->ticket_text = arena_memdup(&s->arena, conf->ticket, conf->n_ticket);
    s->n_ticket_text = conf->n_ticket;
    s->ticket = copy_tickets(&s->arena, conf->tickets, conf->n_tickets);
    s->launch = conf->launch;
    s->file = conf->file;
    s->no_input = conf->no_input;
    s->takes_input = conf->takes_input;
    s->input_task = conf->input_task;
    s->give_up_ms = conf->give_up_ms ? conf->give_up_ms : GIVE_UP_MS;
    s->n_links = s->n_left = conf->n_tickets;
    s->link = xcalloc(MAX(s->n_links, 1u), sizeof(*s->link));
    if (s->takes_input)
        s->ring = xmalloc(RING_SIZE);
    link_tls_new(&s->tls, &s->tls_why);
    place_tasks(s, conf->step);
    for (uint32_t i = 0; i < s->n_links; i++)
        link_init(s, i);
    return s;
}

void spur_streams_free(struct spur_streams *s) {
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_links; i++)
        link_fini(&s->link[i]);
    link_tls_free(s->tls);
    free(s->link);
    free(s->task);
    free(s->ring);
    free(s->spare);
    arena_fini(&s->arena);
    free(s);
}

size_t spur_streams_poll(struct spur_streams *s, struct pollfd *fds, int *timeout_ms) {
    int64_t now = link_now_ms(), next = INT64_MAX;
    for (uint32_t i = 0; i < s->n_links; i++) {
        struct link *l = &s->link[i];
        link_time(l, now);
        link_push(l);
        short events = link_events(l);
        fds[i] = (struct pollfd){.fd = events ? l->fd : -1, .events = events}; /* -1: not even a hang-up is told */
        bool waits_its_turn = l->state == LINK_WAITING && s->n_dialing >= 64;
        if (!waits_its_turn)
            next = MIN(next, link_deadline_ms(l));
    }
    if (next != INT64_MAX) {
        int64_t left = MAX(next - now, (int64_t)0);
        if (*timeout_ms < 0 || left < *timeout_ms)
            *timeout_ms = (int)MIN(left, (int64_t)INT32_MAX);
    }
    return s->n_links;
}

void spur_streams_turn(struct spur_streams *s, const struct pollfd *fds, size_t n) {
    for (uint32_t i = 0; i < s->n_links && i < n; i++)
        if (fds[i].fd >= 0 && fds[i].revents && s->link[i].fd == fds[i].fd)
            link_ready(&s->link[i], fds[i].revents);
    for (uint32_t i = 0; i < s->n_links; i++)
        link_push(&s->link[i]);
}

void spur_streams_retry(struct spur_streams *s) {
    if (!s->is_stalled)
        return;
    s->is_stalled = false;
    for (uint32_t i = 0; i < s->n_links && !s->is_stalled; i++)
        link_deal(&s->link[i]);
    for (uint32_t i = 0; i < s->n_links; i++)
        link_push(&s->link[i]);
}

bool spur_streams_is_stalled(const struct spur_streams *s) {
    return s->is_stalled;
}

uint32_t spur_streams_left(const struct spur_streams *s) {
    return s->n_left;
}

uint8_t *spur_streams_input_room(struct spur_streams *s, size_t *out_n) {
    uint64_t at = s->ring_end % RING_SIZE, free_ = RING_SIZE - (s->ring_end - s->ring_start);
    *out_n = (size_t)MIN(free_, RING_SIZE - at);
    return s->ring + at;
}

void spur_streams_input_add(struct spur_streams *s, size_t n) {
    s->ring_end += n;
}

void spur_streams_input_end(struct spur_streams *s) {
    s->input_ended = true;
}

void spur_streams_signal(struct spur_streams *s, int signo) {
    for (uint32_t i = 0; i < s->n_links && signo > 0 && signo < 64; i++)
        s->link[i].signals |= 1ull << signo;
}

void spur_streams_terminate(struct spur_streams *s) {
    for (uint32_t i = 0; i < s->n_links; i++)
        s->link[i].terminate = true;
}

void spur_streams_window_size(struct spur_streams *s, uint32_t rows, uint32_t columns) {
    s->rows = rows;
    s->columns = columns;
    for (uint32_t i = 0; i < s->n_links; i++)
        s->link[i].window_size = true;
}

void spur_streams_step_over(struct spur_streams *s) {
    if (s->over_ms)
        return;
    s->over_ms = link_now_ms();
    for (uint32_t i = 0; i < s->n_links; i++)
        if (s->link[i].fd >= 0)
            link_hurry(s->link[i].fd);
}
