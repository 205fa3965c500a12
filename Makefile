.PHONY: toolchain

toolchain: ## unpack NVRTC, ptxas and nvdisasm into .toolchain/
	@.ci/toolchain.sh
