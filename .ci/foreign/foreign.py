"""Runs kernels by others on the virtual machine and writes a table of what came of them.

    foreign.py KGEN NVRTC PACKAGES WORK TABLE
    foreign.py KGEN NVRTC PACKAGES WORK --keep FOLDER

KGEN is the program, NVRTC the library, PACKAGES a folder with the wheels of requirements.txt
unpacked, WORK one for what is compiled and for the cases, TABLE the Markdown file whose table
is written again. --keep writes the cases that testdata holds instead. No GPU is needed.
"""

import importlib.metadata
import os
import re
import sys

import cub
import cute
import triton_kernels
from cases import only

# What testdata/ptx/foreign keeps: by its folder there, a part of the name and the architecture.
KEPT = {
    "cub_scan_raking_sm90": ("BlockScan: scan raking", "sm_90"),
    "cub_sort_pairs_sm80": ("BlockRadixSort: sort pairs descending", "sm_80"),
    "cub_reduce_warps_sm80": ("BlockReduce: reduce warps of 37", "sm_80"),
    "cub_warp_segments_sm80": ("WarpReduce: warp segments", "sm_80"),
    "cute_sgemm_tn_sm80": ("sgemm_1 128 128 40 T N", "sm_80"),
    "cute_wgmma_tma_nt_sm90": ("wgmma_tma_sm90 256 128 192 N T", "sm_90a"),
    "liger_rms_norm_bf16_sm90": ("RMSNorm, forward", "sm_90"),
    "fla_recurrent_f32_sm80": ("Gated linear attention, recurrent", "sm_80"),
    "fla_chunk_outputs_bf16_sm90": ("Outputs of linear attention", "sm_90"),
    "fla_window_attention_bf16_sm100": ("Attention in a sliding window", "sm_100"),
}


def version(packages, name):
    """The version of a wheel that is unpacked in a folder."""
    return next(d.version for d in importlib.metadata.distributions(path=[packages]) if d.name == name)


def every(nvrtc, packages, work):
    yield from cub.every(nvrtc, packages, version(packages, "nvidia-cuda-cccl"))
    yield from cute.every(packages, work, version(packages, "nvidia-cutlass"))
    yield from triton_kernels.every()


def keep(cases, folder):
    left = {row: name for name, row in KEPT.items()}
    for case in cases:
        name = left.pop((case.name, case.arch), None)
        if name:
            case.ptx = only(case.ptx, case.kernel)
            case.write(os.path.join(folder, name))
    if left:
        sys.exit(f"no such cases: {left}")


def table(cases, kgen, work, file):
    rows = []
    for case in cases:
        folder = os.path.join(work, "cases", re.sub(r"\W+", "_", f"{case.name} {case.arch}"))
        row = case.run(kgen, folder, timeout=1800)
        rows.append(row)
        print(row.line(), flush=True)
    lines = [
        "| kernel | origin | arch | right | silent | thread instructions | tensor operations | speed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *[row.line() for row in rows],
    ]
    with open(file) as f:
        text = f.read()
    head, tail = text.split("<!-- table -->\n")[0], text.split("<!-- end -->\n")[1]
    with open(file, "w") as f:
        f.write(head + "<!-- table -->\n" + "\n".join(lines) + "\n<!-- end -->\n" + tail)
    bad = [row.case.name for row in rows if not row.good]
    if bad:
        sys.exit(f"{len(bad)} of {len(rows)} kernels are wrong or faulty: " + "; ".join(bad))


def main():
    kgen, nvrtc, packages, work, *rest = sys.argv[1:]
    cases = every(nvrtc, packages, work)
    if rest[0] == "--keep":
        keep(cases, rest[1])
    else:
        table(cases, kgen, work, rest[0])


main()
