"""Cases of CuTe's tutorial products: NVIDIA's own programs from the nvidia-cutlass package,
compiled by nvcc, linked with capture.cpp instead of the CUDA runtime, and run up to their
first launch of the kernel."""

import dataclasses
import os
import re
import subprocess

import numpy as np

from cases import Buffer, Case

TUTORIALS = "examples/cute/tutorial"

# program, architecture, arguments, A's and B's type, C's, tolerance. M, N, K and whether A
# and B lie along M and N (N T) or along K (T N); D = A B^T, stored along M except sm_100's.
PROGRAMS = [
    ("sgemm_1", "80", "256 128 40 N T", "f32", "f32", (1e-5, 1e-5)),
    ("sgemm_1", "80", "128 128 40 T N", "f32", "f32", (1e-5, 1e-5)),
    ("sgemm_2", "80", "256 128 64 N T", "f32", "f32", (1e-5, 1e-5)),
    ("sgemm_2", "80", "128 256 64 T N", "f32", "f32", (1e-5, 1e-5)),
    ("sgemm_sm80", "80", "128 256 256 T N", "f16", "f16", (0.1, 2e-2)),
    ("hopper/wgmma_sm90", "90a", "256 128 256 N T", "f16", "f16", (0.1, 2e-2)),
    ("hopper/wgmma_sm90", "90a", "128 256 256 T N", "f16", "f16", (0.1, 2e-2)),
    ("hopper/wgmma_tma_sm90", "90a", "256 128 192 N T", "f16", "f16", (0.1, 2e-2)),
    ("hopper/wgmma_tma_sm90", "90a", "256 256 256 T N", "f16", "f16", (0.1, 2e-2)),
    ("blackwell/01_mma_sm100", "100a", "256 256 128", "f16", "f32", (1e-4, 1e-4)),
    ("blackwell/02_mma_tma_sm100", "100a", "256 256 128", "f16", "f32", (1e-4, 1e-4)),
    ("blackwell/03_mma_tma_multicast_sm100", "100a", "512 1024 128", "f16", "f32", (1e-4, 1e-4)),
    ("blackwell/04_mma_tma_2sm_sm100", "100a", "512 1024 128", "f16", "f32", (1e-4, 1e-4)),
    ("blackwell/05_mma_tma_epi_sm100", "100a", "512 1024 128", "f16", "f32", (1e-4, 1e-4)),
]

# CUtensorMapDataType and CUtensorMapSwizzle of cuda.h, as a case names them.
MAP_TYPES = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32", "tf32", "tf32"]
SWIZZLES = [0, 32, 64, 128]

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def parameter_sizes(ptx):
    """Of each kernel of a text the bytes of its parameters."""
    kernels = {}
    for m in re.finditer(r"\.entry (\S+)\(\n?(.*?)\)\n", ptx, re.S):
        sizes = []
        for line in m.group(2).splitlines():
            if t := re.search(r"\.[busf](8|16|32|64) \S+?(?:\[(\d+)\])?,?$", line.strip()):
                sizes.append(SIZES[t.group(1)] * int(t.group(2) or 1))
        kernels[m.group(1)] = sizes
    return kernels


def build(program, arch, packages, work):
    """Compiles a program once; returns its folder, with run and the PTX in it."""
    name = os.path.basename(program)
    folder = os.path.join(work, name)
    run, ptx = os.path.join(folder, "run"), os.path.join(folder, name + ".ptx")
    if os.path.exists(run) and os.path.exists(ptx):
        return folder
    os.makedirs(folder, exist_ok=True)
    cuda = os.path.join(packages, "nvidia/cu13")
    cutlass = os.path.join(packages, "cutlass_library/source")
    include = [os.path.join(cutlass, "include"), os.path.join(cutlass, "tools/util/include"), os.path.join(cuda, "include/cccl")]
    capture = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture.cpp")
    subprocess.run(
        [os.path.join(cuda, "bin/nvcc"), "-w", "-O0", "-std=c++17", "--expt-relaxed-constexpr", "-cudart", "none",
         "-gencode", f"arch=compute_{arch},code=compute_{arch}", "-DCUTLASS_ARCH_MMA_SM100_SUPPORTED", "--keep", "--keep-dir", folder,
         *[f"-I{i}" for i in include], os.path.join(cutlass, TUTORIALS, program + ".cu"), capture, "-o", run],
        check=True, stdout=subprocess.DEVNULL)
    return folder


def read_launch(folder):
    """launch.txt as a dict of lists of words, by the first word."""
    lines = {}
    with open(os.path.join(folder, "launch.txt")) as f:
        for line in f:
            key, *words = line.split()
            lines.setdefault(key, []).append(words)
    return lines


def tensor_map(words, names):
    """The argument that a "map" line describes."""
    buffer, offset, kind, rank, *numbers = map(int, words)
    take = lambda n: [numbers.pop(0) for _ in range(n)]
    dims, strides, box, steps = take(rank), take(rank - 1), take(rank), take(rank)
    interleave, swizzle, fill = take(3)
    assert interleave == 0, "interleaved"
    return {"tensor_map": names[buffer], "offset": offset, "type": MAP_TYPES[kind], "dims": dims, "strides": strides, "box": box,
            "element_strides": steps, "swizzle": SWIZZLES[swizzle], "fill": "nan" if fill else "zero"}


def arguments(launch, names):
    """The arguments of a launch, as case.json has them."""
    parts = {}
    for param, at, buffer, offset in launch.get("ref", []):
        parts.setdefault(int(param), []).append({"at": int(at), "ref": names[int(buffer)], "offset": int(offset)})
    for param, at, *words in launch.get("map", []):
        parts.setdefault(int(param), []).append({"at": int(at), **tensor_map(words, names)})
    args = []
    for i, (text,) in enumerate(launch["param"]):
        for p in parts.get(i, []):
            size = 128 if "tensor_map" in p else 8
            text = text[:2 * p["at"]] + "00" * size + text[2 * (p["at"] + size):]
        args.append({"bytes": text, "with": parts[i]} if i in parts else {"bytes": text})
    return args


def operands(rng, words, kind, sums, blackwell):
    """A, B, C and, of sm_100's programs, D, in the order of their allocation, filled anew."""
    m, n, k = map(int, words[:3])
    along = blackwell or words[3] == "T"  # A and B lie along K
    a = Buffer(kind, rng.uniform(-1, 1, (m, k) if along else (k, m)))
    b = Buffer(kind, rng.uniform(-1, 1, (n, k) if along else (k, n)))
    x, y = (a.value, b.value) if along else (a.value.T, b.value.T)
    if blackwell:
        c, d = Buffer(sums, rng.uniform(-1, 1, (m, n))), Buffer(sums, np.zeros((m, n)), want=x @ y.T)
        return [d, a, b, c]
    return [a, b, Buffer(sums, np.full((n, m), -1.0), want=y @ x.T)]


def fenced(ptx):
    """A kernel's text with a fence before each of its barriers."""
    return ptx.replace("bar.sync \t0;", "fence.proxy.async.shared::cta;\n\tbar.sync \t0;")


def synchronised(ptx):
    """A kernel's text with a barrier behind each wait for copies or products."""
    for wait in ("cp.async.wait_all;", "wgmma.wait_group.sync.aligned 0;"):
        ptx = ptx.replace(wait, wait + "\n\tbar.sync \t0;")
    return ptx


# Programs that have a fault as their authors wrote them: its class, and what mends it.
FAULTY = {
    "wgmma_sm90": ("async-copy-race", "barriers", synchronised),
    "01_mma_sm100": ("missing-proxy-fence", "fence.proxy.async", fenced),
}


def make(row, packages, work, version):
    program, arch, words, kind, sums, tolerance = row
    folder = build(program, arch, packages, work)
    name = os.path.basename(program)
    with open(os.path.join(folder, name + ".ptx")) as f:
        ptx = f.read()
    with open(os.path.join(folder, "params.txt"), "w") as f:
        for kernel, sizes in parameter_sizes(ptx).items():
            print(kernel, *sizes, file=f)
    environment = dict(os.environ, CAPTURE_KERNEL="gemm_device", CAPTURE_PARAMS=os.path.join(folder, "params.txt"), CAPTURE_DIR=folder,
                       CAPTURE_CC=arch.rstrip("a"))
    subprocess.run([os.path.join(folder, "run"), *words.split()], env=environment, check=True, stdout=subprocess.DEVNULL)
    launch = read_launch(folder)
    buffers = operands(np.random.default_rng(len(words)), words.split(), kind, sums, "blackwell" in program)
    sizes = [int(size) for _, size in launch["buffer"]]
    assert sizes == [b.data.nbytes for b in buffers], f"{program}: buffers of {sizes} bytes"
    grid, block, cluster = ([int(w) for w in launch[key][0]] for key in ("grid", "block", "cluster"))
    return Case(
        name=f"{name} {words}",
        origin=f"nvidia-cutlass {version}, {TUTORIALS}/{program}.cu",
        arch=f"sm_{arch}",
        ptx=ptx,
        kernel=launch["kernel"][0][0],
        grid=tuple(grid),
        block=tuple(block),
        cluster=tuple(cluster),
        buffers=buffers,
        args=arguments(launch, [f"b{i}" for i in range(len(buffers))]),
        tolerance=tolerance,
        shared=int(launch["shared"][0][0]),
    )


def every(packages, work, version):
    for row in PROGRAMS:
        case = make(row, packages, work, version)
        name = os.path.basename(row[0])
        if name in FAULTY:
            case.fault, what, mend = FAULTY[name]
            yield case
            case = dataclasses.replace(case, name=f"{case.name}, {what} added", ptx=mend(case.ptx), fault="")
        yield case
