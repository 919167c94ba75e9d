/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/hint.h"

#include <string.h>

#include "base/mem.h"

void hint_near(const struct cli *c, const struct near *n) {
    if (n->best)
        cli_say(c, "did you mean '%s'?", n->best);
}

void hint_field(const struct cli *c, const struct table_fields *f, const char *word, size_t n) {
    autofree char *name = xstrndup(word, n);
    name[strcspn(name, ":%")] = 0;
    struct near near = near_to(name);
    for (size_t i = 0; strlen(name) > 1 && i < f->n; i++)
        near_try(&near, f->row[i].name);
    hint_near(c, &near);
}

void hint_partition(const struct cli *c, const struct nodes_reply *all, const char *asked) {
    struct near n = near_to(asked);
    for (uint32_t i = 0; i < all->n_parts; i++) {
        if (str_eq(all->parts[i].name, asked))
            return;
        near_try(&n, all->parts[i].name);
    }
    hint_near(c, &n);
}

static void hint_node(const struct cli *c, const struct nodes_reply *all, const char *asked) {
    struct near n = near_to(asked);
    for (uint32_t i = 0; i < all->n_nodes; i++) {
        const struct node *node = all->nodes[i].node;
        if (node && str_eq(node->name, asked))
            return;
        near_try(&n, node ? node->name : NULL);
    }
    hint_near(c, &n);
}

void hint_refused_job(struct cli *c, int code, const struct job_spec *s) {
    struct nodes_reply all = {0};
    struct nothing request = {0};
    struct err e = {0};
    uint32_t n;
    bool is_partition = code == E_PARTITION && s->partition;
    if ((!is_partition && code != E_NODE_NAME) || cli_call(c, WIRE_Controller_Nodes, &request, &all, &e))
        return; /* a hint more or less */
    const char *const *word = is_partition ? cli_words(c, s->partition, ",", &n) : NULL;
    for (uint32_t i = 0; word && i < n; i++)
        hint_partition(c, &all, word[i]);
    for (uint32_t i = 0; !word && i < s->n_req_nodes; i++)
        hint_node(c, &all, s->req_nodes[i]);
    for (uint32_t i = 0; !word && i < s->n_exc_nodes; i++)
        hint_node(c, &all, s->exc_nodes[i]);
}
