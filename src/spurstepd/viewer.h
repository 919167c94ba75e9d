/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients of a step's task streams (wire/stream.h), whose connections spurd hands over: one that owns the step
 * (srun; its reading is waited for), and others that look on (sattach). The tasks get the input of all of them, as it
 * comes, and the end of any of it.
 *
 * A connection of the owner that breaks costs nothing: what it has not acknowledged is kept, up to the window, and the
 * next connection goes on from there. Meanwhile the tasks run until their pipes are full. Who looks on is sent what
 * comes; what it misses is lost to it, and nobody waits.
 */
#ifndef SPUR_SPURSTEPD_VIEWER_H
#define SPUR_SPURSTEPD_VIEWER_H

#include <poll.h>
#include <stdbool.h>

#include "base/buf.h"
#include "spurstepd/run.h"
#include "wire/stream.h"

#define VIEWERS_MAX 8

struct viewer {
    int fd; /* -1: free */
    bool is_owner, is_blocked, done_sent;
    struct buf in, out;
    size_t out_at;
    /* the DATA frame under way: its head, and what of its bytes is not sent */
    uint8_t head[STREAM_DATA_HEAD_MAX];
    size_t n_head, head_at;
    struct outflow *flow; /* NULL: none */
    uint64_t at;
    uint32_t left;
    struct cursor {
        uint64_t sent;
        bool eof_sent;
    } *cursor; /* of outflow 2 * task + number - 1 */
    uint32_t turn;
    /* Input of one that looks on: its end in that client's counting, what it was acknowledged, and the end in ours. */
    bool has_sent;
    uint64_t in_end, in_acked, in_mark;
};

struct viewers {
    struct run *run;
    struct viewer v[VIEWERS_MAX];
    struct buf texts; /* frames that no owner has seen */
    struct ring in;   /* the clients' input */
    bool in_ended, in_named;
    uint32_t in_name;  /* the task that the owner's frames name */
    uint64_t in_acked; /* of the owner's, in its own counting */
    struct in_foreign { /* what of the ring is not the owner's, and how much was before */
        uint64_t at, n;
    } * foreign;
    size_t n_foreign;
    uint64_t foreign_before;
    bool is_reported; /* the controller knows of the end */
    bool is_left;     /* the owner has all, and said so */
    int64_t ended_ms, alone_ms; /* boot_ms; 0: not yet, not */
};

void viewers_init(struct viewers *vs, struct run *r);
void viewers_fini(struct viewers *vs);
/* Takes the connection, whatever comes of it. */
void viewers_add(struct viewers *vs, int fd, const struct step_stream *s);

/* Input: of the owner, the offset in its own counting where ours is `at`. */
uint64_t viewers_owners_in(const struct viewers *vs, uint64_t at);
/* That so many bytes at the ring's end are not the owner's. */
void viewers_foreign_in(struct viewers *vs, size_t n);

/* For the loop. The pollfds of one turn: viewers_count of them. */
size_t viewers_count(const struct viewers *vs);
void viewers_poll(const struct viewers *vs, struct pollfd *out);
void viewers_handle(struct viewers *vs, const struct pollfd *polled);
int64_t viewers_next_ms(const struct viewers *vs); /* boot_ms; INT64_MAX */
/* The run has ended and nobody waits for anything of it. */
bool viewers_are_done(const struct viewers *vs);

#endif
