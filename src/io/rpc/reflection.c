/* SPDX-License-Identifier: Apache-2.0
 *
 * grpc.reflection.v1 and v1alpha (the same messages): ServerReflectionInfo, a stream of questions with one answer each.
 *
 *   request   1 host, one of: 3 file_by_filename, 4 file_containing_symbol, 5 file_containing_extension,
 *             6 all_extension_numbers_of_type, 7 list_services
 *   response  1 valid_host, 2 original_request, one of: 4 file_descriptor_response {1 file…},
 *             6 list_services_response {1 service {1 name}…}, 7 error_response {1 code, 2 text}
 */
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/rpc/descriptor.h"
#include "io/rpc/server.h"

enum { Q_FILE = 3, Q_SYMBOL = 4, Q_EXTENSION = 5, Q_EXTENSION_NUMBERS = 6, Q_SERVICES = 7 };
enum { A_HOST = 1, A_REQUEST = 2, A_FILES = 4, A_SERVICES = 6, A_ERROR = 7 };

static void put(struct buf *b, uint32_t number, const void *p, size_t n) {
    buf_varint(b, number << 3 | 2);
    buf_bytes(b, p, n);
}

static void put_error(struct buf *b, int code, const char *text) {
    auto_buf error = {0};
    buf_varint(&error, 1 << 3);
    buf_varint(&error, (uint64_t)err_grpc(code));
    put(&error, 2, text, strlen(text));
    put(b, A_ERROR, error.p, error.n);
}

/* The file and all that it needs, each once. */
static void put_files(struct buf *b, struct rd set, struct rd first) {
    VEC(struct rd) files = {0};
    auto_buf out = {0};
    vec_push(&files, first);
    for (size_t i = 0; i < files.n; i++) {
        struct rd name;
        put(&out, 1, files.p[i].p, rd_left(&files.p[i]));
        for (size_t k = 0; name = descriptor_dependency(files.p[i], k), name.p; k++) {
            struct rd file = descriptor_file(set, name);
            bool is_new = file.p != NULL;
            for (size_t m = 0; m < files.n && is_new; m++)
                is_new = files.p[m].p != file.p;
            if (is_new)
                vec_push(&files, file);
        }
    }
    put(b, A_FILES, out.p, out.n);
    vec_fini(&files);
}

/* Every service of the table once. Methods of one service may stand anywhere in it. */
static void put_services(struct buf *b, const struct rpc_server *s) {
    auto_buf out = {0};
    for (size_t i = 0; i < s->n_table; i++) {
        const char *path = s->table[i].m->path + 1;
        size_t n = strcspn(path, "/");
        bool is_new = true;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = strncmp(s->table[k].m->path + 1, path, n + 1) != 0;
        auto_buf service = {0};
        put(&service, 1, path, n);
        if (is_new)
            put(&out, 1, service.p, service.n);
    }
    put(b, A_SERVICES, out.p, out.n);
}

static void put_answer(struct buf *b, const struct rpc_server *s, uint32_t question, struct rd text) {
    struct rd set = rd_of(s->descriptors.p, s->descriptors.n), file;
    switch (question) {
    case Q_FILE:
    case Q_SYMBOL:
        file = question == Q_FILE ? descriptor_file(set, text) : descriptor_of_symbol(set, text);
        if (file.p)
            put_files(b, set, file);
        else
            put_error(b, E_NOT_FOUND, question == Q_FILE ? "File not found" : "Symbol not found");
        break;
    case Q_SERVICES:
        put_services(b, s);
        break;
    case Q_EXTENSION:
    case Q_EXTENSION_NUMBERS:
        put_error(b, E_NOT_FOUND, "There are no extensions here");
        break;
    default:
        put_error(b, E_UNSUPPORTED, "Unknown reflection request");
    }
}

static void on_question(struct rpc_call *c, void *data, const void *message, size_t n) {
    const struct rpc_server *s = data;
    if (!message) {
        rpc_reply(c, NULL, 0);
        return;
    }
    struct rd r = rd_of(message, n), value, host = {0}, text = {0};
    uint32_t number, question = 0;
    while (descriptor_field(&r, &number, &value)) {
        if (number == 1)
            host = value;
        else if (number >= Q_FILE && number <= Q_SERVICES)
            question = number, text = value;
    }
    if (r.bad) {
        struct err e;
        err_set(&e, E_PROTOCOL, "Broken reflection request");
        rpc_fail(c, &e);
        return;
    }
    auto_buf answer = {0};
    put(&answer, A_HOST, host.p, rd_left(&host));
    put(&answer, A_REQUEST, message, n);
    put_answer(&answer, s, question, text);
    rpc_push(c, answer.p, answer.n);
}

static void on_cancel(struct rpc_call *c, void *data) {
    rpc_reply(c, NULL, 0);
}

static void on_start(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    rpc_set_data(c, ctx);
    rpc_on_cancel(c, on_cancel);
    rpc_on_message(c, on_question);
    if (message)
        on_question(c, ctx, message, n);
}

const struct rpc_method *reflection_methods(size_t *out_n) {
    static const struct rpc_method methods[] = {
        {.path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", .max_message = 4096,
         .streams_in = true, .streams_out = true, .start = on_start},
        {.path = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", .max_message = 4096,
         .streams_in = true, .streams_out = true, .start = on_start},
    };
    *out_n = ARRAY_LEN(methods);
    return methods;
}
