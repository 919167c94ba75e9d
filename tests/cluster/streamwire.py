# SPDX-License-Identifier: Apache-2.0
"""Task streams from their description (docs/format/stream.md), written without looking at the C code; and a spurd whose
controller is the test's own: it makes launches and tickets with a key of its own and takes the reports."""
import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import pwd
import socket
import struct
import subprocess
import time

import grpc
import nacl.signing

import grpcwire
import spurtest
from stepwire import decode, encode

MAGIC = b"SPURSTREAM1\n"
OPEN, WELCOME, REFUSED, DATA, ACK, STARTED, EXIT, DONE, SIGNAL, WINDOW_SIZE, BYE, TEXT, TERMINATE, FILE = range(1, 15)
IN, OUT, ERR = 0, 1, 2
ALL = 0xFFFFFFFF
LAUNCH, ATTACH, COPY = 1, 2, 3

WORDS = {"words": (1, "S")}
LAUNCH_R = {"argv": (1, "S"), "env": (2, "y"), "work_dir": (3, "s"), "std_in": (4, "s"), "std_out": (5, "s"), "std_err": (6, "s"),
            "append": (7, "b"), "pty": (8, "b"), "rows": (9, "u"), "columns": (10, "u"), "umask": (11, "u"), "multi_prog": (13, [WORDS]),
            "kill_on_bad_exit": (14, "b"), "launch_address": (16, "s")}
MARK = {"task": (1, "u"), "number": (2, "u"), "offset": (3, "u")}
OPEN_R = {"ticket": (1, "y"), "signature": (2, "y"), "launch": (3, LAUNCH_R), "have": (4, [MARK]), "resume": (5, "b"), "no_input": (6, "b")}
RECORDS = {
    WELCOME: {"ranks": (1, "U"), "pids": (2, "U"), "have": (3, [MARK]), "window": (4, "u")},
    REFUSED: {"error": (1, "u"), "text": (2, "s")},
    DATA: {**MARK, "bytes": (4, "y")}, ACK: MARK, STARTED: {"task": (1, "u"), "pid": (2, "u")},
    EXIT: {"task": (1, "u"), "wait_status": (2, "u"), "text": (3, "s"), "out_of_memory": (4, "b")},
    DONE: {"wait_status": (1, "u"), "text": (2, "s")}, SIGNAL: {"signal": (1, "u")}, WINDOW_SIZE: {"rows": (1, "u"), "columns": (2, "u")},
    TEXT: {"text": (1, "s")}, OPEN: OPEN_R, BYE: {}, TERMINATE: {},
    FILE: {"path": (1, "s"), "mode": (2, "u"), "force": (3, "b"), "mtime_unix": (4, "i"), "size": (5, "u")},
}
NODE = {"node_id": (1, "u"), "name": (2, "s"), "cpus": (3, "u"), "mem_mb": (4, "u"), "n_tasks": (5, "u"), "ranks": (6, "U")}
SPEC = {"n_tasks": (2, "u"), "cpus_per_task": (5, "u"), "kill_on_bad_exit": (15, "b"), "wait_secs": (16, "u")}
STEP = {"job_id": (1, "u"), "start_no": (2, "u"), "id": (3, "u"), "spec": (4, SPEC), "uid": (5, "u"), "nodes": (7, [NODE])}
JOB_SPEC = {"name": (1, "s"), "uid": (2, "u"), "gid": (3, "u"), "user": (4, "s"), "group": (5, "s")}
GRES = {"name": (1, "s"), "type": (2, "s"), "count": (3, "u"), "indexes": (4, "U")}
JOB_NODE = {"node_id": (1, "u"), "name": (2, "s"), "cpus": (3, "u"), "mem_mb": (4, "u"), "n_tasks": (5, "u"), "gres": (8, [GRES])}
TICKET = {"use": (1, "u"), "job_id": (3, "u"), "start_no": (4, "u"), "step_id": (5, "u"), "uid": (6, "u"),
          "gid": (7, "u"), "user": (8, "s"), "expires_unix": (9, "i"), "step": (10, STEP), "spec": (11, JOB_SPEC),
          "job_nodes": (12, [JOB_NODE]), "cluster_name": (14, "s"), "kill_wait_secs": (15, "u"), "partition": (16, "s")}


class Refused(Exception):
    pass


class Stream:
    """A client of one node. Collects what it is told; `out[task, number]` are the bytes."""

    def __init__(self, port, ticket, signature, launch=None, resume_of=None, timeout=30.0, **more):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.settimeout(timeout * spurtest.PATIENCE)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        old = resume_of
        self.out, self.ended = (old.out, old.ended) if old else ({}, set())
        self.exits, self.pids, self.texts = (old.exits, old.pids, old.texts) if old else ({}, {}, [])
        self.acked, self.done, self.in_acked, self.in_buffer = {}, None, 0, bytearray()
        have = [{"task": t, "number": n, "offset": len(b)} for (t, n), b in self.out.items() if b]
        body = encode(OPEN_R, {"ticket": ticket, "signature": signature, "launch": launch, "have": have, "resume": old is not None, **more})
        self.s.sendall(MAGIC + struct.pack("<IBBH", len(body), 1, OPEN, 0) + body)

    def send(self, kind, **record):
        body = encode(RECORDS[kind], record)
        self.s.sendall(struct.pack("<IBBH", len(body), 1, kind, 0) + body)

    def send_data(self, offset, data, task=ALL):
        self.send(DATA, task=task, number=IN, offset=offset, bytes=data or None)

    def frame(self):
        """The next frame as (type, record); None at the end."""
        while True:
            if len(self.in_buffer) >= 8:
                n, version, kind, zero = struct.unpack_from("<IBBH", self.in_buffer)
                assert (version, zero) == (1, 0)
                if len(self.in_buffer) >= 8 + n:
                    body = bytes(self.in_buffer[8:8 + n])
                    del self.in_buffer[:8 + n]
                    return kind, decode(RECORDS[kind], body)
            got = self.s.recv(1 << 20)
            if not got:
                return None
            self.in_buffer += got

    def take(self):
        """One frame, noted. None at the end."""
        got = self.frame()
        if got is None:
            return None
        kind, r = got
        if kind == REFUSED:
            raise Refused(r["error"], r["text"])
        if kind == WELCOME:
            self.welcome = r
        elif kind == DATA:
            key = (r["task"], r["number"])
            have = self.out.setdefault(key, bytearray())
            assert r["offset"] <= len(have), "a gap"
            have += (r["bytes"] or b"")[len(have) - r["offset"]:]
            if not r["bytes"]:
                self.ended.add(key)
            if len(have) - self.acked.get(key, 0) >= 1 << 16:
                self.acked[key] = len(have)
                self.send(ACK, task=key[0], number=key[1], offset=len(have))
        elif kind == ACK:
            self.in_acked = r["offset"]
        elif kind == STARTED:
            self.pids[r["task"]] = r["pid"]
        elif kind == EXIT:
            self.exits[r["task"]] = r["wait_status"]
        elif kind == TEXT:
            self.texts.append(r["text"])
        elif kind == DONE:
            self.done = r
            self.send(BYE)
        return kind

    def until(self, condition):
        while not condition():
            assert self.take() is not None, "the connection ended"
        return self

    def wait_done(self):
        return self.until(lambda: self.done)

    def text(self, task=0, number=OUT):
        return bytes(self.out.get((task, number), b"")).decode()

    def close(self):
        self.s.close()


class World:
    """spurd with a controller of the test's own."""

    def __init__(self, root, extra=()):
        self.root = pathlib.Path(root)
        self.key = nacl.signing.SigningKey.generate()
        (self.root / "key.pub").write_text(self.key.verify_key.encode().hex() + "\n")
        self.reports, self.step_reports, self.registered, self.refuse_steps = [], [], [], False
        self.extra, self.next_job = list(extra), 100
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.user = pwd.getpwuid(self.uid).pw_name
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers((self,))
        self.controller_port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.start()

    # grpc.GenericRpcHandler
    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        m = grpcwire.messages()
        kinds = {"Register": (m.RegisterRequest, m.RegisterReply), "Heartbeat": (m.HeartbeatRequest, m.HeartbeatReply),
                 "Report": (m.RunReport, m.Nothing), "StepReport": (m.StepReport, m.Nothing)}
        request, reply = kinds[name]
        return grpc.unary_unary_rpc_method_handler(lambda q, c: self.answer(name, q, c, reply), request.FromString,
                                                   lambda r: r.SerializeToString())

    def answer(self, name, q, context, reply):
        if name == "Register":
            self.registered.append(q)
            return reply(node_id=1, controller_key=self.key.verify_key.encode(), heartbeat_ms=200, cluster_name="test")
        if name == "Report":
            self.reports.append(q)
        if name == "StepReport":
            if self.refuse_steps:
                context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
            self.step_reports.append(q)
        return reply()

    def start(self):
        before = len(self.registered)
        self.process = subprocess.Popen(
            [str(spurtest.BIN / "spurd"), f"--controller=127.0.0.1:{self.controller_port}", f"--listen=127.0.0.1:{self.port}", "-N", "n1",
             "--state-dir", str(self.root / "state"), "--controller-key", str(self.root / "key.pub"), "--log-level", "debug", *self.extra],
            stderr=open(self.root / "spurd.log", "ab"), env={**os.environ, "SPUR_TEST_ROOT": str(self.root)})
        spurtest.wait_for(lambda: len(self.registered) > before, what="the registration")

    def kill(self, signo=9):
        self.process.send_signal(signo)
        self.process.wait(10)

    def close(self):
        for job in range(101, self.next_job + 1):
            with contextlib.suppress(Exception):
                self.terminate(job, 0)
        with contextlib.suppress(Exception):
            spurtest.wait_for(lambda: not any((self.root / "state" / "runs").iterdir()), 5)
        self.kill(15)
        self.server.stop(0)
        for pid, _, environ in spurtest.processes():
            if f"SPUR_TEST_ROOT={self.root}".encode() in environ.split(b"\0"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)

    def call(self, name, message, job_id):
        proof = grpcwire.launch_proof(self.key, f"/spur.v1.Agent/{name}", "n1", job_id, 1, self.uid, message)
        with grpcwire.Peer(f"127.0.0.1:{self.port}", proof) as peer:
            return peer.call("Agent", name, message)

    def job(self, script=None, **more):
        """A job that holds the node (or runs a script)."""
        m = grpcwire.messages()
        self.next_job += 1
        q = m.LaunchRequest(job_id=self.next_job, start_no=1, node_name="n1", node_index=0, kill_wait_secs=1)
        q.spec.uid, q.spec.gid, q.spec.user, q.spec.name, q.spec.work_dir = self.uid, self.gid, self.user, "test", str(self.root)
        q.spec.umask = 0o22 + 1
        if script:
            q.script = f"#!/bin/bash\n{script}\n".encode()
        else:
            q.spec.more.interactive = True
        node = q.nodes.add(node_id=1, name="n1", cpus=8, mem_mb=more.get("mem_mb", 0), n_tasks=1)
        for index in more.get("gpus", []):
            node.gres.add(name="gpu", count=1, indexes=[index])
        if "array" in more:
            q.array.job_id, q.array.task = more["array"]
            q.spec.more.array = "3-9:2"
            for task in range(3, 10, 2):
                q.spec.more.array_ranges.add(first=task, last=task)
        self.call("Launch", q, self.next_job)
        return self.next_job

    def terminate(self, job, wait=1, step=None):
        m = grpcwire.messages()
        q = m.TerminateRequest(job_id=job, start_no=1, kill_wait_secs=wait, node_name="n1", uid=self.uid, step_id=0 if step is None else step + 1)
        return self.call("Terminate", q, job)

    def ticket(self, job, step=0, n_tasks=1, use=LAUNCH, key=None, expires=60, spec=None, node_name="n1", **more):
        ranks = list(range(n_tasks))
        k = {"use": use, "job_id": job, "start_no": 1, "step_id": step, "uid": self.uid, "gid": self.gid, "user": self.user,
             "expires_unix": int(time.time()) + expires, "kill_wait_secs": 1, "cluster_name": "test", "partition": "debug",
             "spec": {"name": "test", "uid": self.uid, "gid": self.gid, "user": self.user, "group": "g"},
             "job_nodes": [{"node_id": 1, "name": "n1", "cpus": 8, "n_tasks": 1}],
             "step": {"job_id": job, "start_no": 1, "id": step, "uid": self.uid, "spec": {"n_tasks": n_tasks, **(spec or {})},
                      "nodes": [{"node_id": 1, "name": "n1", "cpus": 2, "n_tasks": n_tasks, "ranks": ranks}]}, **more}
        k["step"] = k.pop("step_record", k["step"])
        raw = encode(TICKET, k)
        text = f"spur-ticket-v2\n{node_name}\n{hashlib.blake2b(raw, digest_size=32).hexdigest()}\n"
        return raw, (key or self.key).sign(text.encode()).signature

    def launch_record(self, *argv, **more):
        env = {"PATH": os.environ["PATH"], "SPUR_TEST_ROOT": str(self.root), **more.pop("env", {})}
        return {"argv": list(argv), "env": b"".join(f"{k}={v}\0".encode() for k, v in env.items()), "work_dir": str(self.root),
                "umask": 0o22 + 1, "launch_address": "127.0.0.1", **more}

    def run(self, job, *argv, step=0, n_tasks=1, spec=None, **more):
        """Launches a step and returns its stream."""
        raw, signature = self.ticket(job, step, n_tasks, spec=spec)
        s = Stream(self.port, raw, signature, self.launch_record(*argv, **more))
        s.proof = raw, signature
        return s

    def again(self, s):
        return Stream(self.port, *s.proof, resume_of=s)

    def report_of(self, job, step=0):
        return next((r for r in self.step_reports if r.job_id == job and r.step_id == step), None)

    def wait_report(self, job, step=0):
        return spurtest.wait_for(lambda: self.report_of(job, step), what="the step's report")
