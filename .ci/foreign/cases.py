"""Cases for `kgen run`, in the form of testdata/ptx/foreign/README.md, and what they gave."""

import dataclasses
import json
import os
import re
import resource
import subprocess

import numpy as np

DTYPES = {"f16": "<f2", "bf16": "<u2", "f32": "<f4", "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8"}


def bits(x, kind):
    """An array as a case's file holds it: bf16 as its bits, rounded to nearest even."""
    if kind != "bf16":
        return np.ascontiguousarray(x, dtype=DTYPES[kind])
    u = np.ascontiguousarray(x, dtype="<f4").view("<u4").astype(np.uint64)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype("<u2")


def values(x, kind):
    """What an array of bits stands for, in float64."""
    if kind == "bf16":
        return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return x.astype(np.float64)


class Buffer:
    """A buffer: contents, or a shape that was never written, and what it must hold at the end."""

    def __init__(self, kind, data=None, shape=None, want=None):
        self.kind, self.shape, self.want = kind, shape, want
        self.data = None if data is None else bits(data, kind)

    @property
    def value(self):
        return values(self.data, self.kind)


@dataclasses.dataclass
class Case:
    name: str
    origin: str  # package, version and the kernel's place in it
    arch: str
    ptx: str
    kernel: str
    grid: tuple
    block: tuple
    buffers: list
    args: list  # as case.json has them; buffers by the names b0, b1, ...
    tolerance: tuple  # absolute, relative
    shared: int = 0
    cluster: tuple = (1, 1, 1)
    fault: str = ""  # that the kernel has, as its authors wrote it

    def write(self, folder):
        """Writes the case and returns the name of its case.json."""
        os.makedirs(folder, exist_ok=True)
        buffers = []
        for i, b in enumerate(self.buffers):
            entry = {"name": f"b{i}", "type": b.kind, "align": 256}
            if b.data is None:
                entry["uninitialised"] = int(np.prod(b.shape))
            else:
                entry["buffer"] = f"b{i}.npy"
                np.save(os.path.join(folder, f"b{i}.npy"), b.data)
            if b.want is not None:
                entry["want"] = f"want{i}.npy"
                np.save(os.path.join(folder, f"want{i}.npy"), bits(b.want, b.kind))
            buffers.append(entry)
        with open(os.path.join(folder, "kernel.ptx"), "w") as f:
            f.write(self.ptx)
        launch = {"kernel": self.kernel, "grid": list(self.grid), "block": list(self.block), "dynamic_shared": self.shared, "args": self.args}
        if tuple(self.cluster) != (1, 1, 1):
            launch["cluster"] = list(self.cluster)
        text = {
            "ptx": "kernel.ptx",
            "buffers": buffers,
            "launches": [launch],
            "tolerance": {"absolute": self.tolerance[0], "relative": self.tolerance[1]},
            "note": self.origin,
        }
        file = os.path.join(folder, "case.json")
        with open(file, "w") as f:
            json.dump(text, f, indent=1)
            f.write("\n")
        return file

    def run(self, kgen, folder, timeout):
        """Runs the case under two timings; a row of the table."""
        file = self.write(folder)
        results, seconds = [], []
        for flags in ([], ["--schedule", "random", "--async", "random", "--seed", "1"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.run([kgen, "run", file, "--json", *flags], capture_output=True, text=True, timeout=timeout)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            if out.returncode not in (0, 3):
                return Row(self, error=out.stderr.strip().splitlines()[-1] if out.stderr else f"exit code {out.returncode}")
            results.append(json.loads(out.stdout))
        return Row(self, results=results, seconds=seconds[0])


@dataclasses.dataclass
class Row:
    """What a case gave. seconds are of the processor, the whole command's."""

    case: Case
    results: list = None
    seconds: float = 0
    error: str = ""

    @property
    def right(self):
        return self.results is not None and all(b["mismatches"] == 0 for r in self.results for b in r["buffers"])

    @property
    def faults(self):
        return sorted({f["class"] for r in self.results for f in r["faults"]}) if self.results else []

    @property
    def good(self):
        """Whether the case gave what it should: of a faulty one the numbers don't matter."""
        if self.case.fault:
            return self.faults == [self.case.fault]
        return self.right and not self.faults

    def line(self):
        c = self.case
        if self.error:
            return f"| {c.name} | {c.origin} | {c.arch} | {self.error.replace('|', ' ')} | | | | |"
        counters = self.results[0]["counters"]
        threads = sum(p["thread"] for p in counters["instructions"].values())
        operations = sum(t["operations"] for t in counters["tensor"] or [])
        speed = ""
        if operations:
            speed = f"{operations / self.seconds / 1e9:.2f} GFLOP/s"
        elif threads > 1e6:
            speed = f"{threads / self.seconds / 1e6:.0f} M/s"
        right = "yes" if self.right else "**no**"
        silent = "yes" if not self.faults else "**" + ", ".join(self.faults) + "**"
        return f"| {c.name} | {c.origin} | {c.arch} | {right} | {silent} | {threads} | {operations or ''} | {speed} |"


def only(ptx, kernel):
    """A text's part that a kernel needs: other kernels, their variables and debugging sections left out."""
    version = re.search(r"^\.version.*\n\.target.*\n\.address_size.*\n", ptx, re.M).group(0)
    start = re.search(r"(?:\.visible )?\.entry " + re.escape(kernel) + r"\(", ptx).start()
    depth, end = 0, ptx.index("{", start)
    for brace in re.finditer(r"[{}]", ptx[end:]):
        depth += 1 if brace.group(0) == "{" else -1
        if depth == 0:
            end += brace.end()
            break
    body = ptx[start:end] + "\n"
    body = re.sub(r"^\s*\.loc.*\n|^\$L__tmp\d+:\n|\s*//[^\n]*$", "", body, flags=re.M)
    kept = []
    for line in re.findall(r"^\.(?:extern|global|shared|const|visible \.global|weak)[^\n{(]*;$", ptx, re.M | re.S):
        name = re.search(r"([\w$]+)(?:\[\d*\])?(?: = .*)?;$", line)
        if name and re.search(re.escape(name.group(1)) + r"\b", body):
            kept.append(line + "\n")
    return version + "".join(kept) + body
