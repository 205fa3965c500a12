#!/bin/bash
# compare_oclgrind.sh KGEN [OCLGRIND-KERNEL [ROUNDS]]: processor time of Oclgrind
# (Debian's package oclgrind) on the OpenCL twin of bench/vm/testdata/tiled_matmul.ptx
# over that of the virtual machine, whole commands in alternating runs: bare against
# bare, and both with checks of races and of uninitialised values against all checks.
set -e
kgen=$(realpath "$1") oclgrind=${2:-oclgrind-kernel} rounds=${3:-3}
cd "$(dirname "$0")/../bench/vm/testdata"
matrix=f32[128x128]

# spent COMMAND...: its processor time in seconds.
spent() { ( TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1 ) 2>&1 | awk '{ print $1 + $2 }'; }
ours() { spent "$kgen" check tiled_matmul.ptx --grid 4,4 --block 16,16 --checks "$1" --arg $matrix:random --arg $matrix:random --arg $matrix:none --arg i32=128 --arg i32=128 --arg i32=128; }
theirs() { ( cd opencl; spent "$oclgrind" "$@" tiled_matmul.sim ); }

# least LABEL N...: the smallest number.
least() { printf '%s\n' "$@" | sort -g | head -1; }
for kind in bare checked; do
	a=() b=()
	for _ in $(seq "$rounds"); do
		if [ $kind = bare ]; then
			a+=("$(theirs)") b+=("$(ours none)")
		else
			a+=("$(theirs --data-races --uninitialized)") b+=("$(ours all)")
		fi
	done
	a=$(least "${a[@]}") b=$(least "${b[@]}")
	awk -v kind=$kind -v a="$a" -v b="$b" 'BEGIN { printf "%-8s Oclgrind %.2f s, kgen %.3f s: %.0f times\n", kind, a, b, a / b }'
done
