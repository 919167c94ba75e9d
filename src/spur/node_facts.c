/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/node_facts.h"
#include "spur/job_facts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

bool node_is_busy(const struct node *n) {
    return n->alloc_cpus || n->n_jobs || n->n_completing;
}

/* A node that only cleans up after its jobs is idle and completing. */
enum node_shown_base node_shown_base(const struct node *n) {
    bool only_completing = n->n_completing && n->n_jobs <= n->n_completing;
    if (n->base == NODE_DOWN)
        return NODE_SHOWN_DOWN;
    if (n->base != NODE_UP)
        return NODE_SHOWN_UNKNOWN;
    if (!node_is_busy(n) || only_completing)
        return NODE_SHOWN_IDLE;
    return n->cpus && n->alloc_cpus >= n->cpus ? NODE_SHOWN_ALLOCATED : NODE_SHOWN_MIXED;
}

uint32_t node_sort_state(const struct node *n) {
    return (uint32_t)node_shown_base(n) | (node_is_marked(n, DRAIN_PLAIN) ? 1u << 9 : 0) | (n->n_completing ? 1u << 10 : 0) |
           (n->not_responding ? 1u << 11 : 0) | (node_is_marked(n, DRAIN_FAIL) ? 1u << 13 : 0);
}

static bool is_future_alone(const struct node *n) { /* which has no reason */
    return n->n_drains == 1 && n->drains[0].kind == DRAIN_FUTURE;
}

void node_reason(const struct node *n, struct str *out) {
    const char *between = "";
    for (uint32_t i = 0; i < n->n_drains; i++) {
        if (n->drains[i].kind == DRAIN_FUTURE)
            continue;
        str_addf(out, "%s%s", between, n->drains[i].text ? n->drains[i].text : "");
        between = "; ";
    }
    if (!n->n_drains && n->down_reason)
        str_add(out, n->down_reason);
}

int64_t node_reason_since(const struct node *n) {
    if (is_future_alone(n))
        return 0;
    if (n->n_drains)
        return n->drains[0].since_unix;
    return n->down_reason ? n->down_since_unix : 0;
}

const char *node_reason_user(const struct node *n) {
    if (is_future_alone(n))
        return NULL;
    if (n->n_drains)
        return n->drains[0].user ? n->drains[0].user : "root";
    return n->down_reason ? "root" : NULL;
}

uint32_t node_other_cpus(const struct node *n) {
    uint32_t rest = n->cpus > n->alloc_cpus ? n->cpus - n->alloc_cpus : 0;
    return n->n_drains || n->base != NODE_UP ? rest : 0;
}

uint32_t node_idle_cpus(const struct node *n) {
    uint32_t rest = n->cpus > n->alloc_cpus ? n->cpus - n->alloc_cpus : 0;
    return rest - node_other_cpus(n);
}

static void words_print(const char *const *word, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? "," : "", word[i]);
    if (!n)
        str_add(out, "(null)");
}

void features_print(const struct node *n, struct str *out) {
    words_print(n->features, n->n_features, out);
}

void active_print(const struct node *n, struct str *out) {
    uint32_t n_active;
    const char *const *active = node_active(n, &n_active);
    words_print(active, n_active, out);
}

/* ---- states of sinfo -t ---- */

static bool always(const struct node *n) {
    return true;
}
static bool never(const struct node *n) {
    return false;
}
static bool is_unknown(const struct node *n) {
    return node_shown_base(n) == NODE_SHOWN_UNKNOWN;
}
static bool is_down(const struct node *n) {
    return node_shown_base(n) == NODE_SHOWN_DOWN;
}
static bool is_idle(const struct node *n) {
    return node_shown_base(n) == NODE_SHOWN_IDLE && !n->n_completing;
}
static bool is_allocated(const struct node *n) {
    return node_shown_base(n) == NODE_SHOWN_ALLOCATED || node_shown_base(n) == NODE_SHOWN_MIXED;
}
static bool is_mixed(const struct node *n) {
    return node_shown_base(n) == NODE_SHOWN_MIXED;
}
static bool is_drain(const struct node *n) {
    return node_is_marked(n, DRAIN_PLAIN);
}
static bool is_drained(const struct node *n) {
    return is_drain(n) && !node_is_busy(n);
}
static bool is_draining(const struct node *n) {
    return is_drain(n) && node_is_busy(n);
}
static bool is_fail(const struct node *n) {
    return node_is_marked(n, DRAIN_FAIL);
}
static bool is_future(const struct node *n) {
    return node_is_marked(n, DRAIN_FUTURE);
}
static bool is_silent(const struct node *n) {
    return n->not_responding;
}
static bool is_completing(const struct node *n) {
    return n->n_completing > 0;
}

/* In Slurm's order; a word may be the beginning of a name. What our nodes can't be yet matches none. */
static const struct {
    const char *name, *compact;
    bool (*is)(const struct node *n);
} states[] = {
    {"unknown", "unk", is_unknown}, {"down", "down", is_down}, {"idle", "idle", is_idle},
    {"allocated", "alloc", is_allocated}, {"mixed", "mix", is_mixed}, {"future", "futr", is_future},
    {"drain", "drain", is_drain}, {"drained", "drain", is_drained}, {"draining", "drng", is_draining},
    {"no_respond", "no_respond", is_silent}, {"reserved", "resv", never}, {"planned", "plnd", never},
    {"blocked", "block", never}, {"cloud", "cloud", never}, {"completing", "comp", is_completing},
    {"powering_down", "pow_dn", never}, {"powered_down", "pow_dn", never}, {"power_down", "pow_dn", never},
    {"powering_up", "pow_up", never}, {"power_up", "pow_up", never}, {"inval", "inval", never},
    {"fail", "fail", is_fail}, {"maint", "maint", never}, {"reboot", "boot", never}, {"reboot^", "boot^", never},
    {"external", "external", never}, {"dynamic_future", "futr", never}, {"dynamic_norm", "norm", never},
    {"all", "all", always}, {"reboot_requested", "boot", never}, {"reboot_issued", "boot^", never},
};

static bool is_in_state(const struct node_info *ni, size_t i) {
    return ni && (states[i].is(ni->node) || (ni->planned && str_eq(states[i].name, "planned")));
}

static bool matches_word(const struct node_info *ni, const char *word, bool *out_known) {
    *out_known = true;
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (strcasecmp(word, states[i].name) == 0)
            return is_in_state(ni, i);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        bool is_pow_dn = strcasecmp(word, "pow_dn") == 0; /* Slurm prints it and doesn't take it */
        if (*word && !is_pow_dn && (strcasecmp(word, states[i].compact) == 0 ||
                                    strncasecmp(word, states[i].name, strlen(word)) == 0))
            return is_in_state(ni, i);
    }
    *out_known = false;
    return false;
}

bool node_state_matches(const struct node_info *ni, const char *term, bool *out_known) {
    bool matches = true, known = true;
    for (const char *at = term; known; at++) {
        char word[32] = "";
        bool is_not = *at == '~' || *at == '!';
        at += is_not;
        size_t n = strcspn(at, "&+");
        if (n < sizeof(word))
            memcpy(word, at, n);
        matches &= matches_word(ni, word, &known) != is_not;
        at += n;
        if (!*at)
            break;
    }
    *out_known = known;
    return known && matches;
}

const char *node_info_state(const struct node_info *ni, bool compact, char out[24]) {
    const char *word = node_shown_state(ni->node, compact, out);
    if (!ni->planned)
        return word;
    if (node_shown_base(ni->node) == NODE_SHOWN_IDLE)
        return compact ? "plnd" : "planned";
    char plain[24];
    snprintf(plain, sizeof(plain), "%s", word);
    snprintf(out, 24, "%.22s-", plain);
    return out;
}

const char *node_info_state_upper(const struct node_info *ni, char out[64]) {
    char plain[64];
    node_state_upper(ni->node, plain);
    snprintf(out, 64, "%.54s%s", plain, ni->planned ? "+PLANNED" : "");
    return out;
}

void node_drop_future(struct nodes_reply *all) {
    struct node_info *list = (struct node_info *)all->nodes; /* memory of the reply's own */
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n_nodes; i++)
        if (!list[i].node || !is_future(list[i].node))
            list[n++] = list[i];
    all->n_nodes = n;
}

const char *node_valid_states(void) {
    return "unknown,down,idle,allocated,mixed,future,drain,drained,draining,no_respond,reserved,planned,blocked,cloud,"
           "completing,powering_down,powered_down,power_down,powering_up,power_up,inval,fail,maint,reboot,reboot^,"
           "external,dynamic_future,dynamic_norm";
}

/* ---- generic resources ---- */

static void gres_name(const struct gres *g, struct str *out) {
    str_addf(out, "%s%s%s:", g->name, g->type ? ":" : "", g->type ? g->type : "");
}

void node_gres(const struct node *n, struct str *out) {
    for (uint32_t i = 0; i < n->n_gres; i++) {
        str_add(out, i ? "," : "");
        gres_name(&n->gres[i], out);
        str_addf(out, "%s%llu", n->gres[i].no_consume ? "no_consume:" : "", (unsigned long long)n->gres[i].count);
    }
}

/* "0-2,5" of ascending numbers. */
void index_list(const uint32_t *list, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n;) {
        uint32_t k = i;
        while (k + 1 < n && list[k + 1] == list[k] + 1)
            k++;
        str_addf(out, k > i ? "%s%u-%u" : "%s%u", i ? "," : "", list[i], list[k]);
        i = k + 1;
    }
}

void node_gres_used(const struct node *n, struct str *out) {
    for (uint32_t i = 0; i < n->n_gres; i++) {
        const struct gres *g = &n->gres[i];
        str_add(out, i ? "," : "");
        gres_name(g, out);
        str_addf(out, "%llu", (unsigned long long)g->alloc);
        if (!g->n_files)
            continue;
        str_add(out, "(IDX:");
        if (g->n_taken)
            index_list(g->taken, g->n_taken, out);
        else
            str_add(out, "N/A");
        str_addc(out, ')');
    }
}

void node_gres_tres(const struct node *const *n, uint32_t n_nodes, bool used, struct str *out) {
    struct tres_gres sum = {0};
    for (uint32_t i = 0; i < n_nodes; i++)
        for (uint32_t k = 0; k < n[i]->n_gres; k++) {
            const struct gres *g = &n[i]->gres[k];
            struct gres_held held = {.name = g->name, .type = g->type, .count = used ? g->alloc : g->count};
            if (held.count)
                tres_gres_hold(&sum, &held, 1);
        }
    tres_gres_print(&sum, false, out);
    tres_gres_fini(&sum);
}

void part_groups(const struct part *p, const char *all, struct str *out) {
    if (!p->n_allow_groups)
        str_add(out, all);
    for (uint32_t i = 0; i < p->n_allow_groups; i++)
        str_addf(out, "%s%s", i ? "," : "", p->allow_groups[i]);
}

const char *part_exclusive(const struct part *p) {
    return p->exclusive_topo ? "TOPO" : p->over_subscribe == OVER_EXCLUSIVE ? "NODE" : p->exclusive_user ? "USER" : "NO";
}

void part_over_subscribe(const struct part *p, struct str *out) {
    static const char *const words[] = {"NO", "EXCLUSIVE", "YES", "FORCE"};
    str_add(out, p->over_subscribe < ARRAY_LEN(words) ? words[p->over_subscribe] : "NO");
    if (p->over_subscribe >= OVER_YES)
        str_addf(out, ":%u", MAX(p->over_count, 1u));
}
