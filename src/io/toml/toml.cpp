/* SPDX-License-Identifier: Apache-2.0
 *
 * toml++ behind one C function. Its tables are sorted by name; the tree is put back into the file's order by the
 * positions of the keys, so that messages and samples read as the file does.
 *
 * Nesting is bounded before parsing: a key of a thousand dotted parts would make a tree as deep, and freeing it is a
 * recursion inside the library. Arrays and inline tables are bounded by the library itself.
 */
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

extern "C" {
#include "base/arena.h"
#include "base/err.h"
#include "base/tree.h"
}
#include "io/toml/toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace {

constexpr size_t TEXT_MAX = 1 << 20;
constexpr int DEPTH_MAX = 32;

struct converter {
    struct arena *arena;
    struct err *e;
    int rc = 0;

    void fail(uint32_t line, const char *what) {
        if (!rc)
            rc = err_set(e, E_CONFIG, "line %u: %s", line, what);
    }

    const char *text(std::string_view s, uint32_t line) {
        if (s.find('\0') != s.npos)
            fail(line, "a NUL character in a text");
        return arena_strndup(arena, s.data(), s.size());
    }

    struct tree *node(enum tree_kind kind, uint32_t line) {
        auto *t = static_cast<struct tree *>(arena_calloc(arena, 1, sizeof(struct tree)));
        t->kind = kind;
        t->line = line;
        return t;
    }

    void adopt(struct tree *t, const std::vector<struct tree *> &children) {
        t->n_children = children.size();
        t->child = static_cast<struct tree **>(arena_alloc(arena, (children.size() + 1) * sizeof(*t->child)));
        std::copy(children.begin(), children.end(), t->child);
    }

    struct tree *table(const toml::table &from, uint32_t line, int depth) {
        struct entry {
            toml::source_position at;
            struct tree *t;
        };
        std::vector<entry> entries;
        for (auto &&[key, value] : from) {
            toml::source_position at = key.source().begin;
            struct tree *child = convert(value, at.line, depth + 1);
            if (rc)
                return nullptr;
            child->key = text(key.str(), at.line);
            entries.push_back({at, child});
        }
        std::sort(entries.begin(), entries.end(), [](const entry &a, const entry &b) {
            return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
        });
        std::vector<struct tree *> children;
        for (const entry &x : entries)
            children.push_back(x.t);
        struct tree *t = node(TREE_TABLE, line);
        adopt(t, children);
        return t;
    }

    struct tree *array(const toml::array &from, uint32_t line, int depth) {
        std::vector<struct tree *> children;
        for (auto &&value : from) {
            children.push_back(convert(value, value.source().begin.line, depth + 1));
            if (rc)
                return nullptr;
        }
        struct tree *t = node(TREE_ARRAY, line);
        adopt(t, children);
        return t;
    }

    struct tree *convert(const toml::node &from, uint32_t line, int depth) {
        if (depth > DEPTH_MAX) {
            fail(line, "nested too deeply");
            return nullptr;
        }
        if (auto *x = from.as_table())
            return table(*x, line, depth);
        if (auto *x = from.as_array())
            return array(*x, line, depth);
        struct tree *t = node(TREE_OTHER, line);
        if (auto *x = from.as_string()) {
            t->kind = TREE_STRING;
            t->string = text(x->get(), line);
        } else if (auto *x = from.as_integer()) {
            t->kind = TREE_INTEGER;
            t->integer = x->get();
        } else if (auto *x = from.as_floating_point()) {
            t->kind = TREE_FLOAT;
            t->number = x->get();
        } else if (auto *x = from.as_boolean()) {
            t->kind = TREE_BOOL;
            t->truth = x->get();
        }
        return t;
    }
};

/* Behind the text that opens at s[i]; newlines in it are counted. */
size_t skip_text(std::string_view s, size_t i, uint32_t *line) {
    char quote = s[i];
    bool is_long = i + 2 < s.size() && s[i + 1] == quote && s[i + 2] == quote;
    for (i += is_long ? 3 : 1; i < s.size(); i++) {
        if (s[i] == '\n') {
            if (!is_long)
                return i;
            ++*line;
        } else if (s[i] == '\\' && quote == '"') {
            i += i + 1 < s.size() && s[i + 1] != '\n';
        } else if (s[i] == quote) {
            if (!is_long)
                return i + 1;
            if (i + 2 < s.size() && s[i + 1] == quote && s[i + 2] == quote)
                return i + 3;
        }
    }
    return i;
}

/* Whether a key has more dots than DEPTH_MAX; the line is that of the key. */
bool has_deep_key(std::string_view s, uint32_t *line) {
    int dots = 0;
    *line = 1;
    for (size_t i = 0; i < s.size();) {
        switch (s[i]) {
        case '"':
        case '\'':
            i = skip_text(s, i, line);
            continue;
        case '#':
            while (i < s.size() && s[i] != '\n')
                i++;
            continue;
        case '\n':
            ++*line;
            [[fallthrough]];
        case '=':
        case ',':
        case '[':
        case '{':
            dots = 0;
            break;
        case '.':
            if (++dots > DEPTH_MAX)
                return true;
            break;
        default:
            break;
        }
        i++;
    }
    return false;
}

} // namespace

extern "C" int toml_parse(const char *text, size_t n, struct arena *a, struct tree **out, struct err *e) {
    uint32_t line;
    if (n > TEXT_MAX)
        return err_set(e, E_TOO_BIG, "the configuration is larger than 1 MiB");
    std::string_view whole(text, n);
    if (has_deep_key(whole, &line))
        return err_set(e, E_CONFIG, "line %u: a key of too many parts", line);
    toml::parse_result parsed = toml::parse(whole);
    if (!parsed) {
        std::string_view why = parsed.error().description();
        return err_set(e, E_CONFIG, "line %u: %.*s", (unsigned)parsed.error().source().begin.line, (int)why.size(),
                       why.data());
    }
    converter c{a, e};
    struct tree *root = c.convert(parsed.table(), 1, 0);
    if (c.rc)
        return c.rc;
    *out = root;
    return 0;
}
