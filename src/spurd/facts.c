/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/facts.h"

#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#define CPUS_MAX 65536

static bool read_line(const char *path, char *out, size_t n) {
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(out, (int)n, f);
    if (f)
        fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = 0;
    return ok;
}

/* The number behind "Key:" in a file of such lines. */
static uint64_t value_of(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t v = 0;
    while (f && fgets(line, sizeof(line), f)) {
        if (str_starts(line, key)) {
            v = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    if (f)
        fclose(f);
    return v;
}

/* ---- processors ---- */

static bool cpu_fact(int cpu, const char *what, long *out) {
    char path[128], text[32];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
    if (!read_line(path, text, sizeof(text)))
        return false;
    *out = strtol(text, NULL, 10);
    return true;
}

struct places {
    VEC(uint64_t) v;
};

static void places_add(struct places *p, uint64_t place) {
    for (size_t i = 0; i < p->v.n; i++) {
        if (p->v.p[i] == place)
            return;
    }
    vec_push(&p->v, place);
}

/* Sockets, cores and threads of the processors that we may use. What doesn't multiply out is shown as Slurm shows a
 * plain count: as many sockets of one core. */
static void find_cpus(uint32_t wanted, struct node *out) {
    struct places sockets = {0}, cores = {0};
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    CPU_ZERO_S(size, set);
    uint32_t n = 0;
    if (!sched_getaffinity(0, size, set)) {
        for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
            long socket = 0, core = 0;
            if (!CPU_ISSET_S((size_t)cpu, size, set))
                continue;
            n++;
            if (cpu_fact(cpu, "physical_package_id", &socket) && cpu_fact(cpu, "core_id", &core)) {
                places_add(&sockets, (uint64_t)socket);
                places_add(&cores, (uint64_t)socket << 32 | (uint32_t)core);
            }
        }
    }
    CPU_FREE(set);
    uint32_t n_sockets = (uint32_t)sockets.v.n, n_cores = (uint32_t)cores.v.n;
    vec_fini(&sockets.v);
    vec_fini(&cores.v);
    out->cpus = wanted ? wanted : n ? n : (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    bool even = !wanted && n_sockets && n_cores && n_cores % n_sockets == 0 && n % n_cores == 0;
    out->sockets = even ? n_sockets : out->cpus;
    out->cores_per_socket = even ? n_cores / n_sockets : 1;
    out->threads_per_core = even ? n / n_cores : 1;
}

/* ---- the rest ---- */

static const char *short_name(struct arena *a) {
    char name[256] = "localhost";
    (void)gethostname(name, sizeof(name) - 1);
    return arena_strndup(a, name, strcspn(name, "."));
}

static uint64_t tmp_mb(void) {
    struct statvfs st;
    return statvfs("/tmp", &st) ? 0 : (uint64_t)st.f_blocks * st.f_frsize >> 20;
}

static void find_features(const char *text, struct arena *a, struct node *out) {
    size_t n = 0, most = 1;
    for (const char *c = text; c && *c; c++)
        most += *c == ',';
    const char **list = arena_calloc(a, most, sizeof(*list));
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (length)
            list[n++] = arena_strndup(a, text, length);
        text += length + (text[length] == ',');
    }
    out->features = list;
    out->n_features = (uint32_t)n;
}

void facts_node(const char *name, uint32_t cpus, uint64_t mem_mb, const char *features, struct arena *a,
                struct node *out) {
    struct utsname u;
    char boot_id[64] = "";
    *out = (struct node){.name = name ? name : short_name(a), .hostname = short_name(a), .version = SPUR_VERSION};
    find_cpus(cpus, out);
    find_features(features, a, out);
    out->mem_mb = mem_mb ? mem_mb : value_of("/proc/meminfo", "MemTotal:") / 1024;
    out->tmp_disk_mb = tmp_mb();
    if (!uname(&u)) {
        out->arch = arena_strdup(a, u.machine);
        out->os = arena_printf(a, "%s %s %s", u.sysname, u.release, u.version);
    }
    (void)read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    out->boot_id = arena_strdup(a, boot_id);
    out->boot_unix = (int64_t)value_of("/proc/stat", "btime");
    out->agent_start_unix = time(NULL);
}

void facts_labels(const char *const *label, uint32_t n, struct arena *a, struct node *out) {
    struct selector *list = arena_calloc(a, n + 1, sizeof(*list));
    for (uint32_t i = 0; i < n; i++) {
        size_t key = strcspn(label[i], "=");
        list[i] = (struct selector){arena_strndup(a, label[i], key), arena_strdup(a, label[i] + key + 1)};
    }
    labels_change(NULL, 0, list, n, false, a, &out->labels, &out->n_labels);
}

void facts_sample(uint32_t *out_load, uint64_t *out_free_mb) {
    double load;
    uint64_t free_kb = value_of("/proc/meminfo", "MemAvailable:");
    *out_load = getloadavg(&load, 1) == 1 ? (uint32_t)(load * 100) + 1 : 0;
    *out_free_mb = free_kb ? free_kb / 1024 + 1 : 0;
}

/* ---- address ---- */

static bool is_wildcard(const char *host) {
    return !*host || str_eq(host, "0.0.0.0") || str_eq(host, "::") || str_eq(host, "*");
}

/* "[h]:p", "h:p", with or without a scheme: the host. Of a list: the first one's. */
static char *host_of(const char *address, struct arena *a) {
    const char *text = arena_strndup(a, address, strcspn(address, ",")), *scheme = strstr(text, "://");
    const char *host = scheme ? scheme + 3 : text;
    if (*host == '[')
        return arena_strndup(a, host + 1, strcspn(host + 1, "]"));
    size_t n = strlen(host);
    const char *colon = memrchr(host, ':', n);
    return arena_strndup(a, host, colon ? (size_t)(colon - host) : n);
}

/* Connecting a datagram socket sends nothing, but chooses our end. */
static char *towards(const char *host) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    char text[NI_MAXHOST] = "";
    if (getaddrinfo(host, "6817", &hints, &found))
        return NULL;
    for (struct addrinfo *ai = found; ai && !*text; ai = ai->ai_next) {
        struct sockaddr_storage own;
        socklen_t n = sizeof(own);
        autoclose int fd = socket(ai->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) || getsockname(fd, (struct sockaddr *)&own, &n) ||
            getnameinfo((struct sockaddr *)&own, n, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
            text[0] = 0;
    }
    freeaddrinfo(found);
    return *text ? xstrdup(text) : NULL;
}

char *facts_listen_address(const char *listen, struct arena *a) {
    char *host = host_of(listen, a);
    return is_wildcard(host) ? NULL : host;
}

char *facts_address_towards(const char *controllers) {
    auto_arena a = {0};
    char *found = NULL;
    for (const char *at = controllers; at && !found; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        found = str_starts(at, "unix:") ? xstrdup(short_name(&a)) : towards(host_of(at, &a));
    }
    return found;
}
