#!/bin/sh
# Unpacks the wheels pinned in toolchain.txt into .toolchain/nvidia at the
# project's root. The stamp is written last, so a run killed half-way counts as
# no run; runs at the same time wait for each other where flock exists.
set -eu
cd "$(dirname "$0")/.."
want=.ci/toolchain.txt
dir=.toolchain
stamp=$dir/stamp

explain() {
	cat >&2 <<-EOF
	toolchain: $1
	toolchain: without it NVRTC, ptxas and nvdisasm are missing unless a CUDA toolkit is
	toolchain: installed (CUDA_HOME, /usr/local/cuda and PATH are searched). Emitting CUDA C
	toolchain: and direct PTX, and running PTX on the virtual machine, need none of them.
	EOF
	exit 1
}

complete() {
	cmp -s "$want" "$stamp" && [ -x $dir/nvidia/cu13/bin/ptxas ] &&
		[ -e $dir/nvidia/cu13/lib/libnvrtc.so.13 ]
}

complete && exit 0
mkdir -p $dir
if [ "${1-}" != locked ] && command -v flock >/dev/null; then
	exec flock $dir/lock .ci/toolchain.sh locked
fi
complete && exit 0

python=$(command -v "${PYTHON:-python3}") || explain "${PYTHON:-python3} is not on PATH"
"$python" -m pip --version >/dev/null 2>&1 || explain "$python has no pip (python3 -m ensurepip may add it)"

rm -rf $dir/new "$stamp"
PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location \
	--no-deps --require-hashes --only-binary :all: --no-compile \
	--target $dir/new --requirement "$want" ||
	explain "pip could not fetch the wheels of $want (network down, or no wheel for $(uname -sm))"
rm -rf $dir/nvidia
mv $dir/new/nvidia $dir/nvidia
rm -rf $dir/new
cp "$want" $dir/stamp.new
mv $dir/stamp.new "$stamp"
echo "toolchain: NVRTC, ptxas and nvdisasm are in $dir" >&2
