"""Compiles the same tiles with Triton and with kgen and writes a table of what came out.

    compare_triton.py KGEN NVDISASM OUTPUT

KGEN is the program, NVDISASM NVIDIA's disassembler, OUTPUT the Markdown file whose table is
written again. Triton's own newest ptxas assembles both. No GPU is needed: both compile
ahead of time.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, m, n, k, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    block = tl.program_id(0)
    across = tl.cdiv(n, BN)
    first = block // (GROUP * across) * GROUP
    height = min(tl.cdiv(m, BM) - first, GROUP)
    row = (first + block % height) * BM + tl.arange(0, BM)
    col = block % (GROUP * across) // height * BN + tl.arange(0, BN)
    step = tl.arange(0, BK)
    x_at = a + row[:, None] * lda + step[None, :]
    y_at = b + step[:, None] * ldb + col[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        x = tl.load(x_at, mask=(row[:, None] < m) & (at + step[None, :] < k), other=0.0)
        y = tl.load(y_at, mask=(at + step[:, None] < k) & (col[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
        x_at += BK
        y_at += BK * ldb
    out = c + row[:, None] * ldc + col[None, :]
    tl.store(out, total.to(tl.bfloat16), mask=(row[:, None] < m) & (col[None, :] < n))


@triton.jit
def attention(q, k, v, o, lse, scale, heads, kv_heads, sq, sk, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    shared = head // (heads // kv_heads)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    dim = tl.arange(0, D)
    q_at = q + ((batch * sq + row[:, None]) * heads + head) * D + dim[None, :]
    queries = tl.load(q_at, mask=row[:, None] < sq, other=0.0)
    top = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    factor = scale * 1.4426950408889634
    end = min(sk, tl.program_id(0) * BM + BM + sk - sq)
    for at in range(0, end, BN):
        col = at + tl.arange(0, BN)
        place = ((batch * sk + col[:, None]) * kv_heads + shared) * D + dim[None, :]
        keys = tl.load(k + place, mask=col[:, None] < sk, other=0.0)
        scores = tl.dot(queries, tl.trans(keys))
        seen = (col[None, :] <= row[:, None] + sk - sq) & (col[None, :] < sk)
        scores = tl.where(seen, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        weights = tl.exp2(scores * factor - (safe * factor)[:, None])
        old = tl.exp2((top - safe) * factor)
        total = total * old + tl.sum(weights, 1)
        values = tl.load(v + place, mask=col[:, None] < sk, other=0.0)
        acc = tl.dot(weights.to(tl.bfloat16), values, acc * old[:, None])
        top = new
    acc = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + ((batch * sq + row[:, None]) * heads + head) * D + dim[None, :], acc.to(tl.bfloat16), mask=row[:, None] < sq)
    log = tl.where(total == 0.0, float("-inf"), top * scale + tl.log(total))
    tl.store(lse + tl.program_id(1) * sq + row, log, mask=row < sq)


POINTERS = {
    "matmul": ("a", "b", "c"),
    "attention": ("q", "k", "v", "o", "lse"),
}
KERNELS = {"matmul": matmul, "attention": attention}
SIZES = {"matmul": ("m", "n", "k", "lda", "ldb", "ldc"), "attention": ("heads", "kv_heads", "sq", "sk")}

# name, kernel, constants, warps, stages by compute capability, kgen's family
ROWS = [
    ("matmul 128x128x64", "matmul", dict(BM=128, BN=128, BK=64), 4, {80: 3, 90: 4}, "gemm"),
    ("matmul 128x256x64", "matmul", dict(BM=128, BN=256, BK=64), 8, {80: 3, 90: 4}, "gemm"),
    ("attention 128x128, head dimension 128, causal", "attention", dict(BM=128, BN=128), 8, {80: 2, 90: 2}, "flashattn"),
]


def by_triton(name, constants, warps, stages, sm):
    """The cubin, the bytes of shared memory and the seconds that compiling took."""
    kernel = KERNELS[name]
    constants = dict(constants, **({"GROUP": 8} if name == "matmul" else {"D": 128}))
    signature, aligned = {}, {}
    for i, arg in enumerate(kernel.arg_names):
        if arg in constants:
            signature[arg] = "constexpr"
        elif arg in POINTERS[name]:
            signature[arg] = "*fp32" if arg == "lse" else "*bf16"
            aligned[(i,)] = [["tt.divisibility", 16]]
        elif arg in SIZES[name]:
            signature[arg] = "i32"
            if name == "matmul":
                aligned[(i,)] = [["tt.divisibility", 16]]
        else:
            signature[arg] = "fp32"
    source = ASTSource(kernel, signature, constants, aligned)
    start = time.monotonic()
    made = triton.compile(source, target=GPUTarget("cuda", sm, 32), options={"num_warps": warps, "num_stages": stages})
    return made.asm["ptx"], made.metadata.shared, time.monotonic() - start


def by_kgen(kgen, family, constants, warps, stages, sm):
    """The same of kgen's own PTX."""
    gpu = {80: "a100", 90: "h100"}[sm]
    settings = dict(constants, warps=warps, stages=stages)
    args = [family, "--gpu", gpu] + [f"--set={k}={v}" for k, v in settings.items()]
    start = time.monotonic()
    ptx = run([kgen, "emit", *args, "--stage", "ptx"])
    emitted = time.monotonic() - start
    out = json.loads(run([kgen, "compile", *args, "--via", "ptxas", "--json"]))
    return ptx, out["kernels"][0]["shared_bytes"], emitted


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def assemble(tools, nvdisasm, ptx, folder):
    """Registers, bytes of spills, the SASS and the seconds, by one assembler for both."""
    arch = re.search(r"\.target (sm_\w+)", ptx).group(1)
    text, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    with open(text, "w") as f:
        f.write(ptx)
    start = time.monotonic()
    made = subprocess.run([os.path.join(tools, "ptxas-blackwell"), "-v", "-arch=" + arch, "-o", cubin, text], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"ptxas for {arch}: {made.stderr}")
    log = made.stderr
    seconds = time.monotonic() - start
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", log))
    registers = int(re.search(r"Used (\d+) registers", log).group(1))
    return registers, spills, run([nvdisasm, "-c", cubin]), seconds


INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+((?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)[^;]*);")
TENSOR = ("HMMA", "HGMMA")


def main_loop(sass):
    """Instructions, and tensor instructions among them, of the innermost loop with the most of these.

    A branch back right behind another branch ends no loop: it comes from the repetition of a
    wait, which ptxas sets aside behind the code.
    """
    code, labels = [], {}
    for line in sass.splitlines():
        if m := re.match(r"^(\.L_x_\d+):", line):
            labels[m.group(1)] = len(code)
        elif m := INSTRUCTION.match(line):
            code.append((m.group(2), m.group(1)))
    best = (0, 0)
    for at, (op, text) in enumerate(code):
        m = re.search(r"\(?(\.L_x_\d+)\)?", text) if op == "BRA" and code[at - 1][0] != "BRA" else None
        start = labels.get(m.group(1), at + 1) if m else at + 1
        if start > at:
            continue
        body = [name for name, _ in code[start : at + 1] if name != "NOP"]
        tensor = sum(name in TENSOR for name in body)
        if (tensor, -len(body)) > (best[1], -best[0]):
            best = (len(body), tensor)
    return best


def main():
    kgen, nvdisasm, output = sys.argv[1:]
    tools = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
        for sm in (80, 90):
            for title, name, constants, warps, stages, family in ROWS:
                ways = {
                    "kgen": by_kgen(kgen, family, constants, warps, stages[sm], sm),
                    "Triton": by_triton(name, constants, warps, stages[sm], sm),
                }
                for way, (ptx, shared, seconds) in ways.items():
                    registers, spills, sass, assembling = assemble(tools, nvdisasm, ptx, folder)
                    body, tensor = main_loop(sass)
                    if way == "kgen":
                        seconds += assembling
                    lines.append(
                        f"| {title}, {warps} warps, {stages[sm]} stages | sm_{sm} | {way} | {registers} | {spills} | {shared} "
                        f"| {body} / {tensor} | {body / tensor:.1f} | {seconds:.2f} |"
                    )
    version = re.search(r"V([\d.]+)", run([os.path.join(tools, "ptxas-blackwell"), "--version"])).group(1)
    with open(output, "r") as f:
        text = f.read()
    head, tail = text.split("<!-- table -->\n")[0], text.split("<!-- end -->\n")[1]
    table = [
        f"Triton {triton.__version__}, ptxas {version}.",
        "",
        "| tile | target | by | registers | spills B | shared B | main loop: instructions / tensor | a tensor instruction | compile s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *lines,
    ]
    with open(output, "w") as f:
        f.write(head + "<!-- table -->\n" + "\n".join(table) + "\n<!-- end -->\n" + tail)


main()
