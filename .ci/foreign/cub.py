"""Cases of CUB's BlockScan, BlockRadixSort, BlockReduce and WarpReduce, compiled by NVRTC."""

import ctypes
import os

import numpy as np

from cases import Buffer, Case

THREADS, ITEMS, BLOCKS = 128, 4, 3


def compile_ptx(library, source, arch, folders):
    """The PTX of a file for an architecture such as 80."""
    folder = os.path.dirname(library)
    for name in sorted(os.listdir(folder)):
        if name.startswith("libnvrtc-builtins.so"):
            ctypes.CDLL(os.path.join(folder, name))
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    with open(source, "rb") as f:
        text = f.read()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, os.path.basename(source).encode(), 0, None, None) == 0
    flags = [f"--gpu-architecture=compute_{arch}", "--std=c++17", "-default-device", *[f"-I{f}" for f in folders]]
    made = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*[f.encode() for f in flags]))

    def output(what):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, room)
        return room.value.decode()

    if made:
        raise SystemExit(f"NVRTC: {source}: {output('ProgramLog')}")
    return output("PTX")


def whole(rng, *shape):
    return rng.integers(-1000, 1000, shape)


def scans(rng):
    x = whole(rng, BLOCKS, THREADS * ITEMS)
    sums = np.cumsum(x, 1)
    for name in ("scan_raking", "scan_raking_memoize", "scan_warps"):
        yield name, [Buffer("i32", x), Buffer("i32", shape=x.shape, want=sums - x), Buffer("i32", shape=(BLOCKS,), want=sums[:, -1])], []
    y = Buffer("f32", rng.standard_normal((BLOCKS, THREADS)))
    yield "scan_running_maximum", [y, Buffer("f32", shape=y.data.shape, want=np.maximum.accumulate(y.value, 1))], []


def sorts(rng):
    x = rng.integers(0, 1 << 32, (BLOCKS, THREADS * ITEMS))
    yield "sort_keys", [Buffer("u32", x), Buffer("u32", shape=x.shape, want=np.sort(x, 1))], []
    keys = Buffer("f32", np.round(rng.standard_normal(x.shape) * 8))  # some are equal: the sort is stable
    values = whole(rng, *x.shape)
    order = np.argsort(-keys.value, 1, kind="stable")
    yield "sort_pairs_descending", [
        keys, Buffer("i32", values), Buffer("f32", shape=x.shape, want=np.take_along_axis(keys.value, order, 1)),
        Buffer("i32", shape=x.shape, want=np.take_along_axis(values, order, 1))], []


def reductions(rng):
    x = Buffer("f32", rng.standard_normal((BLOCKS, THREADS)))
    for name, valid in (("reduce_raking", 128), ("reduce_raking_commutative", 128), ("reduce_warps", 128), ("reduce_raking", 101), ("reduce_warps", 37)):
        yield name, [x, Buffer("f32", shape=(BLOCKS,), want=x.value[:, :valid].sum(1))], [{"i32": valid}]


def warps(rng):
    x = whole(rng, BLOCKS * THREADS)
    yield "warp_sum", [Buffer("i32", x), Buffer("i32", shape=(len(x) // 32,), want=x.reshape(-1, 32).sum(1))], []
    y = Buffer("f32", rng.standard_normal(BLOCKS * THREADS))
    yield "half_warp_largest", [y, Buffer("f32", shape=(len(x) // 16,), want=y.value.reshape(-1, 16)[:, :13].max(1))], [{"i32": 13}]
    heads = (rng.random(len(x)) < 0.2).astype(int)
    sums = np.zeros(len(x), int)
    for w in range(0, len(x), 32):
        starts = [w, *[i for i in range(w + 1, w + 32) if heads[i]], w + 32]
        for a, b in zip(starts, starts[1:]):
            sums[a] = x[a:b].sum()
    yield "warp_segments", [Buffer("i32", x), Buffer("i32", heads), Buffer("i32", shape=(len(x),), want=sums)], []


PRIMITIVES = {"BlockScan": scans, "BlockRadixSort": sorts, "BlockReduce": reductions, "WarpReduce": warps}


def every(library, packages, version):
    include = os.path.join(packages, "nvidia/cu13/include")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cub.cu")
    for arch in ("80", "90"):
        ptx = compile_ptx(library, source, arch, [os.path.join(include, "cccl"), include])
        for i, (primitive, make) in enumerate(PRIMITIVES.items()):
            for kernel, buffers, values in make(np.random.default_rng(i)):
                yield Case(
                    name=f"{primitive}: {kernel.replace('_', ' ')}" + "".join(f" of {v['i32']}" for v in values),
                    origin=f"nvidia-cuda-cccl {version}",
                    arch=f"sm_{arch}",
                    ptx=ptx,
                    kernel=kernel,
                    grid=(BLOCKS, 1, 1),
                    block=(THREADS, 1, 1),
                    buffers=buffers,
                    args=[{"ref": f"b{n}"} for n in range(len(buffers))] + values,
                    tolerance=(1e-5, 1e-6),
                )
