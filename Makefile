golangci := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 10s
MUTATIONTIME ?= 4h
# Judgements of mutants, so that a run which was stopped goes on; `make clean` removes them, as a change of the virtual machine asks for.
MUTATIONS    ?= bin/mutations
# The packages of this repository that match a word in their tests.
testing   = $(shell git grep -l $(1) -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: vm-tcgen05 vm-tensor vm-numerics vm-foreign mutation tuner-score library-ratio build build-cuda test-cuda toolchain tune test verify-full cross bench lint fmt fuzz-short golden clean help

build: ## build bin/kgen
	go build -trimpath -o bin/kgen ./cmd/kgen

# A header and a linker script of our own stand in for CUDA's: see bench/cuda.
cuda = CGO_CFLAGS="-O2 -I$(CURDIR)/bench/cuda/include" CGO_LDFLAGS="-L$(CURDIR)/bench/cuda/lib" go
BIN ?= bin/kgen-cuda

build-cuda: ## build bin/kgen-cuda, which runs kernels on a GPU; as a whole under the GPL
	$(cuda) build -trimpath -tags cuda -o $(BIN) ./cmd/kgen

test-cuda: ## test the GPU backend on a driver that is a program of the tests
	$(cuda) vet -tags cuda ./bench/cuda
	$(cuda) test -tags cuda ./bench/cuda
	$(cuda) test -tags cuda ./cmd/kgen -run TestScripts/cuda

toolchain: ## unpack NVRTC, ptxas and nvdisasm into .toolchain/
	.ci/toolchain.sh

tune: build ## set everything up and tune flash attention for an H100
	-.ci/toolchain.sh
	bin/kgen tune flashattn --gpu h100

test: ## vet, and run the tests on a seeded sample of the cases
	go vet ./...
	go test -timeout 20m ./...

verify-full: cross ## run every case, and the tests of what runs in parallel with the race detector
	KGEN_FULL=1 KGEN_SAMPLES=64 RAPID_SEED=0 RAPID_CHECKS=500 go test -timeout 4h ./...
	go test -race ./bench/vm ./codegen/cache ./codegen/nvrtc ./tune/...

cross: ## build without cgo and for the other systems
	CGO_ENABLED=0 go build -o /dev/null ./cmd/kgen
	CGO_ENABLED=0 GOOS=darwin go vet ./...
	CGO_ENABLED=0 GOOS=windows go vet ./...

compare-triton: build toolchain ## compile the same tiles with Triton (from PyPI, in .toolchain/triton) into docs/compare-triton.md
	test -x .toolchain/triton/bin/python || python3 -m venv .toolchain/triton
	.toolchain/triton/bin/pip install --quiet --disable-pip-version-check triton==3.9.0 numpy
	.toolchain/triton/bin/python .ci/compare_triton.py bin/kgen .toolchain/nvidia/cu13/bin/nvdisasm docs/compare-triton.md

vm-tcgen05: ## show what the virtual machine has of tcgen05: forms, products and kernels tried, speed
	.ci/vm_table.sh '^tcgen05' 'TestTensor(Across|UnpackedA|Faults|Allocation|Counts|.*Flights|Copies|Shift|Scales|Sparse|ZeroColumns|Moves|Halves|LoadReduction|Products)|TestStrictTensor' \
		'sm100' 'Exact/^tcgen05'

vm-tensor: ## the same of mma, wgmma, wmma, ldmatrix, stmatrix and tensor copies
	.ci/vm_table.sh '^(w?mma|wgmma|ldmatrix|stmatrix|movmatrix|cp.*tensor|tensormap)' 'TestMma.*|TestQuadMma|TestWgmma.*|TestWmma.*|TestCuteTraits|TestLdmatrix.*|TestStmatrix.*|TestIm2col.*|TestTensor(Gather|Scatter|RowFaults|Loads|Stores|Reductions|Map.*)|TestPackedTensor.*' \
		'^(matmul|attention|cute|fla|tma|cluster_tma).*sm[89]0' 'Exact/^(mma|wgmma)'

vm-numerics: ## the same of sums as tensor cores add them: products that GPUs computed, exact references, speed
	.ci/vm_table.sh '^(w?mma|wgmma.mma_async|tcgen05.mma)$$' 'TestMeasuredTensorCores|TestFused.*|TestMmaSmallFloats|TestMmaDouble|TestTensorOperations' \
		'^(matmul|scaled)' 'Exact|Tensor/.*/exact'

foreign = .toolchain/foreign
vm-foreign: build toolchain ## run CUB's, CuTe's and Triton's kernels of others (from PyPI, in .toolchain/foreign) into docs/foreign.md
	test -x $(foreign)/bin/python || python3 -m venv $(foreign)
	$(foreign)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement .ci/foreign/triton.txt
	test -d $(foreign)/packages/nvidia || $(foreign)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile \
		--target $(foreign)/packages --requirement .ci/foreign/packages.txt
	TRITON_CACHE_DIR=$(foreign)/cache $(foreign)/bin/python .ci/foreign/foreign.py bin/kgen .toolchain/nvidia/cu13/lib/libnvrtc.so.13 \
		$(foreign)/packages $(foreign)/work docs/foreign.md

bench: ## run the benchmarks
	go test -run '^$$' -bench . ./...

tuner-score: ## measure the search strategies on published spaces, into docs/tuner-score.md
	go run ./tune/replay/tunerscore -out docs/tuner-score.md testdata/tuning/*.csv.gz

library-ratio: ## set predicted times beside what libraries were measured to take, into docs/library-ratio.md
	go run ./tune/libraryratio -out docs/library-ratio.md

mutation: ## change kernels in one place at a time and see what the virtual machine finds, into docs/mutation.md
	KGEN_TOOLCHAIN="$${KGEN_TOOLCHAIN:-$(CURDIR)/.toolchain}" go run ./cmd/mutation -budget $(MUTATIONTIME) -record $(MUTATIONS) -out docs/mutation.md

lint: ## run the linters
	go run $(golangci) run ./...

fmt: ## format the code
	go run $(golangci) fmt ./...

fuzz-short: ## fuzz every target for FUZZTIME
	@set -e; for dir in $(call testing,'^func Fuzz'); do \
		for f in $$(go test -list '^Fuzz' $$dir | grep ^Fuzz); do \
			go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$dir; done; done

golden: ## write the golden files again
	go test $(call testing,'flag.*"update"') -update

clean: ## remove what was built; .toolchain/ stays
	rm -rf bin
	go clean -testcache

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' Makefile | column -t -s '|'
