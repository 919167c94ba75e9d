/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong: members crash (now, or in a write), their disks are slow, full or fail, the network loses and delays, parts of
 * it are cut off, also one way; clocks jump; agents stop, reboot, are cut off.
 */
#include <stdio.h>

#include "sim/cluster_inside.h"

#define BACK_MOST_MS 6000u

static struct smember *some_member(struct life *c, uint32_t *out_i) {
    *out_i = (uint32_t)vworld_below(c->w, c->n_members);
    return c->m[*out_i];
}

struct back {
    struct life *c;
    uint32_t i;
};

static void on_back(void *arg) {
    struct back *b = arg;
    if (!b->c->is_healing)
        cluster_start_member(b->c, b->i);
    free(b);
}

static void start_later(struct life *c, uint32_t i) {
    struct back *b = xnew(struct back);
    *b = (struct back){c, i};
    vworld_later(c->w, vworld_below(c->w, BACK_MOST_MS), on_back, free, b);
}

static void act_crash(struct life *c) {
    uint32_t i;
    struct smember *m = some_member(c, &i);
    if (!smember_is_up(m)) {
        cluster_start_member(c, i);
        return;
    }
    c->judge.n_crashes++;
    if (vworld_chance(c->w, 500)) {
        sdisk_crash_in(smember_disk(m), 1 + (unsigned)vworld_below(c->w, 12));
        judge_note(&c->judge, "member %u will crash in a write", i + 1);
        struct back *b = xnew(struct back);
        *b = (struct back){c, i};
        vworld_later(c->w, 4000 + vworld_below(c->w, BACK_MOST_MS), on_back, free, b);
        return;
    }
    judge_note(&c->judge, "member %u crashes", i + 1);
    smember_crash(m);
    start_later(c, i);
}

static void cut_way(struct life *c, uint32_t i, uint32_t n) {
    char from[8], to[8];
    snprintf(from, sizeof(from), "ctl%u", i + 1);
    snprintf(to, sizeof(to), "ctl%u", n + 1);
    vnet_cut_way(c->w, from, to);
}

/* Two halves that don't hear each other: the side of a member is its bit. */
static void act_split(struct life *c) {
    uint32_t sides = 1 + (uint32_t)vworld_below(c->w, (1u << c->n_members) - 2);
    for (uint32_t i = 0; i < c->n_members; i++)
        for (uint32_t n = 0; n < c->n_members; n++)
            if ((sides >> i & 1) != (sides >> n & 1))
                cut_way(c, i, n);
    judge_note(&c->judge, "members are split: %#x", sides);
}

static void act_cut(struct life *c) {
    if (vworld_chance(c->w, 500)) {
        vnet_mend(c->w);
        judge_note(&c->judge, "mended");
        return;
    }
    if (c->n_members > 3 && vworld_chance(c->w, 300)) { /* of three, who is cut off is one */
        act_split(c);
        return;
    }
    uint32_t i = (uint32_t)vworld_below(c->w, c->n_members), k = (uint32_t)vworld_below(c->w, c->n_members);
    bool is_whole = vworld_chance(c->w, 400), is_both = vworld_chance(c->w, 600);
    for (uint32_t n = 0; n < c->n_members; n++) {
        if (n == i || (!is_whole && n != k))
            continue;
        cut_way(c, i, n);
        if (is_both)
            cut_way(c, n, i);
    }
    judge_note(&c->judge, "member %u is cut off from %s, %s", i + 1, is_whole ? "all" : "one", is_both ? "both ways" : "one way");
}

static void act_network(struct life *c) {
    struct vworld *w = c->w;
    struct vfaults f = {.delay_min_ms = 0, .delay_max_ms = 5};
    if (vworld_chance(w, 600))
        f = vnet_faults_some(w);
    vnet_faults(w, &f);
    judge_note(&c->judge, "network: loses %u, delays up to %u ms", f.lose_request, f.delay_max_ms);
}

static void act_disk(struct life *c) {
    struct vworld *w = c->w;
    uint32_t i;
    struct smember *m = some_member(c, &i);
    struct sdisk_faults f = {.latency_max_ms = 2};
    switch (vworld_below(w, 6)) {
    case 0: f.latency_max_ms = 20; break;
    case 1: f.latency_min_ms = 30, f.latency_max_ms = 300; break;
    case 2: f.is_full = true; break;
    case 3: f.fails_writes = true; break;
    default: break;
    }
    sdisk_faults(smember_disk(m), &f);
    judge_note(&c->judge, "disk of member %u: %u to %u ms%s%s", i + 1, f.latency_min_ms, f.latency_max_ms,
               f.is_full ? ", full" : "", f.fails_writes ? ", fails" : "");
}

static void act_clock(struct life *c) {
    uint32_t i;
    struct smember *m = some_member(c, &i);
    if (!smember_is_up(m))
        return;
    int64_t off = (int64_t)vworld_below(c->w, 20000) - 10000;
    vhost_clock(smember_ctl(m)->host, off);
    judge_note(&c->judge, "clock of member %u is off by %lld ms", i + 1, (long long)off);
}

static void act_agent(struct life *c) {
    uint32_t i = CALM + (uint32_t)vworld_below(c->w, AGENTS - CALM);
    struct vagent *a = c->a[i];
    uint64_t what = vworld_below(c->w, 8);
    judge_note(&c->judge, "agent %s: %u", vagent_name(a), (unsigned)what);
    switch (what) {
    case 0:
    case 1: vagent_stop(a); break;
    case 2: vagent_reboot(a, vworld_chance(c->w, 400)); break;
    case 3:
        c->is_cut[i] = !c->is_cut[i];
        vagent_cut(a, c->is_cut[i]);
        break;
    default:
        if (!vagent_is_up(a))
            vagent_start(a);
        c->is_cut[i] = false;
        vagent_cut(a, false);
    }
}

void trouble_act(struct life *c) {
    uint64_t x = vworld_below(c->w, 1000);
    if (x < 280)
        act_crash(c);
    else if (x < 460)
        act_cut(c);
    else if (x < 560)
        act_network(c);
    else if (x < 700)
        act_disk(c);
    else if (x < 740)
        act_clock(c);
    else
        act_agent(c);
}

void trouble_end(struct life *c) {
    vnet_mend(c->w);
    vnet_faults(c->w, &(struct vfaults){.delay_min_ms = 0, .delay_max_ms = 3});
    for (uint32_t i = 0; i < c->n_members; i++) {
        sdisk_faults(smember_disk(c->m[i]), &(struct sdisk_faults){.latency_max_ms = 2});
        sdisk_crash_in(smember_disk(c->m[i]), 0);
    }
    for (uint32_t i = 0; i < AGENTS; i++) {
        vagent_cut(c->a[i], false);
        if (!vagent_is_up(c->a[i]))
            vagent_start(c->a[i]);
    }
    vworld_run(c->w, 1); /* a crash that has begun is one */
    for (uint32_t i = 0; i < c->n_members; i++)
        if (life_is_in(c, i))
            cluster_start_member(c, i);
    judge_note(&c->judge, "all is mended");
}
