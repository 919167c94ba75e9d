/* SPDX-License-Identifier: Apache-2.0
 *
 * One node of a step: its connection, what was received of each stream, what waits to be sent. Inside libspur; see
 * spur/stream.h.
 *
 *     WAITING --time--> CONNECTING (--> SHAKING, TLS) --> OPENING --WELCOME--> OPEN --DONE--> LEAVING (BYE is sent) --> OVER
 *        ^------------------+------------+-------------------'
 *                 broken: with a growing pause
 */
#ifndef SPUR_LIBSPUR_LINK_H
#define SPUR_LIBSPUR_LINK_H

#include "base/arena.h"
#include "base/buf.h"
#include "spur/stream.h"

enum link_state { LINK_WAITING, LINK_CONNECTING, LINK_SHAKING, LINK_OPENING, LINK_OPEN, LINK_LEAVING, LINK_OVER };

/* How far the output of a task is here, and what was acknowledged. */
struct link_task {
    uint64_t got[2], acked[2]; /* STREAM_OUT, STREAM_ERR */
    uint32_t node;             /* its link */
    bool ended[2];
};

struct link {
    struct spur_streams *s;
    uint32_t index;
    enum link_state state;
    int fd;
    struct link_shake *shake; /* SHAKING: fd is its */
    bool is_plain; /* the next connection is: the node knows no TLS */
    int64_t at_ms;    /* WAITING: when to try again; CONNECTING, OPENING: since when */
    int64_t first_ms; /* of the first try */
    uint64_t pause_ms;
    bool was_welcome;
    struct buf out; /* frames that wait to be sent, from out_at */
    size_t out_at;
    uint8_t *in; /* what was read and not dealt with: [in_at, in_n) of in_cap; NULL: nothing */
    size_t in_at, in_n, in_cap;
    uint32_t window;
    uint64_t in_sent, in_acked; /* of the input */
    bool in_ended;              /* its end was sent */
    uint64_t signals;           /* bits: to be sent when it is open */
    bool terminate, window_size;
};

struct spur_streams {
    struct spur_stream_events on;
    struct arena arena; /* copies of what was given */
    const uint8_t *ticket_text; /* of all */
    uint32_t n_ticket_text;
    struct step_ticket_signed *ticket;
    const struct step *step;
    const struct stream_launch *launch;
    const struct stream_file *file;
    bool no_input, takes_input;
    uint32_t input_task;
    uint64_t give_up_ms;
    struct link *link;
    uint32_t n_links, n_left, n_dialing;
    struct link_task *task; /* by rank */
    uint32_t n_tasks;
    uint8_t *ring; /* input: bytes [ring_start, ring_end) of the stream, each at its number modulo the size */
    uint64_t ring_start, ring_end;
    bool input_ended;
    uint32_t rows, columns;
    int64_t over_ms; /* the step is over since; 0: it is not */
    bool is_stalled;
    struct link_tls *tls; /* NULL: off */
    struct err tls_why;   /* code 0: it is as spur.conf says */
    uint8_t *spare; /* a read buffer that no link holds */
};

int64_t link_now_ms(void);
void link_init(struct spur_streams *s, uint32_t index);
void link_fini(struct link *l);
short link_events(const struct link *l);             /* for poll */
int64_t link_deadline_ms(const struct link *l);      /* when link_time wants to be called; INT64_MAX: never */
void link_time(struct link *l, int64_t now_ms);
void link_ready(struct link *l, short revents);
void link_deal(struct link *l); /* with what was read and not taken */
void link_moved(struct link *l); /* its node has another address now */
void link_push(struct link *l); /* signals, window size, input, acknowledgements: what may go out now */
void link_fail(struct link *l, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
