# SPDX-License-Identifier: Apache-2.0
"""The step protocol from its description (docs/format/step-protocol.md), written without looking at the C code, so that
a change of format fails a test."""
import os
import socket
import struct
import subprocess
import tempfile
import pathlib

import spurtest

# name: (tag, kind); kinds: u (varint), i (zigzag), b (bool), s (text), y (bytes), S (texts), U (packed numbers), a dict (record), [dict] (records)
RLIMIT = {"name": (1, "s"), "soft": (2, "u")}
PLAN = {
    "version": (1, "u"), "job_id": (2, "u"), "start_no": (3, "u"), "node_name": (4, "s"), "uid": (5, "u"), "gid": (6, "u"),
    "groups": (7, "U"), "argv": (8, "S"), "env": (9, "S"), "work_dir": (10, "s"), "std_in": (11, "s"), "std_out": (12, "s"),
    "std_err": (13, "s"), "append": (14, "b"), "umask": (15, "u"), "rlimits": (16, [RLIMIT]), "mem_limit_mb": (17, "u"),
    "containment": (18, "u"), "unkillable_ms": (19, "u"), "kill_wait_ms": (20, "u"), "run_id": (21, "s"), "user": (22, "s"),
}
RESULT = {
    "wait_status": (1, "u"), "out_of_memory": (2, "b"), "never_started": (3, "b"), "node_failed": (4, "b"),
    "drain_node": (5, "b"), "text": (6, "s"), "start_ms": (7, "i"), "end_ms": (8, "i"), "max_rss_kb": (9, "u"),
    "user_cpu_us": (10, "u"), "sys_cpu_us": (11, "u"),
}
STATUS = {
    "job_id": (1, "u"), "start_no": (2, "u"), "state": (3, "u"), "pid": (4, "u"), "batch_pid": (5, "u"), "start_ms": (6, "i"),
    "min_version": (7, "u"), "max_version": (8, "u"), "containment": (9, "s"), "program": (10, "s"), "n_processes": (11, "u"),
}
SIGNAL = {"signal": (1, "u"), "batch_only": (2, "b")}
TERMINATE = {"kill_wait_ms": (1, "u"), "why": (2, "s")}
ERROR = {"error": (1, "u"), "text": (2, "s")}
ENTRY = {
    "kind": (1, "u"), "pid": (2, "u"), "pid_started": (3, "u"), "boot_id": (4, "s"), "cgroups": (5, "S"), "at_ms": (6, "i"),
    "wait_status": (7, "u"), "result": (8, RESULT), "containment": (9, "u"),
}
GET_STATUS, SIGNAL_T, TERMINATE_T, SUBSCRIBE, ACK, OK, STATUS_T, END, ERROR_T = 1, 2, 3, 4, 5, 64, 65, 66, 67
STARTING, RUNNING, ENDING, ENDED = 1, 2, 3, 4
AUTO, V2, V1, PROCESS = 0, 1, 2, 3


def varint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def encode(desc, record):
    out = b""
    for name, (tag, kind) in desc.items():
        v = record.get(name)
        if not v and v != "" or v is None:
            continue
        if isinstance(kind, str) and kind in "uib":
            out += varint(tag << 3) + varint((v << 1) ^ (v >> 63) if kind == "i" else int(v))
            continue
        many = kind in ("S",) or isinstance(kind, list)
        for item in v if many else [v]:
            if kind == "U":
                body = b"".join(varint(n) for n in item)
            elif isinstance(kind, list):
                body = encode(kind[0], item)
            elif isinstance(kind, dict):
                body = encode(kind, item)
            else:
                body = item if isinstance(item, bytes) else item.encode()
            out += varint(tag << 3 | 2) + varint(len(body)) + body
    return out


def decode(desc, data):
    by_tag = {tag: (name, kind) for name, (tag, kind) in desc.items()}
    out = {name: [] if kind in ("S", "U") or isinstance(kind, list) else
           0 if isinstance(kind, str) and kind in "uib" else None for name, (tag, kind) in desc.items()}
    at = 0

    def number():
        nonlocal at
        v = shift = 0
        while True:
            byte = data[at]
            at += 1
            v |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return v

    while at < len(data):
        key = number()
        value = None
        if key & 7 == 0:
            value = number()
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            n = number()
            value = data[at:at + n]
            assert len(value) == n
            at += n
        if key >> 3 not in by_tag:
            continue
        name, kind = by_tag[key >> 3]
        if kind == "i":
            out[name] = value >> 1 ^ -(value & 1)
        elif kind in ("u", "b"):
            out[name] = value
        elif kind == "s":
            out[name] = value.decode()
        elif kind == "U":
            packed, at_in = value, 0
            while at_in < len(packed):
                v = shift = 0
                while True:
                    byte = packed[at_in]
                    at_in += 1
                    v |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        break
                out[name].append(v)
        elif kind == "S":
            out[name].append(value.decode())
        elif isinstance(kind, dict):
            out[name] = decode(kind, value)
        elif isinstance(kind, list):
            out[name].append(decode(kind[0], value))
        else:
            out[name] = value
    return out


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def log_frame(entry):
    body = encode(ENTRY, entry)
    return struct.pack("<II", len(body), crc32c(body)) + body


def read_log(path):
    data, out, at = pathlib.Path(path).read_bytes(), [], 0
    while at + 8 <= len(data):
        n, crc = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + 8 + n]
        if len(body) < n or crc32c(body) != crc:
            break
        out.append(decode(ENTRY, body))
        at += 8 + n
    return out


class Client:
    def __init__(self, run_dir):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20 * spurtest.PATIENCE)
        fd = os.open(run_dir, os.O_PATH)
        try:
            self.socket.connect(f"/proc/self/fd/{fd}/sock")
        finally:
            os.close(fd)

    def send(self, kind, desc=None, version=1, **record):
        body = encode(desc or {}, record)
        self.socket.sendall(struct.pack("<IBBH", len(body), version, kind, 0) + body)

    def recv_exactly(self, n):
        out = b""
        while len(out) < n:
            got = self.socket.recv(n - len(out))
            if not got:
                raise EOFError
            out += got
        return out

    def receive(self):
        n, version, kind, _ = struct.unpack("<IBBH", self.recv_exactly(8))
        assert version == 1
        body = self.recv_exactly(n)
        return kind, decode({STATUS_T: STATUS, END: RESULT, ERROR_T: ERROR}.get(kind, {}), body)

    def ask(self, kind, desc=None, **record):
        self.send(kind, desc, **record)
        return self.receive()

    def close(self):
        self.socket.close()


class Run:
    """One run's directory, and the real step daemon on it."""

    count = 0

    def __init__(self, root, script=None, program=None, **plan):
        Run.count += 1
        self.dir = pathlib.Path(root) / f"{7000 + Run.count}.1"
        self.dir.mkdir(mode=0o711)
        self.job_id = 7000 + Run.count
        self.node = plan.pop("node_name", f"t{os.getpid()}")
        self.out = plan.get("std_out", str(pathlib.Path(root) / f"out.{self.job_id}"))
        uid = plan.get("uid", os.geteuid())
        if script is not None:
            path = self.dir / "slurm_script"
            path.write_text(script if script.startswith("#!") else f"#!/bin/bash\n{script}\n")
            os.chown(path, uid, -1)
            path.chmod(0o700)
            plan.setdefault("argv", [str(path)])
        run_id = f"{self.job_id}.1.{self.node}"
        self.plan = {
            "version": 1, "job_id": self.job_id, "start_no": 1, "node_name": self.node, "uid": uid, "gid": plan.get("gid", os.getegid()),
            "groups": [os.getegid()], "work_dir": str(root), "std_out": self.out, "umask": 0o022, "run_id": run_id, "argv": [],
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin", f"SPUR_RUN_ID={run_id}", f"SPUR_TEST_ROOT={root}", "SLURM_TASK_PID="], **plan,
        }
        self.program = program or step_program()
        (self.dir / "plan").write_bytes(encode(PLAN, self.plan))
        (self.dir / "log").touch(0o600)
        self.pid = None

    def start(self, check=True):
        """Starts the daemon; "ok PID" or "error TEXT"."""
        r, w = os.pipe()

        def ready_on_3():
            os.dup2(w, 3)
            os.set_inheritable(3, True)

        child = subprocess.Popen([self.program, "run", str(self.dir)], pass_fds=(3, w), preexec_fn=ready_on_3)
        os.close(w)
        with os.fdopen(r) as f:
            said = f.read().strip()
        child.wait()
        if said.startswith("ok "):
            self.pid = int(said.split()[1])
        if check:
            assert self.pid, said
        return said

    def client(self):
        return Client(self.dir)

    def entries(self):
        return read_log(self.dir / "log")

    def result(self):
        found = [e["result"] for e in self.entries() if e["kind"] == 4]
        assert len(found) <= 1
        return found[0] if found else None

    def wait_result(self, timeout=20):
        return spurtest.wait_for(self.result, timeout, f"result of {self.dir}")

    def wait_gone(self, timeout=10):
        spurtest.wait_for(lambda: not spurtest.alive(self.pid), timeout, "the step daemon to go")

    def sweep(self):
        return subprocess.run([self.program, "sweep", str(self.dir)], capture_output=True, text=True)

    @property
    def output(self):
        path = pathlib.Path(self.out)
        return path.read_text() if path.exists() else ""

    def wait_output(self, text, timeout=10):
        spurtest.wait_for(lambda: text in self.output, timeout, f"{text!r} in the output; it is {self.output!r}")


def step_program():
    for path in (spurtest.BIN / "spurstepd", spurtest.BUILD / "src" / "spurstepd" / "spurstepd"):
        if path.exists():
            return str(path)
    raise FileNotFoundError("spurstepd is not built")
