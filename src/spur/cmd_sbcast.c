/* SPDX-License-Identifier: Apache-2.0
 *
 * sbcast: a file from here to every node of a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"
#include "spur/stream.h"

#define PACK_BYTES 65536

struct sbcast {
    struct cli *c;
    bool force, preserve, compress;
    uint32_t verbose, timeout_secs;
    const char *job;
    /* while it is sent: */
    struct spur_streams *streams;
    const struct step_ticket_signed *tickets;
    int fd, rc;
    uint64_t left;       /* of the file, not read yet */
    LZ4F_cctx *packer;   /* NULL: the bytes go as they are */
    struct buf packed;   /* from packed_at on not handed over yet */
    size_t packed_at;
    bool packed_all, input_ended;
};

/* Slurm goes on without compression where it doesn't know the word. */
static int set_compress(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sbcast *s = r->ctx;
    s->compress = !value || !*value || strcasecmp(value, "lz4") == 0;
    if (!s->compress && strcasecmp(value, "none") != 0)
        cli_error(s->c, "Compression type '%s' unknown, disabling compression support.", value);
    return 0;
}

static int set_timeout(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t secs;
    if (str_to_u64(value, INT32_MAX, &secs))
        return opt_bad_value(r, o);
    ((struct sbcast *)r->ctx)->timeout_secs = (uint32_t)secs;
    return 0;
}

#define B(field) offsetof(struct sbcast, field)
static const struct opt_row rows[] = {
    {"compress", 'C', "lib", OPT_CALL, OPT_MAYBE, 0, set_compress, "COMPRESS", "compress the file on its way: lz4 (default), none"},
    {"exclude", 0, "paths", OPT_NOT_YET, 0, 0, NULL, "EXCLUDE"},
    {"fanout", 'F', "n", OPT_NOT_YET, 0, 0, NULL, "FANOUT"},
    {"force", 'f', NULL, OPT_BOOL, 0, B(force), NULL, "FORCE", "replace the file where it is there"},
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help message"},
    {"jobid", 'j', "id", OPT_TEXT, 0, B(job), NULL, NULL, "the job; else the one around this command"},
    {"preserve", 'p', NULL, OPT_BOOL, 0, B(preserve), NULL, "PRESERVE", "keep times and mode of the file"},
    {"send-libs", 's', "yes|no", OPT_NOT_YET, OPT_MAYBE, 0, NULL, "SEND_LIBS"},
    {"size", 0, "bytes", OPT_NOT_YET, 0, 0, NULL, "SIZE"},
    {"timeout", 't', "secs", OPT_CALL, 0, 0, set_timeout, "TIMEOUT", "give a node up that can't be reached for so long"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "display brief usage message"},
    {"verbose", 'v', NULL, OPT_COUNT, 0, B(verbose), NULL, NULL, "say what is done"},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "output version information and exit"},
};

const struct opt_table *cmd_sbcast_options(void) {
    static const struct opt_table t = {.usage = "[OPTIONS...] SOURCE DEST", .brief = "[-Cfjptv] SOURCE DEST",
                                       .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SBCAST_"}};
    return &t;
}

/* ---- events ---- */

static const char *node_name(const struct sbcast *s, uint32_t node) {
    return s->tickets[node].place && s->tickets[node].place->name ? s->tickets[node].place->name : "?";
}

static void on_welcome(void *arg, uint32_t node, const struct stream_welcome *w) {
    struct sbcast *s = arg;
    if (s->verbose)
        cli_say(s->c, "sending to node %s", node_name(s, node));
}

static void on_started(void *arg, uint32_t node, const struct stream_started *x) {
}

static bool on_data(void *arg, uint32_t node, uint32_t task, uint32_t number, const uint8_t *p, size_t n) {
    return true;
}

static void on_exited(void *arg, uint32_t node, const struct stream_exit *x) {
}

static void on_text(void *arg, uint32_t node, const char *text) {
    struct sbcast *s = arg;
    cli_say(s->c, "%s: %s", node_name(s, node), text);
}

/* The errno that a node's text ends in; 0: none. */
static int errno_of(const char *text) {
    for (int e = 1; e < 134; e++)
        if (str_ends(text, strerror(e)))
            return e;
    return 0;
}

/* The exit code is the node's errno, as Slurm's. */
static void fail(struct sbcast *s, uint32_t node, const char *text) {
    int error = errno_of(text);
    const char *why = error ? strerror(error) : text;
    cli_error(s->c, "REQUEST_FILE_BCAST(%s): %s", node_name(s, node), why ? why : "");
    s->rc = error ? error : 1;
}

static void on_done(void *arg, uint32_t node, const struct stream_done *d) {
    if (d->wait_status || d->text)
        fail(arg, node, d->text ? d->text : err_sentence(E_INTERNAL));
}

static void on_failed(void *arg, uint32_t node, const struct err *why) {
    fail(arg, node, why->text);
}

/* ---- sending ---- */

/* Up to `room` bytes of the file, 0 at its end; negative: said why not. One that became shorter meanwhile can't be sent as it
 * was announced. */
static ssize_t read_plain(struct sbcast *s, uint8_t *to, size_t room) {
    size_t wanted = (size_t)MIN((uint64_t)room, s->left);
    ssize_t n = fd_read(s->fd, to, wanted);
    if (n < 0 || (!n && wanted)) {
        cli_error(s->c, "Can't read the file: %s", n ? strerror(errno) : "it became shorter");
        return -1;
    }
    s->left -= (uint64_t)n;
    return n;
}

/* One more piece of the frame, or its end. */
static bool pack_more(struct sbcast *s) {
    uint8_t plain[PACK_BYTES];
    ssize_t n = read_plain(s, plain, sizeof(plain));
    if (n < 0)
        return false;
    s->packed.n = s->packed_at = 0;
    size_t room = LZ4F_compressBound(sizeof(plain), NULL);
    uint8_t *to = buf_reserve(&s->packed, room);
    size_t got = n ? LZ4F_compressUpdate(s->packer, to, room, plain, (size_t)n, NULL) : LZ4F_compressEnd(s->packer, to, room, NULL);
    must(!LZ4F_isError(got));
    s->packed.n = got;
    s->packed_all = n == 0;
    return true;
}

static ssize_t read_packed(struct sbcast *s, uint8_t *to, size_t room) {
    while (s->packed_at == s->packed.n && !s->packed_all)
        if (!pack_more(s))
            return -1;
    size_t n = MIN(room, s->packed.n - s->packed_at);
    memcpy(to, s->packed.p + s->packed_at, n);
    s->packed_at += n;
    return (ssize_t)n;
}

static bool read_file(struct sbcast *s) {
    size_t room;
    uint8_t *to;
    while (!s->input_ended && (to = spur_streams_input_room(s->streams, &room)) && room) {
        ssize_t n = s->packer ? read_packed(s, to, room) : read_plain(s, to, room);
        if (n < 0)
            return false;
        spur_streams_input_add(s->streams, (size_t)n);
        s->input_ended = n == 0;
        if (s->input_ended)
            spur_streams_input_end(s->streams);
    }
    return true;
}

static void begin_packing(struct sbcast *s) {
    size_t room = LZ4F_HEADER_SIZE_MAX;
    must(!LZ4F_isError(LZ4F_createCompressionContext(&s->packer, LZ4F_VERSION)));
    size_t got = LZ4F_compressBegin(s->packer, buf_reserve(&s->packed, room), room, NULL);
    must(!LZ4F_isError(got));
    s->packed.n = got;
}

static int send_file(struct sbcast *s, const struct step_reply *reply, const struct stream_file *file) {
    struct spur_streams_conf conf = {
        .ticket = reply->ticket, .n_ticket = reply->n_ticket, .tickets = reply->tickets, .n_tickets = reply->n_tickets, .file = file, .takes_input = true, .input_task = 0,
        .give_up_ms = s->timeout_secs * 1000ull,
        .on = {s, on_welcome, on_started, on_data, on_exited, on_text, on_done, on_failed}};
    s->streams = spur_streams_new(&conf);
    s->tickets = reply->tickets;
    s->left = file->size;
    if (file->packing == STREAM_PACKING_LZ4)
        begin_packing(s);
    struct pollfd *fds = xcalloc(MAX(reply->n_tickets, 1u), sizeof(*fds));
    while (spur_streams_left(s->streams)) {
        if (!read_file(s)) {
            s->rc = 1;
            break;
        }
        int timeout = -1;
        size_t n = spur_streams_poll(s->streams, fds, &timeout);
        if (spur_streams_left(s->streams) && poll(fds, n, timeout) >= 0)
            spur_streams_turn(s->streams, fds, n);
    }
    free(fds);
    spur_streams_free(s->streams);
    LZ4F_freeCompressionContext(s->packer);
    buf_fini(&s->packed);
    return s->rc;
}

static const char *whole_path(struct sbcast *s, const char *path) {
    if (*path == '/')
        return path;
    autofree char *cwd = getcwd(NULL, 0);
    return arena_printf(&s->c->arena, "%s/%s", cwd ? cwd : "", path);
}

static int bcast(struct sbcast *s, uint32_t job_id, uint32_t step, const char *source, const char *dest) {
    struct stat st;
    struct err e = {0};
    s->fd = open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0 || fstat(s->fd, &st)) {
        cli_error(s->c, "Can't open `%s`: %s", source, strerror(errno));
        return 255;
    }
    if (!S_ISREG(st.st_mode)) {
        cli_error(s->c, "Can't send `%s`: not a regular file", source);
        return 255;
    }
    const char *slash = strrchr(source, '/');
    bool is_folder = *dest && dest[strlen(dest) - 1] == '/';
    if (is_folder)
        dest = arena_printf(&s->c->arena, "%s%s", dest, slash ? slash + 1 : source);
    struct stream_file file = {.path = whole_path(s, dest), .mode = st.st_mode & 07777, .force = s->force,
                               .mtime_unix = s->preserve ? st.st_mtime : 0, .size = (uint64_t)st.st_size,
                               .packing = s->compress ? STREAM_PACKING_LZ4 : STREAM_PACKING_NONE};
    struct attach_request request = {.job_id = job_id, .step_id = step};
    struct step_reply reply = {0};
    int rc = srun_call(s->c, WIRE_Controller_Attach, &request, &reply, &e);
    if (rc || !reply.n_tickets) {
        cli_error(s->c, "Job id %u: %s", job_id, rc ? e.text : err_sentence(E_PROTOCOL));
        return 1;
    }
    return send_file(s, &reply, &file);
}

int cmd_sbcast(struct cli *c) {
    struct sbcast s = {.c = c, .fd = -1};
    struct opt_run r;
    struct job_name name;
    int rc = 1;
    if (!cli_options(c, cmd_sbcast_options(), &s, &r, true, &rc)) {
        opt_fini(&r);
        return rc;
    }
    const char *job = s.job ? s.job : getenv("SLURM_JOB_ID") ? getenv("SLURM_JOB_ID") : getenv("SPUR_JOB_ID");
    if (r.words.n != 2) {
        fprintf(stderr, "Need two file names, have %zu names\nTry \"%s --help\" for more information\n", r.words.n, c->prog);
    } else if (!job) {
        cli_error(c, "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.");
    } else if (job_name_parse(cli_sluids(c, job), JOB_NAME_STEP, &c->arena, &name, NULL) || name.target.n_tasks) {
        cli_error(c, "Invalid job id: %s", job);
    } else {
        rc = bcast(&s, name.target.job_id, name.has_step ? name.step_id + 1 : 0, r.words.p[0], r.words.p[1]);
    }
    if (s.fd >= 0)
        close(s.fd);
    opt_fini(&r);
    return rc;
}
