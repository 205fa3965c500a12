// Breadth-first search, a level a launch: the frontier's threads claim their
// neighbours and queue them.
extern "C" __global__ void bfs(const int *first, const int *edges, int *level, const int *queue, int length, int *next, int *count, int depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length)
        return;
    int node = queue[i];
    for (int e = first[node]; e < first[node + 1]; e++) {
        int to = edges[e];
        if (atomicCAS(&level[to], -1, depth) == -1)
            next[atomicAdd(count, 1)] = to;
    }
}
