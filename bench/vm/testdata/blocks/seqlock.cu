// A writer counts up before and after it writes; readers read again when they met it.
// launch: grid=4 block=1
// slip global-race: volatile unsigned *data => unsigned *data
extern "C" __global__ void k(unsigned *x, volatile unsigned *y, unsigned *z)
{
    volatile unsigned *data = x;
    if (blockIdx.x == 0) {
        for (unsigned r = 0; r < 4; r++) {
            y[0] = 2 * r + 1;
            __threadfence();
            data[0] = r;
            data[1] = r * r;
            __threadfence();
            y[0] = 2 * r + 2;
        }
        return;
    }
    unsigned before, after, a, b;
    do {
        before = y[0];
        __threadfence();
        a = data[0];
        b = data[1];
        __threadfence();
        after = y[0];
    } while (before != after || before % 2 == 1);
    z[blockIdx.x] = a * a == b;
}
