# make gemm            set up, tune GEMM for RISC-V vectors, show the table     (ARGS="--budget 30s" goes to the command)
# make test            set up what tests need and run them all                  (ARGS="-k name" goes to pytest)
# make lint            ruff (rules and format), mypy, import contracts, clang-format
# make clean           remove .venv and build/
#
# As root, system packages come by apt; without root nothing outside the checkout and the user's cache is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
TEST_PACKAGES := g++ cmake pkg-config qemu-user libblas-test libblas3 python3-numpy openssh-server
ROOT_APT := $(shell [ "$$(id -u)" = 0 ] && command -v apt-get)
# Two distributions would own the command: one that an environment has under the bare name goes first.
FORMER = $(BIN)/python -m pip uninstall -qq -y tensorop 2>/dev/null || true
C_FILES = $(shell git ls-files '*.c' '*.h' '*.cu' '*.cuh' 2>/dev/null | grep -v '^tests/golden/')

.PHONY: gemm test lint clean
.DELETE_ON_ERROR:

gemm: $(VENV)/.installed $(VENV)/.emulator
	$(BIN)/tensorop gemm --platform rvv $(ARGS)

test: $(VENV)/.installed-dev $(VENV)/.test-packages $(VENV)/.emulator $(VENV)/.nvcc
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(if $(C_FILES),$(BIN)/clang-format --dry-run --Werror $(C_FILES))

clean:
	rm -rf $(VENV) build

# Debian keeps ensurepip in python3-venv; where that is absent, the system's pip puts one into a bare environment.
$(BIN)/pip:
	@$(if $(ROOT_APT),$(PYTHON) -c 'import ensurepip' 2>/dev/null || { $(APT) update -qq && $(APT) install -y -qq python3-venv; })
	@rm -rf $(VENV)
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(PYTHON) -m venv $(VENV); \
	else $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -q pip; fi

# --group needs pip 25.1.
$(VENV)/.pip: $(BIN)/pip
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.installed: $(VENV)/.pip pyproject.toml
	@$(FORMER)
	$(BIN)/python -m pip install -qq -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.pip pyproject.toml
	@$(FORMER)
	$(BIN)/python -m pip install -qq -e . --group dev
	@touch $@ $(VENV)/.installed

$(VENV)/.test-packages: Makefile | $(VENV)/.pip
ifneq ($(ROOT_APT),)
	@if ! dpkg -s $(TEST_PACKAGES) >/dev/null 2>&1; then \
	  $(APT) update -qq && $(APT) install -y -qq --no-install-recommends $(TEST_PACKAGES) >/dev/null; fi
endif
	@touch $@

# A QEMU without plug-ins (Debian 13's) does not serve: then one is unpacked into the cache, as without root.
$(VENV)/.emulator: | $(VENV)/.installed
ifneq ($(ROOT_APT),)
	@command -v qemu-riscv64 >/dev/null || { $(APT) update -qq && \
	  $(APT) install -y -qq --no-install-recommends qemu-user >/dev/null; } || true
endif
	$(BIN)/python -m tensorop.provision objdump
	$(BIN)/python -m tensorop.provision qemu riscv64
	$(BIN)/python -m tensorop.provision qemu aarch64
	@touch $@

# 102 MB; where it cannot be had, tests that need it are skipped.
$(VENV)/.nvcc: | $(VENV)/.installed $(VENV)/.test-packages
	$(BIN)/python -m tensorop.provision nvcc || true
	@touch $@
