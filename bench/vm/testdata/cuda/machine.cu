// A machine with a stack: what it does next is chosen among many cases, each
// thread with a program of its own.
extern "C" __global__ void machine(const unsigned char *code, int length, const int *input, int *out, int n)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n)
        return;
    int stack[8], sp = 0, acc = input[id], pc = 0, steps = 0;
    for (int i = 0; i < 8; i++)
        stack[i] = i;
    const unsigned char *p = code + id % 4 * length;
    while (steps++ < 200 && pc < length) {
        switch (p[pc++]) {
        case 0: acc += 3; break;
        case 1: acc *= 5; break;
        case 2: acc ^= acc << 3; break;
        case 3: stack[sp & 7] = acc; sp++; break;
        case 4: sp--; acc += stack[sp & 7]; break;
        case 5: if (acc & 1) pc++; break;
        case 6: pc = (acc & 7) < 4 ? 0 : pc; break;
        case 7: acc = acc / 3; break;
        case 8: acc = -acc; break;
        case 9: if (acc > 1000000) goto done; break;
        case 10: acc += stack[(sp + 7) & 7]; // and on
        case 11: acc -= 11; break;
        case 12: acc = acc % 1000; continue;
        case 13: acc += pc; break;
        default: acc++;
        }
    }
done:
    out[2 * id] = acc;
    out[2 * id + 1] = steps;
}
