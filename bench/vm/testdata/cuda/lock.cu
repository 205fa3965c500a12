// Locks that a warp's lanes take from one another, and a stack without locks.
__device__ void take(int *lock)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence();
}

__device__ void leave(int *lock)
{
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void spin(int *locks, volatile int *counters, int kinds)
{
    int k = (threadIdx.x + blockIdx.x) % kinds;
    take(&locks[k]);
    counters[k] = counters[k] + 1;
    leave(&locks[k]);
}

// The same with the critical section inside the loop.
extern "C" __global__ void spinInside(int *lock, volatile int *counter)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *counter = *counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

extern "C" __global__ void ticket(unsigned *next, volatile unsigned *serving, unsigned *log, int *length)
{
    unsigned mine = atomicAdd(next, 1);
    while (*serving != mine)
        ;
    __threadfence();
    log[*length] = blockIdx.x * blockDim.x + threadIdx.x;
    *length = *length + 1;
    __threadfence();
    *serving = mine + 1;
}

struct node {
    int value;
    unsigned next;
};

extern "C" __global__ void push(node *nodes, unsigned *head, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    nodes[i].value = i * 3;
    unsigned old = *(volatile unsigned *)head, seen;
    do {
        seen = old;
        nodes[i].next = seen;
        __threadfence();
        old = atomicCAS(head, seen, i + 1);
    } while (old != seen);
}
