# SPDX-License-Identifier: Apache-2.0
"""The keys that tokens are signed with: two at once, and a change of them while jobs run."""
import base64
import hashlib
import json

import pytest

from spurtest import NOBODY
from test_identity import held, jwt, owner, with_auth

pytestmark = pytest.mark.root

OLD, NEW = "the key of last year, long enough", "the key of this year, long enough"


def header(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))


def made(c, **run):
    return c.run("scontrol token", **run).stdout.strip().split("=", 1)[1]


def works(c, token):
    return held(c, token, check=False).returncode == 0


def rewrite(c, lines):
    """The file as a Secret would bring it."""
    text = c.conf_path.read_text()
    kept = [line for line in text.splitlines() if not line.startswith("jwt_key")]
    at = kept.index("[auth]") + 1
    c.conf_path.write_text("\n".join([*kept[:at], *lines, *kept[at:]]) + "\n")


def test_a_token_says_which_key_it_is_of(new_cluster):
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key = "{OLD}"\n'))
    token = made(c)
    assert header(token) == {"alg": "HS256", "typ": "JWT", "kid": hashlib.blake2b(OLD.encode(), digest_size=32).hexdigest()[:16]}
    assert works(c, token)


def test_the_key_changes_while_jobs_run(new_cluster):
    c = new_cluster(**with_auth("required", f'jwt_key = "{OLD}"\n'))
    running = c.batch("sleep 1000")
    c.wait_state(running, "RUNNING")
    ours, slurms = made(c), jwt(key=OLD, sun="nobody")
    rewrite(c, [f'jwt_key = "{NEW}"', f'jwt_key_old = "{OLD}"'])
    assert not works(c, jwt(key=NEW, sun="nobody")), "it was not told yet"
    c.run("scontrol reconfigure")
    for token in (ours, slurms, jwt(key=NEW, sun="nobody"), jwt(key=NEW, sun="nobody", uid=NOBODY)):
        assert works(c, token)
    new = made(c)
    assert header(new)["kid"] != header(ours)["kid"] and works(c, new), "new ones are of the new key"
    # The agent takes what this controller launches and ends, before and after the next start.
    c.wait_state(c.batch("true"), "COMPLETED")
    rewrite(c, [f'jwt_key = "{NEW}"'])
    c.run("scontrol reconfigure")
    assert works(c, new) and not works(c, ours) and not works(c, slurms)
    got = c.run("squeue", env=c.tcp_env(ours), check=False)
    assert got.returncode != 0
    assert header(ours)["kid"] in c.ctld.log, "whoever looks why can see of which key it was"
    c.ctld.restart()
    c.wait_state(c.batch("true"), "COMPLETED")
    c.run(["scancel", str(running)])
    c.wait_state(running, "CANCELLED")
    for key in (OLD, NEW):
        assert key not in c.ctld.log


def test_a_key_file_is_read_again(new_cluster, tmp_path):
    path = tmp_path / "jwt.key"
    path.write_text(OLD)
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key_file = "{path}"\n'))
    assert works(c, jwt(key=OLD, sun="nobody"))
    path.write_text(NEW)
    c.run("scontrol reconfigure")
    assert works(c, jwt(key=NEW, sun="nobody")) and not works(c, jwt(key=OLD, sun="nobody"))


def test_an_old_key_s_file_is_read_too(new_cluster, tmp_path):
    path = tmp_path / "old.key"
    path.write_text(OLD)
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key = "{NEW}"\n'))
    assert not works(c, jwt(key=OLD, sun="nobody"))
    rewrite(c, [f'jwt_key = "{NEW}"', f'jwt_key_old_file = "{path}"'])
    c.run("scontrol reconfigure")
    assert works(c, jwt(key=OLD, sun="nobody")) and works(c, jwt(key=NEW, sun="nobody"))


def test_a_bad_key_changes_nothing(new_cluster, tmp_path):
    path = tmp_path / "jwt.key"
    path.write_text(OLD)
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key_file = "{path}"\n'))
    for how in (lambda: path.write_text("short"), path.unlink):
        how()
        got = c.run("scontrol reconfigure", check=False)
        assert got.returncode != 0 and "jwt_key" in got.stderr
        assert works(c, jwt(key=OLD, sun="nobody"))
    rewrite(c, [f'jwt_key_old = "{OLD}"'])
    got = c.run("scontrol reconfigure", check=False)
    assert got.returncode != 0 and "jwt_key_old" in got.stderr and works(c, jwt(key=OLD, sun="nobody"))


@pytest.mark.parametrize("claims, who", [
    ({"sun": "nobody"}, "nobody"), ({"sub": "nobody"}, "nobody"), ({"sub": "nobody", "uid": NOBODY}, "nobody"),
    ({"sub": "nosuchuserhere", "uid": 4321}, "nosuchuserhere"), ({"sun": "nobody", "sub": "root"}, "nobody"),
    ({"sub": "nobody", "uid": 0}, None), ({"sub": "nosuchuserhere"}, None), ({"sun": "nobody", "uid": -1}, None), ({"uid": 0}, None)])
def test_claims_of_slurm_and_of_amd_spur(new_cluster, claims, who):
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key = "{OLD}"\n'))
    got = held(c, jwt(key=OLD, **claims), check=False)
    if who is None:
        assert got.returncode != 0 and c.queue("-t", "all") == {}
    else:
        assert owner(c, got.stdout) == who
