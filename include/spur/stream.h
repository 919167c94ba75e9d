/* SPDX-License-Identifier: Apache-2.0
 *
 * libspur: the client's side of task streams (wire/stream.h): what srun, sattach and sbcast say to the nodes of a step.
 *
 * One object for a whole step. Each node is a connection of its own; one that breaks is opened again, with what was
 * received so far, until the node says that all is over or the controller says so (spur_streams_step_over). Memory is
 * bounded whatever the nodes send: data that the caller does not take is not read.
 *
 * No thread and no loop of its own: the caller polls. One turn is
 *     n = spur_streams_poll(s, fds, &timeout_ms); poll(fds, n + own, timeout); spur_streams_turn(s, fds, n);
 * and events come out of spur_streams_turn and spur_streams_retry only. They may call everything here but those two and
 * spur_streams_free.
 */
#ifndef SPUR_STREAM_H
#define SPUR_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "wire/messages.h"
#include "wire/stream.h"

struct spur_streams;

/* `node` is the index of the ticket. Texts and records are borrowed for the call. */
struct spur_stream_events {
    void *arg;
    void (*welcome)(void *arg, uint32_t node, const struct stream_welcome *w);
    void (*started)(void *arg, uint32_t node, const struct stream_started *s);
    /* Bytes of a task's output in their order, each once; n is 0 at its end. false: not taken, come again after
     * spur_streams_retry; until then no node is read. */
    bool (*data)(void *arg, uint32_t node, uint32_t task, uint32_t number, const uint8_t *p, size_t n);
    void (*exited)(void *arg, uint32_t node, const struct stream_exit *x);
    void (*text)(void *arg, uint32_t node, const char *text);
    void (*done)(void *arg, uint32_t node, const struct stream_done *d); /* the node's last word */
    /* Nothing more will come of this node. E_UNREACHABLE: it can't be reached, or not any more. */
    void (*failed)(void *arg, uint32_t node, const struct err *why);
};

struct spur_streams_conf {
    const uint8_t *ticket; /* the text of them all; copied, as the following */
    uint32_t n_ticket;
    const struct step_ticket_signed *tickets;
    uint32_t n_tickets;
    const struct step *step;             /* which rank lives where; its nodes in the order of the tickets. Copied */
    const struct stream_launch *launch;  /* NULL: no launch. Borrowed until spur_streams_free */
    const struct stream_file *file;      /* of sbcast; else NULL. Borrowed as well */
    bool no_input;
    bool takes_input;                    /* spur_streams_input_… will be used */
    uint32_t input_task;                 /* who gets it; STREAM_ALL_TASKS */
    uint64_t give_up_ms;                 /* a node that never answered is given up after; 0: 60,000 */
    struct spur_stream_events on;
};

struct spur_streams *spur_streams_new(const struct spur_streams_conf *conf);
void spur_streams_free(struct spur_streams *s); /* takes NULL; connections are closed as they are */

/* Fills fds (room for one a ticket). Lowers *timeout_ms (-1: none) to when it wants to be called. */
size_t spur_streams_poll(struct spur_streams *s, struct pollfd *fds, int *timeout_ms);
void spur_streams_turn(struct spur_streams *s, const struct pollfd *fds, size_t n);
void spur_streams_retry(struct spur_streams *s); /* what was not taken may be offered again */
bool spur_streams_is_stalled(const struct spur_streams *s);
uint32_t spur_streams_left(const struct spur_streams *s); /* nodes that are not over */

/* Input: where to put it and how much fits (0: nothing now), then how much was put there; spur_streams_input_end once. */
uint8_t *spur_streams_input_room(struct spur_streams *s, size_t *out_n);
void spur_streams_input_add(struct spur_streams *s, size_t n);
void spur_streams_input_end(struct spur_streams *s);

/* To every node that is not over; to one that can't be reached now when it can. */
void spur_streams_signal(struct spur_streams *s, int signo);
void spur_streams_terminate(struct spur_streams *s);
void spur_streams_window_size(struct spur_streams *s, uint32_t rows, uint32_t columns);

/* The controller says that the step is over, or that a node is lost: who can't be reached is not tried for long. */
void spur_streams_step_over(struct spur_streams *s);

/* Where a node is now: an agent may have another address or port when it comes back. */
void spur_streams_place(struct spur_streams *s, const struct node_place *place);

/* The address under which this machine reaches a node: "10.0.0.1"; NULL: not known. In the arena. */
const char *spur_local_address(const struct node_place *place, struct arena *a);

#endif
