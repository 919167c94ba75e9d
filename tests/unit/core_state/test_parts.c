/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions and nodes changed by hand: until the next configuration.
 */
#include "rig.h"

static int part_op(struct rig *g, uint32_t op, struct part p, uint32_t changes) {
    return act(g, CMD_PARTITION, &(struct cmd_partition){.op = op, .part = &p, .changes = changes});
}

static void file_of(struct rig *g, const struct part *parts, uint32_t n) {
    struct rconf conf = {.cluster_name = "c", .parts = parts, .n_parts = n};
    assert_int_equal(act(g, CMD_CONFIG_SET, &(struct cmd_config_set){.conf = &conf, .member_id = 1}), 0);
}

static const struct part *part_of(struct rig *g, const char *name) {
    struct view v;
    state_peek(g->s, &v);
    return view_find_part(&v, name);
}

static void until_the_next_configuration(void **state) {
    struct rig g;
    struct part file[] = {{.id = 1, .name = "a", .is_default = true, .all_nodes = true, .max_time_min = 60}, {.id = 2, .name = "b"}};
    rig_init(&g);
    file_of(&g, file, 2);
    assert_int_equal(part_op(&g, PART_OP_CREATE, (struct part){.name = "a"}, 0), E_PARTITION);
    assert_int_equal(part_op(&g, PART_OP_CREATE, (struct part){.name = "c", .is_default = true, .max_nodes = 3}, 0), 0);
    assert_true(saw(&g, EV_CONFIG_CHANGED, 0));
    assert_int_equal(part_of(&g, "c")->id, 3);
    assert_int_equal(part_of(&g, "c")->max_nodes, 3);
    assert_false(part_of(&g, "a")->is_default); /* there is one at most */
    assert_int_equal(part_op(&g, PART_OP_UPDATE, (struct part){.name = "a", .state = PART_DRAIN, .max_time_min = 5}, PART_CHANGE_STATE), 0);
    assert_int_equal(part_of(&g, "a")->state, PART_DRAIN);
    assert_int_equal(part_of(&g, "a")->max_time_min, 60); /* what isn't named stays */
    assert_int_equal(part_op(&g, PART_OP_UPDATE, (struct part){.name = "x"}, PART_CHANGE_STATE), E_PARTITION);
    assert_int_equal(part_op(&g, PART_OP_DELETE, (struct part){.name = "b"}, 0), 0);
    assert_null(part_of(&g, "b"));
    assert_int_equal(part_op(&g, PART_OP_DELETE, (struct part){.name = "b"}, 0), E_PARTITION);
    assert_int_equal(part_op(&g, 9, (struct part){.name = "a"}, 0), E_SYNTAX);
    file_of(&g, file, 2);
    assert_null(part_of(&g, "c"));
    assert_int_equal(part_of(&g, "a")->state, PART_UP);
    assert_true(part_of(&g, "a")->is_default);
    assert_non_null(part_of(&g, "b"));
    rig_fini(&g);
}

static void nodes_take_notes(void **state) {
    struct rig g;
    rig_init(&g);
    uint32_t ids[] = {add_node(&g, "n1", 4, NULL, 0), add_node(&g, "n2", 4, NULL, 0)};
    static const char *const two[] = {"i-1", "i-2"}, *const three[] = {"a", "b", "c"}, *const none[] = {""};
    struct gres gpu[] = {{.name = "gpu", .type = "a100", .count = 2}};
    struct cmd_node_update cmd = {.node_ids = ids, .n_node_ids = 2, .op = NODE_OP_SET, .instance_ids = two, .n_instance_ids = 2,
                                  .comment = "lent out", .gres = gpu, .n_gres = 1, .has_gres = true};
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &cmd), 0);
    assert_string_equal(node_of(&g, ids[0])->set->instance_id, "i-1");
    assert_string_equal(node_of(&g, ids[1])->set->instance_id, "i-2");
    assert_string_equal(node_of(&g, ids[1])->set->comment, "lent out");
    assert_int_equal(node_of(&g, ids[1])->gres[0].count, 2);
    add_node(&g, "n2", 4, NULL, 0); /* outlives a registration */
    assert_int_equal(node_of(&g, ids[1])->gres[0].count, 2);
    cmd = (struct cmd_node_update){.node_ids = ids, .n_node_ids = 2, .op = NODE_OP_SET, .instance_ids = three, .n_instance_ids = 3};
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &cmd), E_SYNTAX);
    cmd = (struct cmd_node_update){.node_ids = ids, .n_node_ids = 1, .op = NODE_OP_SET, .instance_ids = none, .n_instance_ids = 1};
    assert_int_equal(act(&g, CMD_NODE_UPDATE, &cmd), 0);
    assert_string_equal(node_of(&g, ids[0])->set->instance_id, "");
    assert_string_equal(node_of(&g, ids[0])->set->comment, "lent out");
    config(&g, (struct rconf){0});
    assert_null(node_of(&g, ids[0])->set);
    assert_int_equal(node_of(&g, ids[1])->n_gres, 0);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(until_the_next_configuration), cmocka_unit_test(nodes_take_notes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
