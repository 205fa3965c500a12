"""Cases of Triton kernels of liger-kernel and fla-core, compiled ahead of time."""

import importlib
import importlib.metadata
import warnings

import absent

absent.install()
import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from cases import Buffer, Case

SCALARS = {"i32": "i32", "fp32": "f32", "i64": "i64"}
POINTERS = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "i32": "*i32", "i64": "*i64"}


def kernel_of(path):
    """The kernel of a package by its dotted name, without what tunes it."""
    module, name = path.rsplit(".", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fn = getattr(importlib.import_module(module), name)
    while not isinstance(fn, triton.runtime.jit.JITFunction):
        fn = fn.fn
    return fn


def make(name, path, sm, grid, warps, args, tolerance, stages=3, **constants):
    """A case. args: by the kernel's names, a Buffer, ("i32", 7), or None; the rest are constants."""
    fn = kernel_of(path)
    package = {"liger_kernel": "liger-kernel", "fla": "fla-core"}[path.split(".")[0]]
    signature, fixed, aligned, buffers, passed = {}, {}, {}, [], []
    for i, arg in enumerate(fn.arg_names):
        given = args.get(arg)
        if isinstance(given, Buffer):
            signature[arg] = POINTERS[given.kind]
            aligned[(i,)] = [["tt.divisibility", 16]]
            passed.append({"ref": f"b{len(buffers)}"})
            buffers.append(given)
        elif given is not None:
            kind, value = given
            signature[arg] = kind
            passed.append({SCALARS[kind]: value})
        else:
            signature[arg] = "constexpr"
            if arg in constants or arg in args:
                fixed[arg] = constants.get(arg)
    source = ASTSource(fn, signature, fixed, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", sm, 32), options={"num_warps": warps, "num_stages": stages})
    passed += [{"u64": 0}, {"u64": 0}]  # Triton's scratch memory, which none of these use
    return Case(
        name=name,
        origin=f"{package} {importlib.metadata.version(package)}, {path}",
        arch=f"sm_{sm}",
        ptx=made.asm["ptx"],
        kernel=made.metadata.name,
        grid=grid,
        block=(32 * made.metadata.num_warps, 1, 1),
        buffers=buffers,
        args=passed,
        tolerance=tolerance,
        shared=made.metadata.shared,
    )


def random(rng, kind, *shape, low=-1.0, high=1.0):
    return Buffer(kind, rng.uniform(low, high, shape))


def empty(kind, *shape):
    return Buffer(kind, shape=shape)


def i32(v):
    return ("i32", int(v))


def f32(v):
    return ("fp32", float(v))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rms_norm(rng):
    rows, cols, eps = 13, 1000, 1e-6
    x, w = random(rng, "bf16", rows, cols, low=-2, high=2), random(rng, "bf16", cols)
    y, rstd = empty("bf16", rows, cols), empty("f32", rows)
    r = 1 / np.sqrt((x.value**2).mean(1) + eps)
    y.want, rstd.want = x.value * r[:, None] * (1 + w.value), r
    for sm in (80, 90):
        yield make("RMSNorm, forward", "liger_kernel.ops.rms_norm._rms_norm_forward_kernel", sm, (rows, 1, 1), 4,
                   dict(Y_ptr=y, Y_row_stride=i32(cols), X_ptr=x, X_row_stride=i32(cols), W_ptr=w, W_row_stride=i32(1), RSTD_ptr=rstd,
                        RSTD_row_stride=i32(1), n_cols=i32(cols), eps=f32(eps), offset=f32(1)),
                   (2e-2, 1e-2), casting_mode=1, elementwise_affine=True, BLOCK_SIZE=1024)


def rms_norm_backward(rng):
    rows, cols, each = 11, 700, 4
    programs = -(-rows // each)
    x, dy, w = random(rng, "f32", rows, cols, low=-2, high=2), random(rng, "f32", rows, cols), random(rng, "f32", cols)
    r = 1 / np.sqrt((x.value**2).mean(1) + 1e-6)
    rstd = Buffer("f32", r)
    r = rstd.value[:, None]
    dx, dw = empty("f32", rows, cols), empty("f32", programs, cols)
    m = dy.value * w.value
    dx.want = r * (m - x.value * r**2 * (m * x.value).mean(1)[:, None])
    part = dy.value * x.value * r
    dw.want = np.stack([part[i * each:(i + 1) * each].sum(0) for i in range(programs)])
    yield make("RMSNorm, backward", "liger_kernel.ops.rms_norm._rms_norm_backward_kernel", 80, (programs, 1, 1), 4,
               dict(dY_ptr=dy, dY_row_stride=i32(cols), dX_ptr=dx, dX_row_stride=i32(cols), X_ptr=x, X_row_stride=i32(cols), W_ptr=w,
                    W_row_stride=i32(1), RSTD_ptr=rstd, RSTD_row_stride=i32(1), dW_ptr=dw, dW_row_stride=i32(cols), n_rows=i32(rows),
                    n_cols=i32(cols), offset=f32(0), rows_per_program=i32(each)),
               (1e-5, 1e-4), X_dtype=tl.float32, casting_mode=1, elementwise_affine=True, BLOCK_SIZE=1024, COMPUTE_DW=True)


def layer_norm(rng):
    rows, cols, eps = 9, 777, 1e-5
    x, w, b = random(rng, "f16", rows, cols, low=-2, high=2), random(rng, "f16", cols), random(rng, "f16", cols)
    y, mean, rstd = empty("f16", rows, cols), empty("f32", rows), empty("f32", rows)
    mean.want = x.value.mean(1)
    rstd.want = 1 / np.sqrt(x.value.var(1) + eps)
    y.want = (x.value - mean.want[:, None]) * rstd.want[:, None] * w.value + b.value
    yield make("LayerNorm, forward", "liger_kernel.ops.layer_norm._layer_norm_forward_kernel", 80, (rows, 1, 1), 4,
               dict(Y_ptr=y, Y_row_stride=i32(cols), X_ptr=x, X_row_stride=i32(cols), W_ptr=w, W_row_stride=i32(1), B_ptr=b,
                    B_row_stride=i32(1), Mean_ptr=mean, Mean_row_stride=i32(1), RSTD_ptr=rstd, RSTD_row_stride=i32(1), n_cols=i32(cols),
                    eps=f32(eps)),
               (2e-3, 2e-3), BLOCK_SIZE=1024)


def layer_norm_backward(rng):
    rows, cols, each = 10, 500, 3
    programs = -(-rows // each)
    x, dy, w = random(rng, "f32", rows, cols, low=-2, high=2), random(rng, "f32", rows, cols), random(rng, "f32", cols)
    mean, rstd = Buffer("f32", x.value.mean(1)), Buffer("f32", 1 / np.sqrt(x.value.var(1) + 1e-5))
    dx, dw, db = empty("f32", rows, cols), empty("f32", programs, cols), empty("f32", programs, cols)
    hat = (x.value - mean.value[:, None]) * rstd.value[:, None]
    wdy = w.value * dy.value
    dx.want = (wdy - hat * (hat * wdy).mean(1)[:, None] - wdy.mean(1)[:, None]) * rstd.value[:, None]
    parts = [slice(i * each, (i + 1) * each) for i in range(programs)]
    dw.want = np.stack([(dy.value * hat)[p].sum(0) for p in parts])
    db.want = np.stack([dy.value[p].sum(0) for p in parts])
    yield make("LayerNorm, backward", "liger_kernel.ops.layer_norm._layer_norm_backward_kernel", 90, (programs, 1, 1), 4,
               dict(X_ptr=x, stride_x=i32(cols), W_ptr=w, Mean_ptr=mean, stride_mean=i32(1), RSTD_ptr=rstd, stride_rstd=i32(1), DX_ptr=dx,
                    stride_dx=i32(cols), DW_ptr=dw, stride_dw=i32(cols), DB_ptr=db, stride_db=i32(cols), DY_ptr=dy, stride_dy=i32(cols),
                    n_rows=i32(rows), n_cols=i32(cols)),
               (1e-5, 1e-4), rows_per_program=each, BLOCK_SIZE=512, COMPUTE_DW=True, COMPUTE_DB=True)


def geglu(rng):
    rows, cols = 7, 900
    a, b, c = random(rng, "bf16", rows, cols, low=-3, high=3), random(rng, "bf16", rows, cols), empty("bf16", rows, cols)
    x = a.value
    c.want = 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))) * b.value
    yield make("GEGLU, forward", "liger_kernel.ops.geglu._geglu_tanh_forward_kernel", 80, (rows, 1, 1), 4,
               dict(a=a, b=b, c=c, stride=i32(cols)), (1e-3, 2e-2), n_cols=cols, BLOCK_SIZE=1024)


def swiglu_backward(rng):
    rows, cols, gate = 7, 900, 1.25
    dc, a, b = (random(rng, "f32", rows, cols, low=-3, high=3) for _ in range(3))
    x = a.value * gate
    s = sigmoid(x)
    a.want = dc.value * b.value * (s + x * s * (1 - s)) * gate
    b.want = dc.value * x * s
    yield make("SwiGLU, backward", "liger_kernel.ops.swiglu._swiglu_backward_kernel", 80, (rows, 1, 1), 4,
               dict(dc_ptr=dc, a_ptr=a, b_ptr=b, stride=i32(cols), gate_multiplier=f32(gate)), (1e-5, 1e-4), n_cols=cols, BLOCK_SIZE=1024)


def rope(rng):
    batch, length, qh, kh, d = 2, 5, 6, 4, 64
    q, k = random(rng, "f32", batch, length, qh, d), random(rng, "f32", batch, length, kh, d)
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    cos, sin = Buffer("f32", np.cos(np.hstack([angle, angle]))), Buffer("f32", np.sin(np.hstack([angle, angle])))
    for x in (q, k):
        v, half = x.value, d // 2
        turned = np.concatenate([-v[..., half:], v[..., :half]], -1)
        x.want = v * cos.value[:, None] + turned * sin.value[:, None]
    yield make("Rotary embedding", "liger_kernel.ops.rope._triton_rope", 80, (batch * length, 1, 1), 4,
               dict(q_ptr=q, q_row_stride=i32(qh * d), k_ptr=k, k_row_stride=i32(kh * d), cos=cos, cos_row_stride=i32(d), sin=sin,
                    sin_row_stride=i32(d), sl=i32(length)),
               (1e-6, 1e-5), bs=batch, cos_bs=1, n_qh=qh, n_kh=kh, hd=d, pad_n_qh=8, pad_n_kh=4, pad_hd=d, pad_rd=d, rd=d, BLOCK_SIZE=8,
               BACKWARD_PASS=False)


def softmax(rng):
    rows, cols = 6, 1500
    x, y = random(rng, "f32", rows, cols, low=-5, high=5), empty("f32", rows, cols)
    e = np.exp(x.value - x.value.max(1)[:, None])
    y.want = e / e.sum(1)[:, None]
    yield make("Softmax", "liger_kernel.ops.softmax._softmax_single_block_forward_kernel", 90, (rows, 1, 1), 4,
               dict(Y_ptr=y, Y_row_stride=i32(cols), X_ptr=x, X_row_stride=i32(cols), n_cols=i32(cols)), (1e-8, 2e-5), BLOCK_SIZE=2048)


def poly_norm(rng):
    rows, cols, eps = 8, 600, 1e-6
    x, w, b = random(rng, "f32", rows, cols, low=-2, high=2), random(rng, "f32", 3), random(rng, "f32", 1)
    y, rstd = empty("f32", rows, cols), empty("f32", rows, 3)
    powers = [x.value**p for p in (3, 2, 1)]
    r = [1 / np.sqrt((p**2).mean(1) + eps) for p in powers]
    rstd.want = np.stack(r, 1)
    y.want = sum(w.value[i] * powers[i] * r[i][:, None] for i in range(3)) + b.value
    yield make("PolyNorm, forward", "liger_kernel.ops.poly_norm._poly_norm_forward_kernel", 80, (rows, 1, 1), 4,
               dict(Y_ptr=y, Y_row_stride=i32(cols), X_ptr=x, X_row_stride=i32(cols), W_ptr=w, B_ptr=b, RSTD_ptr=rstd,
                    RSTD_row_stride=i32(3), n_cols=i32(cols), eps=f32(eps)),
               (1e-5, 1e-4), BLOCK_SIZE=1024)


def cross_entropy(rng):
    rows, cols, smoothing, ignored = 9, 2500, 0.1, -100
    x = random(rng, "f32", rows, cols, low=-4, high=4)
    labels = rng.integers(0, cols, rows)
    labels[3] = ignored
    kept = int((labels != ignored).sum())
    y, loss = Buffer("i64", labels), Buffer("f32", np.zeros(rows))
    v = x.value
    top = v.max(1)
    lse = top + np.log(np.exp(v - top[:, None]).sum(1))
    x.want, loss.want = np.zeros((rows, cols)), np.zeros(rows)
    for i in np.flatnonzero(labels != ignored):
        q = np.full(cols, smoothing / cols)
        q[labels[i]] += 1 - smoothing
        loss.want[i] = (q * (lse[i] - v[i])).sum() / kept
        x.want[i] = (np.exp(v[i] - lse[i]) - q) / kept
    nothing = Buffer("f32", np.zeros(1))
    yield make("Cross entropy and its gradient", "liger_kernel.ops.cross_entropy.liger_cross_entropy_kernel", 90, (rows, 1, 1), 8,
               dict(X_ptr=x, X_stride=i32(cols), Y_ptr=y, Y_stride=i32(1), weight_ptr=nothing, loss_ptr=loss, z_loss_ptr=nothing,
                    loss_stride=i32(1), token_accuracy_ptr=nothing, token_accuracy_stride=i32(0), predicted_tokens_ptr=nothing,
                    predicted_tokens_stride=i32(0), n_cols=i32(cols), n_non_ignore=i32(kept), sum_non_ignore_weight=i32(kept),
                    weight_sum=f32(0), ignore_index=i32(ignored), softcap=None),
               (1e-6, 1e-4), lse_square_scale=0.0, label_smoothing=smoothing, reduction="mean", RETURN_Z_LOSS=False,
               RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False, BLOCK_SIZE=1024, HAS_WEIGHT=False, HAS_SOFTCAPPING=False,
               HAS_GRADIENTS=True)


def cumsum(rng):
    batch, length, heads, chunk = 2, 150, 3, 64
    s, o = random(rng, "f32", batch, length, heads), empty("f32", batch, length, heads)
    o.want = np.concatenate([np.cumsum(s.value[:, t:t + chunk], 1) for t in range(0, length, chunk)], 1)
    yield make("Cumulative sums in chunks", "fla.ops.utils.cumsum.chunk_local_cumsum_scalar_kernel", 80,
               (batch * heads * -(-length // chunk), 1, 1), 2, dict(s=s, o=o, scale=None, cu_seqlens=None, chunk_indices=None, T=i32(length)),
               (1e-5, 1e-5), B=batch, H=heads, BT=chunk, REVERSE=False, HAS_SCALE=False, IS_VARLEN=False, USE_GRAPH=False)


def decays(rng, batch, length, heads, chunk):
    """Cumulative logarithms to base 2 of decays, within chunks."""
    g = -rng.uniform(0, 0.1, (batch, length, heads))
    return Buffer("f32", np.concatenate([np.cumsum(g[:, t:t + chunk], 1) for t in range(0, length, chunk)], 1))


def chunk_states(rng):
    batch, length, heads, d, chunk, tile = 1, 150, 2, 64, 64, 32
    k, v = random(rng, "f16", batch, length, heads, d), random(rng, "f16", batch, length, heads, d)
    g = decays(rng, batch, length, heads, chunk)
    chunks = -(-length // chunk)
    h, ht = empty("f32", batch, chunks, heads, d, d), empty("f32", batch, heads, d, d)
    h.want, ht.want = np.zeros((batch, chunks, heads, d, d)), np.zeros((batch, heads, d, d))
    for b in range(batch):
        for j in range(heads):
            state = np.zeros((d, d))
            for c in range(chunks):
                h.want[b, c, j] = state
                at = slice(c * chunk, min((c + 1) * chunk, length))
                gc = g.value[b, at, j]
                state = state * 2.0 ** gc[-1] + k.value[b, at, j].T @ (v.value[b, at, j] * 2.0 ** (gc[-1] - gc)[:, None])
            ht.want[b, j] = state
    for sm in (80, 90, 100):
        yield make("States of linear attention", "fla.ops.common.chunk_h.chunk_fwd_kernel_h", sm, (d // tile * (d // tile) * batch * heads, 1, 1), 4,
                   dict(k=k, v=v, h=h, g=g, g_gamma=None, gk=None, gv=None, h0=None, ht=ht, cu_seqlens=None, split_offsets=None, T=i32(length)),
                   (2e-2, 2e-3), stages=2, H=heads, K=d, V=d, BT=chunk, BS=chunk, BK=tile, BV=tile, USE_G=True, USE_G_GAMMA=False, USE_GK=False,
                   USE_GV=False, USE_INITIAL_STATE=False, STORE_FINAL_STATE=True, IS_VARLEN=False, STATE_V_FIRST=False)


def chunk_outputs(rng):
    batch, length, heads, d, chunk, tile = 1, 100, 2, 128, 64, 64
    q, k, v = (random(rng, "bf16", batch, length, heads, d) for _ in range(3))
    g, scale = decays(rng, batch, length, heads, chunk), d**-0.5
    chunks = -(-length // chunk)
    h, o = random(rng, "bf16", batch, chunks, heads, d, d), empty("bf16", batch, length, heads, d)
    o.want = np.zeros((batch, length, heads, d))
    for b in range(batch):
        for j in range(heads):
            for c in range(chunks):
                at = slice(c * chunk, min((c + 1) * chunk, length))
                gc, qc = g.value[b, at, j], q.value[b, at, j]
                scores = np.tril((qc @ k.value[b, at, j].T) * 2.0 ** (gc[:, None] - gc))
                o.want[b, at, j] = ((qc @ h.value[b, c, j]) * 2.0 ** gc[:, None] + scores @ v.value[b, at, j]) * scale
    for sm in (80, 90, 100):
        yield make("Outputs of linear attention", "fla.ops.common.chunk_o.chunk_fwd_kernel_o", sm, (d // tile * chunks, batch * heads, 1), 4,
                   dict(q=q, k=k, v=v, h=h, g=g, g_gamma=None, o=o, cu_seqlens=None, chunk_indices=None, scale=f32(scale), T=i32(length)),
                   (3e-2, 2e-2), H=heads, HV=heads, K=d, V=d, BT=chunk, BK=tile, BV=tile, USE_G=True, USE_G_GAMMA=False, STATE_V_FIRST=False,
                   IS_VARLEN=False)


def attention(rng):
    batch, length, heads, groups, d, window, rows, cols = 1, 200, 2, 2, 64, 70, 64, 32
    hq = heads * groups
    q = random(rng, "bf16", batch, length, hq, d)
    k, v = random(rng, "bf16", batch, length, heads, d), random(rng, "bf16", batch, length, heads, d)
    o, lse, scale = empty("bf16", batch, length, hq, d), empty("f32", batch, length, hq), d**-0.5
    place = np.arange(length)
    seen = (place[None, :] <= place[:, None]) & (place[:, None] - place[None, :] < window)
    o.want, lse.want = np.zeros((batch, length, hq, d)), np.zeros((batch, length, hq))
    for b in range(batch):
        for j in range(hq):
            s = np.where(seen, q.value[b, :, j] @ k.value[b, :, j // groups].T * scale, -np.inf)
            top = s.max(1)
            p = np.exp(s - top[:, None])
            o.want[b, :, j] = p @ v.value[b, :, j // groups] / p.sum(1)[:, None]
            lse.want[b, :, j] = (top + np.log(p.sum(1))) * np.log2(np.e)
    for sm in (80, 90, 100):
        yield make("Attention in a sliding window", "fla.ops.attn.parallel.parallel_attn_fwd_kernel", sm, (-(-length // rows), batch * hq, 1), 4,
                   dict(q=q, k=k, v=v, o=o, g_cumsum=None, sink_bias=None, lse=lse, scale=f32(scale), cu_seqlens=None, chunk_indices=None,
                        T=i32(length)),
                   (1e-2, 2e-2), stages=2, W=window, B=batch, H=heads, HQ=hq, G=groups, K=d, V=d, BT=rows, BS=cols, BK=d, BV=d, USE_G=False,
                   USE_SINK_BIAS=False, USE_WINDOW=True, IS_VARLEN=False)


def recurrent(rng):
    batch, length, heads, d, tile = 2, 40, 2, 32, 16
    q, k, v = (random(rng, "f32", batch, length, heads, d) for _ in range(3))
    gk, h0 = random(rng, "f32", batch, length, heads, d, low=-0.2, high=0), random(rng, "f32", batch, heads, d, d)
    o, ht, scale = empty("f32", 1, batch, length, heads, d), empty("f32", batch, heads, d, d), d**-0.5
    o.want, ht.want = np.zeros((1, batch, length, heads, d)), np.zeros((batch, heads, d, d))
    for b in range(batch):
        for j in range(heads):
            state = h0.value[b, j].copy()
            for t in range(length):
                state = state * np.exp(gk.value[b, t, j])[:, None] + np.outer(k.value[b, t, j], v.value[b, t, j])
                o.want[0, b, t, j] = q.value[b, t, j] * scale @ state
            ht.want[b, j] = state
    yield make("Gated linear attention, recurrent", "fla.ops.common.fused_recurrent.fused_recurrent_fwd_kernel", 80,
               (d // tile * batch * heads, 1, 1), 4,
               dict(q=q, k=k, v=v, g=None, g_gamma=None, gk=gk, gv=None, o=o, h0=h0, ht=ht, cu_seqlens=None, scale=f32(scale), B=i32(batch),
                    T=i32(length)),
               (1e-4, 1e-4), H=heads, K=d, V=d, BK=d, BV=tile, REVERSE=False, USE_G=False, USE_G_GAMMA=False, USE_GK=True, USE_GV=False,
               USE_INITIAL_STATE=True, STORE_FINAL_STATE=True, IS_VARLEN=False, STATE_V_FIRST=False)


def inverse(rng):
    batch, length, heads, block = 1, 100, 2, 16
    rows = -(-length // block)
    a = rng.uniform(-0.3, 0.3, (batch, length, heads, block))
    a *= (np.arange(length) % block)[None, :, None, None] > np.arange(block)
    A, out = Buffer("f32", a), empty("f32", batch, length, heads, block)
    out.want = np.zeros((batch, length, heads, block))
    for j in range(heads):
        for r in range(rows):
            at = slice(r * block, min((r + 1) * block, length))
            n = at.stop - at.start
            out.want[0, at, j, :n] = np.linalg.inv(np.eye(n) + A.value[0, at, j, :n])
    for sm in (80, 90):
        yield make("Inverse of triangular blocks", "fla.ops.utils.solve_tril.solve_tril_16x16_kernel", sm, (rows, batch * heads, 1), 1,
                   dict(A=A, Ai=out, cu_seqlens=None, chunk_indices=None, T=i32(length)), (1e-5, 1e-4), H=heads, BT=block, USE_TMA=False,
                   IS_VARLEN=False, DOT_PRECISION="ieee")


KERNELS = [rms_norm, rms_norm_backward, layer_norm, layer_norm_backward, geglu, swiglu_backward, rope, softmax, poly_norm, cross_entropy,
           cumsum, chunk_states, chunk_outputs, attention, recurrent, inverse]


def every():
    for i, kernel in enumerate(KERNELS):
        yield from kernel(np.random.default_rng(i))
