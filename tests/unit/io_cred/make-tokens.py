#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tokens.h: tokens made with Python's own hmac, so that our code is not measured by itself.

Each differs in one thing from a token that is accepted. Run: ./make-tokens.py > tokens.h
"""
import base64
import hashlib
import hmac
import json

KEY = b"0123456789abcdef0123456789abcdef"
OTHER_KEY = b"another key of enough length...."
NOW = 1700000000
END = NOW + 3600
HS256 = {"alg": "HS256", "typ": "JWT"}
ALICE = {"exp": END, "iat": NOW, "sun": "alice"}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value):
    return b64((value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode())


def token(header, claims, key=KEY, digest=hashlib.sha256):
    signed = part(header) + "." + part(claims)
    return signed + "." + b64(hmac.new(key, signed.encode(), digest).digest())


def alice(**more):
    return ALICE | more


NONE = part({"alg": "none", "typ": "JWT"}) + "." + part(ALICE) + "."
TOKENS = {
    "SLURM": token(HS256, ALICE),
    "AMD": token({"typ": "JWT", "alg": "HS256"}, {"sub": "bob", "uid": 1001, "exp": END, "iat": NOW, "admin": True}),
    "BOTH_NAMES": token({"alg": "HS256", "kid": "k2"}, alice(nbf=NOW + 100, sub="other")),
    "FRACTION": token(HS256, alice(exp=END + 0.75)),
    "OTHER_KEY": token(HS256, ALICE, OTHER_KEY),
    "HS512": token(HS256 | {"alg": "HS512"}, ALICE, KEY, hashlib.sha512),
    "HS512_SAID": token(HS256 | {"alg": "HS512"}, ALICE),
    "RS256_SAID": token(HS256 | {"alg": "RS256"}, ALICE),
    "NONE_SAID": token(HS256 | {"alg": "none"}, ALICE),
    "NONE": NONE,
    "NONE_WITH_SIGNATURE": NONE + "AAAA",
    "NO_ALG": token({"typ": "JWT"}, ALICE),
    "CRIT": token(HS256 | {"crit": ["x"], "x": 1}, ALICE),
    "NO_EXP": token(HS256, {"iat": NOW, "sun": "alice"}),
    "EXP_TEXT": token(HS256, alice(exp=str(END))),
    "EXP_ZERO": token(HS256, alice(exp=0)),
    "EXP_HUGE": token(HS256, '{"exp":1e300,"sun":"alice"}'),
    "EXP_NULL": token(HS256, alice(exp=None)),
    "NO_USER": token(HS256, {"exp": END}),
    "EMPTY_USER": token(HS256, alice(sun="")),
    "USER_NUMBER": token(HS256, alice(sun=0, sub="alice")),
    "USER_NUL": token(HS256, '{"exp":%d,"sun":"root\\u0000x"}' % END),
    "USER_LONG": token(HS256, alice(sun="a" * 256)),
    "UID_NEGATIVE": token(HS256, alice(uid=-1)),
    "UID_TEXT": token(HS256, alice(uid="0")),
    "UID_MAX": token(HS256, alice(uid=0xFFFFFFFF)),
    "ADMIN_TEXT": token(HS256, alice(admin="true")),
    "NOT_JSON": token(HS256, "exp=1700003600"),
    "ARRAY": token(HS256, "[1]"),
}

print("/* SPDX-License-Identifier: Apache-2.0")
print(" *")
print(" * Written by make-tokens.py. */")
for name, text in TOKENS.items():
    print(f"#define TOKEN_{name} \\")
    pieces = [text[i:i + 100] for i in range(0, len(text), 100)]
    print(" \\\n".join(f'    "{p}"' for p in pieces))
