/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/cluster_inside.h"

#define SETTLE_MS 900000u
#define STEP_MOST_MS 500u
#define CHANGES 70u /* of a thousand steps, where members come and go */

static void fill(struct rconf *conf, struct arena *a) {
    conf->heartbeat_timeout_secs = 30;
    conf->launch_timeout_secs = 10;
    conf->min_job_age_secs = 30;
    conf->kill_wait_secs = 3;
    conf->max_launch_failures = 1000;
    conf->max_launch_backoff_secs = 5;
}

void cluster_start_member(struct life *c, uint32_t i) {
    if (smember_is_up(c->m[i]) || (!life_is_in(c, i) && sdisk_is_fresh(smember_disk(c->m[i]))))
        return;
    judge_note(&c->judge, "member %u starts", i + 1);
    judge_started(&c->judge, c->m[i]);
    smember_start(c->m[i]);
}

/* At "ctl" one of those who think that they lead is found, if the way to it is open. */
static void serve(void *ctx, struct vrequest *rq) {
    struct life *c = ctx;
    uint32_t first = (uint32_t)vworld_below(c->w, c->n_members);
    for (uint32_t i = 0; i < c->n_members; i++) {
        struct smember *m = c->m[(first + i) % c->n_members];
        if (!smember_is_up(m) || !smember_ctl(m)->room.is_leader)
            continue;
        if (vnet_passes(c->w, vrequest_from(rq), smember_address(m)) && vnet_passes(c->w, smember_address(m), vrequest_from(rq)))
            vctl_serve(smember_ctl(m), rq);
        else
            vrequest_drop(rq);
        return;
    }
    vctl_serve(NULL, rq);
}

static void begin(struct life *c, const struct cluster_conf *conf) {
    *c = (struct life){.w = vworld_new(conf->seed), .n_members = conf->changes ? MEMBERS_MOST : conf->members,
                       .n_founders = conf->members, .in = (1u << conf->members) - 1};
    must(c->n_members <= MEMBERS_MOST);
    c->judge = (struct judge){.world = c->w, .members = c->m, .n_members = c->n_members, .is_loud = conf->is_loud};
    vnet_listen(c->w, "ctl", serve, c);
    for (uint32_t i = 0; i < c->n_members; i++) {
        struct smember_conf mc = {c->w, conf->dir, i + 1, conf->members, fill, judge_watch(&c->judge)};
        c->m[i] = smember_new(&mc);
    }
    for (uint32_t i = 0; i < conf->members; i++)
        cluster_start_member(c, i);
    for (uint32_t i = 0; i < AGENTS; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i + 1);
        c->a[i] = vagent_new(c->w, name, 2 + i % 3, 1000);
        vagent_watch(c->a[i], judge_ran, &c->judge);
        vagent_start(c->a[i]);
    }
    c->client = sclient_new(c->w, &c->judge);
    if (conf->changes)
        admin_begin(c);
}

static bool look(void *arg) {
    struct life *c = arg;
    for (uint32_t i = 0; i < c->n_members; i++)
        smember_look(c->m[i]);
    return false;
}

static bool is_settled(void *arg) {
    look(arg);
    admin_watch(arg);
    return settle_is_done(arg);
}

static void run(struct life *c, uint64_t ms) {
    int64_t until = vworld_now_ms(c->w) + (int64_t)ms;
    vworld_run_until(c->w, look, c, ms);
    vworld_run(c->w, (uint64_t)MAX(until - vworld_now_ms(c->w), 0));
}

static void act(struct life *c) {
    if (c->admin && vworld_chance(c->w, CHANGES)) {
        admin_act(c);
        return;
    }
    uint64_t x = vworld_below(c->w, 1000);
    if (x < 620)
        sclient_act(c->client);
    else if (x < 760)
        sclient_read(c->client);
    else
        trouble_act(c);
}

static void end(struct life *c, struct cluster_result *out) {
    *out = (struct cluster_result){.hash = c->judge.hash, .entries = c->judge.log.n, .terms = c->judge.n_terms,
                                   .crashes = c->judge.n_crashes, .restores = c->judge.n_restores,
                                   .virtual_ms = (uint64_t)vworld_now_ms(c->w), .jobs = sclient_jobs(c->client),
                                   .runs = (uint32_t)c->judge.begun.n, .reads = sclient_reads(c->client),
                                   .changes = admin_done(c)};
    admin_end(c);
    for (uint32_t i = 0; i < c->n_members; i++) {
        out->snapshots += smember_snapshots(c->m[i]);
        smember_free(c->m[i]);
    }
    for (uint32_t i = 0; i < AGENTS; i++)
        vagent_free(c->a[i]);
    sclient_free(c->client);
    vnet_listen(c->w, "ctl", NULL, NULL);
    vworld_free(c->w);
    judge_fini(&c->judge);
}

void cluster_live(const struct cluster_conf *conf, struct cluster_result *out) {
    struct life c;
    begin(&c, conf);
    run(&c, 1500);
    for (uint32_t i = 0; i < conf->steps; i++) {
        act(&c);
        run(&c, vworld_below(c.w, STEP_MOST_MS));
    }
    c.is_healing = true;
    trouble_end(&c);
    if (!vworld_run_until(c.w, is_settled, &c, SETTLE_MS))
        judge_note(&c.judge, "not settled");
    settle_check(&c);
    end(&c, out);
}
