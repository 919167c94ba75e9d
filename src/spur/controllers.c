/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/controllers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

static uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* "[::1]:6821" → "::1", "host:6821" → "host" */
static const char *host_of(struct cli *c, const char *address) {
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : strlen(address);
    if (str_starts(address, "unix:"))
        return address;
    if (n >= 2 && address[0] == '[' && address[n - 1] == ']')
        return arena_strndup(&c->arena, address + 1, n - 2);
    return arena_strndup(&c->arena, address, n);
}

static struct controller_seen *find(struct controllers_seen *s, uint32_t id) {
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].id == id)
            return &s->at[i];
    return NULL;
}

static struct controller_seen *find_or_add(struct controllers_seen *s, uint32_t id) {
    struct controller_seen *k = find(s, id);
    if (k || s->n == CONTROLLERS_MAX)
        return k;
    k = &s->at[s->n++];
    *k = (struct controller_seen){.id = id, .address = "", .host = "", .role = "", .version = ""};
    return k;
}

static const char *or_empty(const char *s) {
    return s ? s : "";
}

/* What one says of all. What it says of itself counts, and of others what is newest. */
static void add_reply(struct cli *c, struct controllers_seen *s, const struct ping_reply *r, uint64_t latency_us) {
    for (uint32_t i = 0; i < r->n_members; i++) {
        const struct controller_info *m = &r->members[i];
        struct controller_seen *k = find_or_add(s, m->id);
        if (!k)
            continue;
        k->address = or_empty(m->address);
        k->host = host_of(c, k->address);
        if (k->was_asked)
            continue;
        k->is_up = k->is_up || m->is_reached;
        if (!*k->role || str_eq(m->role, "spare"))
            k->role = or_empty(m->role);
        if (m->index >= k->index) {
            k->term = m->term;
            k->index = m->index;
            k->version = or_empty(m->version);
        }
    }
    struct controller_seen *self = find_or_add(s, r->member_id);
    if (!self)
        return;
    bool is_spare = str_eq(self->role, "spare");
    self->was_asked = self->is_up = true;
    self->role = is_spare ? "spare" : or_empty(r->role);
    self->term = r->term;
    self->index = r->index;
    self->version = or_empty(r->version);
    self->latency_us = latency_us;
    if (!*self->host) {
        self->host = or_empty(r->hostname);
        self->address = self->host;
    }
}

static int ask(struct cli *c, const char *target, struct ping_reply *out, uint64_t *out_us, struct err *e) {
    const struct spur_options options = {.controllers = target, .timeout_ms = CONTROLLER_PING_MS};
    struct spur_client *client = NULL;
    struct nothing request = {0};
    int rc = spur_open(&options, &client, e);
    if (rc)
        return rc;
    uint64_t began = now_us();
    rc = spur_call(client, WIRE_Controller_Ping, &request, &c->arena, out, e);
    *out_us = now_us() - began;
    spur_close(client);
    return rc;
}

static int by_id(const void *a, const void *b) {
    const struct controller_seen *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Two may each say that they lead: one has not heard yet that it doesn't. The later term is right, and who leads is told by those
 * of that term. */
static void settle(struct controllers_seen *s, uint64_t leader_term) {
    for (size_t i = 0; i < s->n; i++) {
        struct controller_seen *k = &s->at[i];
        if (str_eq(k->role, "leader") && k->id != s->leader_id)
            k->role = k->was_asked && k->term >= leader_term ? k->role : "follower";
        else if (k->id == s->leader_id && k->is_up && !k->was_asked)
            k->role = "leader";
        if (!k->is_up && !str_eq(k->role, "spare"))
            k->role = "";
    }
    qsort(s->at, s->n, sizeof(s->at[0]), by_id);
}

static void nobody(struct cli *c, struct controllers_seen *s, const char *const *target, uint32_t n) {
    for (uint32_t i = 0; i < n && s->n < CONTROLLERS_MAX; i++)
        s->at[s->n++] = (struct controller_seen){.address = target[i], .host = host_of(c, target[i]), .role = "", .version = ""};
}

int controllers_see(struct cli *c, struct controllers_seen *out, struct err *e) {
    uint64_t leader_term = 0;
    uint32_t n;
    *out = (struct controllers_seen){.cluster = "", .hostname = ""};
    int rc = c->client ? 0 : spur_open(NULL, &c->client, e);
    if (rc)
        return rc;
    const char *const *target = cli_words(c, spur_controllers(c->client), ", ", &n);
    for (uint32_t i = 0; i < n; i++) {
        struct ping_reply r = {0};
        uint64_t us = 0;
        if (ask(c, target[i], &r, &us, &out->why))
            continue;
        if (!out->is_answered) {
            out->cluster = or_empty(r.cluster_name);
            out->hostname = or_empty(r.hostname);
        }
        out->is_answered = true;
        add_reply(c, out, &r, us);
        if (r.leader_id && r.term >= leader_term) {
            leader_term = r.term;
            out->leader_id = r.leader_id;
        }
    }
    if (out->is_answered)
        settle(out, leader_term);
    else
        nobody(c, out, target, n);
    return 0;
}
