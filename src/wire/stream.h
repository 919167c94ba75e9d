/* SPDX-License-Identifier: Apache-2.0
 *
 * Task streams: what srun, sattach and sbcast say to an agent, and to the step daemon behind it. Described for others
 * in docs/format/stream.md.
 *
 * A client connects to the agent's port (the one of its gRPC service), sends STREAM_MAGIC and an OPEN frame. The agent
 * checks the ticket, starts the step where it does not run yet, and hands the connection itself to the step daemon,
 * which answers with WELCOME. A connection that breaks is opened again with `resume`: both sides say up to where they
 * have each stream, and send what is missing from a bounded buffer. Who does not read stops the tasks' pipe and no one's
 * memory grows: at most STREAM_WINDOW bytes of a stream are under way without an ACK.
 *
 * Depends on base alone: the step daemon is built from it too.
 */
#ifndef SPUR_WIRE_STREAM_H
#define SPUR_WIRE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rec.h"

#define STREAM_MAGIC "SPURSTREAM1\n" /* 12 bytes; no HTTP/2 connection begins so */
#define STREAM_MAGIC_SIZE 12
#define STREAM_VERSION 1
#define STREAM_HEADER_SIZE 8
#define STREAM_FRAME_MAX (8u << 20) /* of an OPEN; a DATA frame has at most STREAM_DATA_MAX */
#define STREAM_DATA_MAX 65536u
#define STREAM_WINDOW (1u << 20) /* bytes of one stream of one task that are sent and not acknowledged */

enum stream_number { STREAM_IN = 0, STREAM_OUT = 1, STREAM_ERR = 2 };
#define STREAM_ALL_TASKS UINT32_MAX

/* Header: u32 length of the record, u8 STREAM_VERSION, u8 type, u16 zero; then the record. Little-endian. */
enum stream_frame {
    STREAM_OPEN = 1,    /* client: stream_open */
    STREAM_WELCOME = 2, /* stream_welcome */
    STREAM_REFUSED = 3, /* stream_refused, and the connection ends */
    STREAM_DATA = 4,    /* both ways: stream_data. An empty one is the end of that stream */
    STREAM_ACK = 5,     /* both ways: stream_ack: taken up to here */
    STREAM_STARTED = 6, /* stream_started: a task was executed */
    STREAM_EXIT = 7,    /* stream_exit: a task is over; its streams may still have bytes */
    STREAM_DONE = 8,    /* stream_done: all is over on this node, and all was sent. The client answers STREAM_BYE */
    STREAM_SIGNAL = 9,  /* client: stream_signal */
    STREAM_WINDOW_SIZE = 10, /* client: stream_winsize, of a pty */
    STREAM_BYE = 11,    /* client: has everything; the step daemon may go */
    STREAM_TEXT = 12,   /* stream_text: a line for people, such as "slurmstepd: error: …" */
    STREAM_TERMINATE = 13, /* client: end the step: SIGTERM, later SIGKILL */
    STREAM_FILE = 14,   /* client, TICKET_COPY: stream_file; STREAM_DATA of task 0 follow; answered with STREAM_DONE */
};

/* What a step's tasks execute. The client makes it; the ticket bounds it. */
#define STREAM_LAUNCH_FIELDS(F)                                                                                       \
    F(STRS, argv, 1, _)                                                                                               \
    F(BYTES, env, 2, _) /* NAME=value NUL …: the client's; the node sets the step's own */                            \
    F(STR, work_dir, 3, _)                                                                                            \
    F(STR, std_in, 4, _)  /* NULL: streamed. A path with patterns, "none", or a task's number: streamed to it alone */ \
    F(STR, std_out, 5, _) /* NULL: streamed. A path with patterns, "none", or a task's number */                      \
    F(STR, std_err, 6, _) /* NULL: as std_out where that is a path, else streamed */                                  \
    F(BOOL, append, 7, _)                                                                                             \
    F(BOOL, pty, 8, _)    /* task 0 has a terminal */                                                                 \
    F(U32, rows, 9, _)                                                                                                \
    F(U32, columns, 10, _)                                                                                            \
    F(U32, umask, 11, _)  /* + 1 */                                                                                   \
    F(LIST, rlimits, 12, stream_rlimit)                                                                               \
    F(LIST, multi_prog, 13, stream_words) /* --multi-prog: for each rank of the step its command line */              \
    F(BOOL, kill_on_bad_exit, 14, _)                                                                                  \
    /* 15 was names of nodes, which the ticket has */                                                                 \
    F(STR, launch_address, 16, _) /* SLURM_LAUNCH_NODE_IPADDR */                                                      \
    F(STR, submit_dir, 17, _)                                                                                         \
    F(STR, submit_host, 18, _)                                                                                        \
    F(STR, cpu_bind, 120, _) /* --cpu-bind (core/model/bind.h); NULL: not given */                                    \
    F(U32, launch_port, 130, _) /* the client's end of this connection: SLURM_SRUN_COMM_PORT */
#define STREAM_RLIMIT_FIELDS(F) F(STR, name, 1, _) F(U64, soft, 2, _)
REC_DECLARE(stream_rlimit, STREAM_RLIMIT_FIELDS)
#define STREAM_WORDS_FIELDS(F) F(STRS, words, 1, _)
REC_DECLARE(stream_words, STREAM_WORDS_FIELDS)
REC_DECLARE(stream_launch, STREAM_LAUNCH_FIELDS)

/* How far one side has a stream: bytes from its beginning. */
#define STREAM_MARK_FIELDS(F) F(U32, task, 1, _) /* rank in the step */ F(U32, number, 2, _) F(U64, offset, 3, _)
REC_DECLARE(stream_mark, STREAM_MARK_FIELDS)

#define STREAM_OPEN_FIELDS(F)                                                                                         \
    F(BYTES, ticket, 1, _)    /* a step_ticket, as the controller gave it */                                          \
    F(BYTES, signature, 2, _) /* the one for this node */                                                                                        \
    F(SUB, launch, 3, stream_launch) /* of TICKET_LAUNCH; a repeat with the same ticket finds the step that runs */    \
    F(LIST, have, 4, stream_mark)    /* resume: output that was received */                                           \
    F(BOOL, resume, 5, _)                                                                                             \
    F(BOOL, no_input, 6, _)          /* sattach: output only. (7 was never used) */
REC_DECLARE(stream_open, STREAM_OPEN_FIELDS)

#define STREAM_WELCOME_FIELDS(F)                                                                                      \
    F(U32S, ranks, 1, _)          /* the tasks of this node */                                                        \
    F(U32S, pids, 2, _)           /* of those that were executed, in that order; 0: not yet */                        \
    F(LIST, have, 3, stream_mark) /* input that was received */                                                       \
    F(U32, window, 4, _)          /* bytes of a stream that may be under way */
REC_DECLARE(stream_welcome, STREAM_WELCOME_FIELDS)

#define STREAM_REFUSED_FIELDS(F) F(U32, error, 1, _) /* row of err.def */ F(STR, text, 2, _)
REC_DECLARE(stream_refused, STREAM_REFUSED_FIELDS)

#define STREAM_DATA_FIELDS(F)                                                                                         \
    F(U32, task, 1, _)   /* rank in the step; STREAM_ALL_TASKS for input that all get */                              \
    F(U32, number, 2, _) /* enum stream_number */                                                                     \
    F(U64, offset, 3, _) /* of the first byte */                                                                      \
    F(BYTES, bytes, 4, _)
REC_DECLARE(stream_data, STREAM_DATA_FIELDS)
#define STREAM_ACK_FIELDS(F) F(U32, task, 1, _) F(U32, number, 2, _) F(U64, offset, 3, _)
REC_DECLARE(stream_ack, STREAM_ACK_FIELDS)

#define STREAM_STARTED_FIELDS(F) F(U32, task, 1, _) F(U32, pid, 2, _)
REC_DECLARE(stream_started, STREAM_STARTED_FIELDS)
#define STREAM_EXIT_FIELDS(F)                                                                                         \
    F(U32, task, 1, _)                                                                                                \
    F(U32, wait_status, 2, _) /* as waitpid gives it */                                                               \
    F(STR, text, 3, _)        /* why it could not be executed */                                                      \
    F(BOOL, out_of_memory, 4, _)
REC_DECLARE(stream_exit, STREAM_EXIT_FIELDS)
#define STREAM_DONE_FIELDS(F) F(U32, wait_status, 1, _) F(STR, text, 2, _)
REC_DECLARE(stream_done, STREAM_DONE_FIELDS)
#define STREAM_SIGNAL_FIELDS(F) F(U32, signal, 1, _)
REC_DECLARE(stream_signal, STREAM_SIGNAL_FIELDS)
#define STREAM_WINSIZE_FIELDS(F) F(U32, rows, 1, _) F(U32, columns, 2, _)
REC_DECLARE(stream_winsize, STREAM_WINSIZE_FIELDS)
#define STREAM_TEXT_FIELDS(F) F(STR, text, 1, _)
REC_DECLARE(stream_text, STREAM_TEXT_FIELDS)
enum stream_packing { STREAM_PACKING_NONE, STREAM_PACKING_LZ4 /* one frame of LZ4's frame format */ };
#define STREAM_FILE_FIELDS(F)                                                                                         \
    F(STR, path, 1, _)                                                                                                \
    F(U32, mode, 2, _)                                                                                                \
    F(BOOL, force, 3, _)   /* replace what is there */                                                                \
    F(I64, mtime_unix, 4, _) /* 0: not kept */                                                                        \
    F(U64, size, 5, _)     /* of the file itself, whatever comes */                                                    \
    F(U32, packing, 6, _)  /* what its bytes come as: enum stream_packing; an agent that can't unpack them refuses the file by its size */
REC_DECLARE(stream_file, STREAM_FILE_FIELDS)

/* Adds a frame. */
void stream_frame_add(struct buf *out, enum stream_frame type, const struct rec_desc *d, const void *rec);
/* A DATA frame up to its bytes, which the writer sends behind it from where they are. Returns the length. */
#define STREAM_DATA_HEAD_MAX 48
size_t stream_data_head(uint32_t task, uint32_t number, uint64_t offset, uint32_t n_bytes,
                        uint8_t out[STREAM_DATA_HEAD_MAX]);
/* The record of a DATA frame; its bytes are borrowed from `p`. 0 or E_PROTOCOL. */
int stream_data_read(const void *p, size_t n, struct stream_data *out);
struct stream_header {
    uint32_t length;
    uint8_t version;
    uint8_t type;
};
/* 1: a header is there; 0: too few bytes yet; negative: no frame of ours (E_TOO_BIG, E_PROTOCOL, E_VERSION). */
int stream_header_read(const void *p, size_t n, struct stream_header *out);

#endif
