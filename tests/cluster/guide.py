# SPDX-License-Identifier: Apache-2.0
"""Plays a page of docs/user or docs/admin against a real cluster, as somebody who types it from the top to the end.

    ```console              commands behind a prompt, and what they print (docs/developer/testing.md has the rules)
    ```console not run: WHY nothing is run
    ```sh FILE, ```toml FILE, ```text FILE   a file that the commands behind it use
"""
import os
import pathlib
import pwd
import queue
import re
import shlex
import subprocess
import threading
import time

import hacluster
import spurtest

REPO = pathlib.Path(__file__).resolve().parents[2]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
TAKES = r"(?:\d+-)?\d+:\d\d(?::\d\d)?(?:\.\d+)?"
BIND = re.compile(r"(?:^|Submitted batch job |[Jj]ob allocation |^srun: job )(\d{3,})\b")
LOOKS = re.compile(r"(?:\w+=\S+ )*(?:squeue|sinfo|sacct|sprio|cat|sort|ls|grep|tail|head|spur why|spur queue|spur nodes|spur history|scontrol (?:-o )?show|spur controller list|journalctl|wc)\b")
SHELLS = re.compile(r"salloc(?: -\S+(?: \d+)?)*$|(?:salloc|srun) .*\bbash$")


TERMINAL = 'import pty, sys; sys.exit(pty.spawn(["sh", "-c", sys.argv[1]]) >> 8)'


class Block:
    def __init__(self, kind, info, lines, line):
        self.kind, self.info, self.lines, self.line = kind, info, lines, line

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    def steps(self):
        """(prompt, command, [line of output]) of a console block."""
        out = []
        for line in self.lines:
            if m := re.match(r"(\$|#|\w+#) (.*)", line):
                out.append([m[1], m[2], []])
            elif line.startswith("> ") or line == ">":
                out[-1][1] += "\n" + line[2:]
            else:
                assert out, f"line {self.line}: output before the first command: {line}"
                out[-1][2].append(line)
        return out


def blocks(path):
    out, inside = [], None
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if inside is None and (m := re.match(r"```(\w*) ?(.*)$", line)):
            inside = Block(m[1], m[2], [], n)
        elif inside is not None and line == "```":
            out.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
    assert inside is None, f"{path}: a block is not closed"
    return out


class Shell:
    """One bash for the whole page: directories, variables and a shell that salloc opened stay."""

    def __init__(self, cluster, env, cwd, uid=None):
        user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", env=env, cwd=cwd, start_new_session=True, **user)
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()

    def run(self, command, timeout=40.0):
        """(exit code, output)"""
        opens = SHELLS.match(command)
        if " --pty " in command:  # at a terminal
            command = f"python3 -c {shlex.quote(TERMINAL)} {shlex.quote(command)}"
        self.process.stdin.write(f"{command}\n" if opens else "{\n" + command + "\n} </dev/null\n")
        self.process.stdin.write("printf '\\n@end %d@\\n' $?\n")
        self.process.stdin.flush()
        out, end = [], time.monotonic() + timeout * spurtest.PATIENCE
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise spurtest.Failed(f"{command}\ndoes not come back; so far:\n{''.join(out)}") from None
            if m := re.match(r"@end (\d+)@", line):
                return int(m[1]), "".join(out).rstrip("\n")
            out.append(line.replace("\r", ""))

    def close(self):
        self.process.kill()


def cluster(**how):
    """Not started yet; its spur.conf is where a page may write it."""
    c = spurtest.Cluster(**how)
    (c.root / "etc").mkdir()
    c.conf_path = c.conf_path.rename(c.root / "etc" / "spur.conf")
    return c


class Player:
    def __init__(self, cluster):
        self.cluster, self.ids, self.shells = cluster, {}, {}
        c = cluster
        self.etc = c.root / "etc"
        self.home = c.work / "home"
        for path in (self.etc, self.home):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        self.uid = spurtest.NOBODY if os.geteuid() == 0 else None
        self.user = pwd.getpwuid(os.geteuid() if self.uid is None else self.uid).pw_name

    def places(self):
        """What the page says, and what it is here."""
        c = self.cluster
        return [("/etc/spur", str(self.etc)), ("/var/spool/spur", str(c.state)), ("/home/alice", str(self.home)), ("http://head:6817", f"http://127.0.0.1:{c.port}"), ("head:6817", f"127.0.0.1:{c.port}"),
                ("alice", self.user)]

    def here(self, text):
        for said, real in self.places():
            text = text.replace(said, real)
        for said, real in self.ids.items():
            text = re.sub(rf"(?<!\d){said}(?!\d)", f"\0{real}\0", text)
        return text.replace("\0", "")

    def shell(self, prompt):
        role = "$" if prompt == "$" else "#"
        if role not in self.shells:
            uid = self.uid if role == "$" else None
            env = {**self.cluster.env, "SPUR_CONF": str(self.cluster.conf_path), "HOME": str(self.home), "SHELL": "/bin/bash", "USER": self.user, "LANG": "C.UTF-8"}
            self.shells[role] = Shell(self.cluster, env, self.home, uid)
        return self.shells[role]

    def close(self):
        for shell in self.shells.values():
            shell.close()

    def pattern(self, lines):
        """A regular expression of output as the page shows it, and the ids that it is the first to show."""
        out, fresh = [], []
        for line in lines:
            if line.strip() in ("…", "..."):
                out.append(r"(?:.*\n)*?")
                continue
            if (m := BIND.search(line)) and m[1] not in self.ids and m[1] not in fresh:
                fresh.append(m[1])
                line = line.replace(m[1], "\1", 1)
            text = re.escape(re.sub(r"\s+", " ", self.here(line.strip())))
            text = text.replace("\1", r"(\d+)").replace(r"\…", ".*").replace("…", ".*").replace(r"\ ", " ").replace(" .* ", " (?:.* )?")
            text = re.sub(r"\d{4}\\-\d\d\\-\d\dT\d\d:\d\d:\d\d", lambda _: TIME, text)
            text = re.sub(r"(?<![\d:])(?:\d+\\-)?\d+:\d\d(?::\d\d)?(?![\d:])", lambda _: TAKES, text)
            out.append(rf"{text} ?\n")
        return "".join(out), fresh

    def step(self, prompt, command, want):
        real = self.here(command)
        if m := re.match(r"systemctl (start|stop|restart|enable --now) (spurctld|spurd)$", command):
            return self.systemctl(prompt, m[1], m[2])
        fails = "||" not in command and any(re.match(r"\w+: (?:error|fatal)|error:", line) for line in want)
        end = time.monotonic() + 20 * spurtest.PATIENCE
        while True:
            rc, got = self.shell(prompt).run(real)
            pattern, fresh = self.pattern(want)
            plain = "".join(re.sub(r"\s+", " ", line).strip() + "\n" for line in got.splitlines())
            found = re.fullmatch(pattern, plain) if want else re.fullmatch(r"(?s).*", got)
            if found and (rc != 0) == fails:
                self.ids.update(zip(fresh, found.groups()))
                return None
            if not LOOKS.match(command) or time.monotonic() > end:
                shown = "\n".join(want) if want else "(anything)"
                raise spurtest.Failed(f"{prompt} {command}\nreturned {rc}, and printed\n{got}\n---- the page says ----\n{shown}\n----\n{pattern}\n{self.cluster.logs(12)}")
            time.sleep(0.1)

    def systemctl(self, prompt, verb, program):
        daemon = self.cluster.ctld if program == "spurctld" else self.cluster.nodes[prompt.rstrip("#")]
        if verb in ("stop", "restart"):
            daemon.stop()
        if verb != "stop" and not daemon.running():
            daemon.start()
        if program == "spurctld" and daemon.ready:
            self.cluster.port = int(daemon.ready["listen"])

    def file(self, block):
        path = pathlib.Path(self.here(block.info))
        path = path if path.is_absolute() else self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(block.text) if path.suffix in (".conf", ".toml") else block.text)
        path.chmod(0o755)
        if self.uid is not None and path.is_relative_to(self.home):
            os.chown(path, self.uid, self.uid)

    def play(self, page):
        for block in blocks(page):
            if block.kind == "console" and not block.info:
                for prompt, command, want in block.steps():
                    try:
                        self.step(prompt, command, want)
                    except spurtest.Failed as e:
                        raise spurtest.Failed(f"{page.relative_to(REPO)}, block at line {block.line}: {e}") from None
            elif block.kind in ("sh", "toml", "text") and block.info:
                self.file(block)


class HACluster(hacluster.HACluster):
    """Each member has a directory of configurations of its own, as machines have. Not started: the page does it."""

    def __init__(self, **how):
        super().__init__(**how)
        (self.root / "backup").mkdir()

    def conf_of(self, i):
        (self.root / f"etc{i}").mkdir(exist_ok=True)
        return self.root / f"etc{i}" / "spur.conf"


class HAPlayer(Player):
    """Prompts `ctlN#` are on the machine of controller N, `$` and files are on that of the first."""

    at = 1

    def places(self):
        c = self.cluster
        log = c.members[self.at].log_path
        return [("journalctl -u spurctld", f"cat {log}"), ("/etc/spur", str(c.conf_of(self.at).parent)), ("/var/spool/spur", str(c.state_of_member[self.at])),
                ("/backup", str(c.root / "backup"))]

    def step(self, prompt, command, want):
        self.at = int(prompt[3:-1]) if prompt.startswith("ctl") else 1
        return super().step(prompt, command, want)

    def shell(self, prompt):
        if prompt not in self.shells:
            c = self.cluster
            env = {**c.env, **c.first(self.at), "SPUR_CONF": str(c.conf_of(self.at)), "HOME": str(self.home), "LANG": "C.UTF-8"}
            self.shells[prompt] = Shell(c, env, self.home, self.uid if prompt == "$" else None)
        return self.shells[prompt]

    def systemctl(self, prompt, verb, program):
        daemon = self.cluster.members[self.at]
        if verb in ("stop", "restart"):
            self.be_patient()
        if verb in ("stop", "restart"):
            daemon.stop()
        if verb != "stop" and not daemon.running():
            daemon.spawn()  # it may well not come up: the page looks

    def be_patient(self):
        """As an administrator who has read that one waits until no controller is a spare: for a while, where that can come about."""
        end = time.monotonic() + 8 * spurtest.PATIENCE
        while time.monotonic() < end:
            said = self.cluster.run("spur controller list", check=False, env=self.cluster.first(1)).stdout
            rows = [line.split() for line in said.splitlines()[1:]]
            if rows and all(r[2] in ("leader", "follower") and r[3] == "UP" and r[5] != "0" for r in rows) and len({r[4] for r in rows}) == 1:
                return
            time.sleep(0.2)
