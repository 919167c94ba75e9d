/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a client looks for controllers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "libspur/target.h"

static void clean(void) {
    unsetenv("SPUR_CONTROLLER_ADDR");
    unsetenv("SPUR_CONTROLLER");
    unsetenv("SPUR_CONF");
}

static void expect(const char *asked, const char *want) {
    autofree char *got = NULL;
    struct err e = {0};
    if (target_find(asked, &got, &e))
        fail_msg("%s", e.text);
    assert_string_equal(got, want);
}

static void order(void **state) {
    clean();
    setenv("SPUR_CONTROLLER", "three:3", 1);
    expect(NULL, "three:3");
    setenv("SPUR_CONTROLLER_ADDR", "http://two:2,http://b", 1);
    expect(NULL, "two:2,b:6817");
    expect("unix:/run/x", "unix:/run/x");
    clean();
}

static void bad_addresses_are_named(void **state) {
    clean();
    char *got = NULL;
    struct err e = {0};
    setenv("SPUR_CONTROLLER_ADDR", "host:99999", 1);
    assert_int_not_equal(target_find(NULL, &got, &e), 0);
    assert_non_null(strstr(e.text, "host:99999"));
    assert_null(got);
    clean();
}

static void conf(const char *text, const char *want) {
    char path[] = "/tmp/spur-conf-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    setenv("SPUR_CONF", path, 1);
    autofree char *got = NULL;
    struct err e = {0};
    int rc = target_find(NULL, &got, &e);
    unlink(path);
    unsetenv("SPUR_CONF");
    if (want) {
        if (rc)
            fail_msg("%s", e.text);
        assert_string_equal(got, want);
    } else {
        assert_int_equal(rc, E_CONFIG);
        assert_non_null(strstr(e.text, path));
    }
}

static void from_a_file(void **state) {
    clean();
    conf("[controller]\nlisten_addr = \"[::]:7000\"\nhosts = [\"ctl1\", \"ctl2:7001\"]\n", "ctl1:7000,ctl2:7001");
    conf("[controller]\nhosts = \"ctl1\"\n", "ctl1:6817");
    conf("[controller]\nsocket = \"/nonexistent/sock\"\nhosts = [\"h\"]\n", "h:6817");
    conf("[controller]\nsocket = \"/dev/null\"\nhosts = [\"h\"]\n", "unix:/dev/null,h:6817");
    conf("[controller]\nsocket = \"unix:/dev/null\"\nstate_dir = \"/nonexistent\"\n", "unix:/dev/null,localhost:6817");
    conf("some_new_key = 1\n[other]\nx = 2\n", "localhost:6817");
    conf("[controller]\nhosts = [1]\n", NULL);
    conf("[controller]\npeers = [\"a-0.a:6821\", \"a-1.a:6821\", \"[::1]:7\"]\n", "a-0.a:6817,a-1.a:6817,[::1]:6817");
    conf("[controller]\nlisten_addr = \"[::]:7000\"\nhosts = [\"h\"]\npeers = [\"a:6821\"]\n", "h:7000");
    conf("[controller\n", NULL);
}

/* A controller that was told no place for its socket has it in its state directory: no set-up for those beside it. */
static void beside_the_controller(void **state) {
    char dir[] = "/tmp/spur-target-XXXXXX";
    assert_non_null(mkdtemp(dir));
    autofree char *text = xasprintf("[controller]\nstate_dir = \"%s\"\nhosts = [\"h\"]\n", dir);
    autofree char *socket = xasprintf("%s/spurctld.sock", dir);
    autofree char *want = xasprintf("unix:%s,h:6817", socket);
    clean();
    conf(text, "h:6817");
    FILE *f = fopen(socket, "w");
    assert_non_null(f);
    fclose(f);
    conf(text, want);
    unlink(socket);
    rmdir(dir);
}

static bool is_default_socket(const char *path) {
    return str_eq(path, "/var/spool/spur/spurctld.sock");
}

static void without_a_file(void **state) {
    autofree char *got = NULL;
    struct err e = {0};
    assert_int_equal(target_from_tree(NULL, is_default_socket, &got, &e), 0);
    assert_string_equal(got, "unix:/var/spool/spur/spurctld.sock,localhost:6817");
}

static void a_named_file_has_to_be_there(void **state) {
    clean();
    setenv("SPUR_CONF", "/nonexistent/spur.conf", 1);
    char *got = NULL;
    struct err e = {0};
    assert_int_not_equal(target_find(NULL, &got, &e), 0);
    assert_non_null(strstr(e.text, "/nonexistent/spur.conf"));
    clean();
}

static void who_has_to_be_said(void **state) {
    assert_true(target_has_tcp("unix:/a,h:1"));
    assert_true(target_has_tcp("h:1"));
    assert_false(target_has_tcp("unix:/a"));
    assert_false(target_has_tcp("unix:/a,unix:/b"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(bad_addresses_are_named),
        cmocka_unit_test(from_a_file),
        cmocka_unit_test(beside_the_controller),
        cmocka_unit_test(without_a_file),
        cmocka_unit_test(a_named_file_has_to_be_there),
        cmocka_unit_test(who_has_to_be_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
