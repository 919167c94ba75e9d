/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/bind.h"

#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define REPEAT_MAX 65536u
#define CPUS_MAX 4096u

/* One item of a list: "12", "0x3f", either with "*N" behind it. Moves behind the comma. */
struct item {
    const char *text;
    size_t n;
    uint32_t times;
};

static bool next_item(const char **at, struct item *out) {
    size_t n = strcspn(*at, ",");
    const char *star = memchr(*at, '*', n);
    uint64_t times = 1;
    *out = (struct item){.text = *at, .n = star ? (size_t)(star - *at) : n, .times = 1};
    if (star) {
        char number[16];
        size_t len = n - out->n - 1;
        if (!len || len >= sizeof(number))
            return false;
        memcpy(number, star + 1, len);
        number[len] = 0;
        if (str_to_u64(number, REPEAT_MAX, &times) || !times)
            return false;
    }
    out->times = (uint32_t)times;
    *at += n + ((*at)[n] == ',');
    return out->n > 0;
}

static bool cpu_of(const struct item *it, uint32_t *out) {
    uint64_t n = 0;
    for (size_t i = 0; i < it->n && n < CPUS_MAX; i++) {
        if (it->text[i] < '0' || it->text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(it->text[i] - '0');
    }
    *out = (uint32_t)n;
    return n < CPUS_MAX;
}

/* Without "0x". */
static struct item digits_of(const struct item *it) {
    struct item d = *it;
    if (d.n > 2 && d.text[0] == '0' && (d.text[1] | 0x20) == 'x')
        d.text += 2, d.n -= 2;
    return d;
}

static bool is_mask(const struct item *it) {
    struct item d = digits_of(it);
    bool any = false;
    for (size_t i = 0; i < d.n; i++) {
        if (!memchr("0123456789abcdefABCDEF", d.text[i], 22))
            return false;
        any |= d.text[i] != '0';
    }
    return any && d.n <= CPUS_MAX / 4;
}

static bool is_list(const struct cpu_bind_ask *b) {
    struct item it;
    uint32_t cpu;
    const char *at = b->list;
    bool ok = *at != 0;
    while (ok && *at)
        ok = next_item(&at, &it) && (b->kind == CPU_BIND_MAP ? cpu_of(&it, &cpu) : is_mask(&it));
    return ok;
}

#define IS(s, n, ...) str_is_one_of(s, n, (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

int cpu_bind_parse(const char *text, struct cpu_bind_ask *out) {
    struct cpu_bind_ask b = {0};
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",:");
        if (at[n] == ':' && IS(at, n, "map_cpu", "mask_cpu", "map", "mask")) {
            b.kind = at[1] == 'a' && (at[2] | 0x20) == 'p' ? CPU_BIND_MAP : CPU_BIND_MASK;
            b.list = at + n + 1;
            if (!is_list(&b))
                return E_SYNTAX;
            break;
        }
        if (at[n] == ':' && !IS(at, n, "map_ldom", "mask_ldom"))
            return E_SYNTAX;
        if (IS(at, n, "v", "verbose"))
            b.verbose = true;
        else if (IS(at, n, "rank"))
            b.kind = CPU_BIND_RANK;
        else if (IS(at, n, "no", "none"))
            b.kind = CPU_BIND_NONE;
        else if (IS(at, n, "threads", "cores", "sockets", "ldoms", "boards", "rank_ldom", "map_ldom", "mask_ldom", "one_thread"))
            b.kind = CPU_BIND_LATER;
        else if (IS(at, n, "help"))
            b.is_help = true;
        else if (!IS(at, n, "q", "quiet"))
            return E_SYNTAX;
        if (at[n] == ':')
            break;
        at += n + (at[n] == ',');
    }
    *out = b;
    return 0;
}

/* The item of a list that is the task's. */
static struct item item_of(const struct cpu_bind_ask *b, uint32_t local) {
    struct item it = {0};
    uint32_t all = 0;
    for (const char *at = b->list; *at && next_item(&at, &it);)
        all += it.times;
    uint32_t left = all ? local % all : 0;
    for (const char *at = b->list; *at && next_item(&at, &it); left -= it.times)
        if (left < it.times)
            break;
    return it;
}

static uint32_t mask_cpus(const struct item *it, uint32_t *cpus) {
    struct item d = digits_of(it);
    uint32_t n = 0;
    for (size_t i = d.n; i-- > 0;) {
        char c = d.text[i];
        uint32_t value = c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a' + 10);
        for (uint32_t bit = 0; bit < 4; bit++)
            if (value >> bit & 1)
                cpus[n++] = (uint32_t)(d.n - 1 - i) * 4 + bit;
    }
    return n;
}

void cpu_bind_task(const struct cpu_bind_ask *b, uint32_t local, struct arena *a, const uint32_t **out, uint32_t *out_n) {
    *out = NULL;
    *out_n = 0;
    if (b->kind == CPU_BIND_NONE || b->kind == CPU_BIND_LATER)
        return;
    struct item it = b->kind == CPU_BIND_RANK ? (struct item){0} : item_of(b, local);
    uint32_t *cpus = arena_calloc(a, it.n * 4 + 1, sizeof(*cpus));
    *out_n = 1;
    if (b->kind == CPU_BIND_RANK)
        cpus[0] = local;
    else if (b->kind == CPU_BIND_MAP)
        *out_n = cpu_of(&it, cpus);
    else
        *out_n = mask_cpus(&it, cpus);
    *out = cpus;
}
