# make library         set up, build a GEMM library of known kernels for this machine, without a search
# make gemm            set up, tune GEMM for RISC-V vectors, show the table     (ARGS="--budget 30s" goes to the command)
# make test            set up what tests need and run those that cover each thing once (ARGS="-k name" goes to pytest)
# make test-all        the same with all products of these and with long attacks
# make times           run all tests and write tests/times.json, or the tests of one file (ARGS=FILE)
# make test-latest     the same tests with the newest versions that pyproject.toml allows, in .venv-latest/
# make test-blas       BLAS's, LAPACK's, NumPy's and SciPy's own tests on a library of `tensorop blas --no-search`
# make test-torch      the tests in tests/pytorch/ with PyTorch, in .venv-torch/; PyTorch takes 6 GB of disk
# make results         docs/results/, plots and README's rows again, from the records in benchmarks/results/
# make lint            ruff (rules and format), mypy, import contracts, clang-format
# make reference       write the pages of docs/reference/ that the code decides
# make docs            build the site of docs/ into build/site/, strict about links and anchors
# make lock            write the lock files again, with today's newest versions
# make clean           remove .venv, .venv-latest, .venv-torch and build/
#
# The environment has the exact versions of the lock files, by their hashes. As root, system packages come by apt; without root nothing outside the checkout and the user's cache is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
TEST_PACKAGES := g++ gfortran cmake pkg-config qemu-user libblas-test libblas3 python3-numpy openssh-server
ROOT_APT := $(shell [ "$$(id -u)" = 0 ] && command -v apt-get)
PIP = $$( [ -x $(BIN)/pip ] && echo $(BIN)/python -m pip || echo $(PYTHON) -m pip --python $(BIN)/python )
# Two distributions would own the command: one that an environment has under the bare name goes first.
FORMER = $(PIP) uninstall -qq -y tensorop 2>/dev/null || true
LOCK_WITH = build/lock/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --upgrade \
  --custom-compile-command 'make lock' --group build
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
C_FILES = $(shell git ls-files '*.c' '*.h' '*.cu' '*.cuh' 2>/dev/null | grep -v '^tests/golden/')

.PHONY: library gemm test test-all test-blas times test-latest test-torch with-torch results lint reference docs lock clean
.DELETE_ON_ERROR:

library: $(VENV)/.installed
	$(BIN)/tensorop gemm --no-search $(ARGS)

gemm: $(VENV)/.installed $(VENV)/.emulator
	$(BIN)/tensorop gemm --platform rvv $(ARGS)

test: test-setup
	$(PYTEST) --extended none $(ARGS)

test-all: test-setup
	$(PYTEST) $(ARGS)

times: test-setup
	$(PYTEST) --record-times $(ARGS)

test-latest:
	+$(MAKE) test-all VENV=.venv-latest LATEST=1

test-blas: test-setup
	[ -d build/test-blas/lib ] || $(BIN)/tensorop blas --no-search --out build/test-blas
	$(PYTEST) tests/compiler/test_netlib.py tests/compiler/test_blas_testers.py --blas build/test-blas $(ARGS)

test-torch:
	+$(MAKE) with-torch VENV=.venv-torch

with-torch: $(VENV)/.installed-torch
	$(BIN)/python -m pytest tests/pytorch $(ARGS)

results: $(VENV)/.installed
	$(BIN)/python -m benchmarks.render

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(if $(C_FILES),$(BIN)/clang-format --dry-run --Werror $(C_FILES))

reference: $(VENV)/.installed
	$(BIN)/python docs/generate/reference.py

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/generate/build_site.py

# Both hold for every Python and machine that pyproject.toml allows; what the two share has one version.
lock:
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install -q --upgrade uv
	$(LOCK_WITH) --group dev -o requirements-dev.lock pyproject.toml
	$(LOCK_WITH) -c requirements-dev.lock -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .venv-latest .venv-torch build

# Debian keeps ensurepip in python3-venv; where that is absent, the system's pip fills an environment that has none.
$(BIN)/python:
	@$(if $(ROOT_APT),$(PYTHON) -c 'import ensurepip' 2>/dev/null || { $(APT) update -qq && $(APT) install -y -qq python3-venv; })
	@rm -rf $(VENV)
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || bare=--without-pip; $(PYTHON) -m venv $$bare $(VENV)

# $(1): the lock file, $(2): the dependency group that it holds beside the dependencies
ifdef LATEST
define install
	$(PIP) install -qq --disable-pip-version-check --upgrade pip setuptools wheel
	$(PIP) install -qq --upgrade --no-build-isolation -e . $(addprefix --group ,$(2))
endef
else
define install
	$(PIP) install -qq --disable-pip-version-check --require-hashes -r $(1)
	@$(FORMER)
	$(PIP) install -qq --no-deps --no-build-isolation -e .
endef
endif

$(VENV)/.installed: $(BIN)/python requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python requirements-dev.lock pyproject.toml
	$(call install,requirements-dev.lock,dev)
	@touch $@ $(VENV)/.installed

.PHONY: test-setup
test-setup: $(VENV)/.installed-dev $(VENV)/.test-packages $(VENV)/.emulator $(VENV)/.nvcc $(VENV)/.mca

# The newest PyTorch that pyproject.toml allows: the lock files leave it out.
$(VENV)/.installed-torch: $(VENV)/.installed-dev
	$(PIP) install -qq --no-build-isolation -e '.[torch]'
	@touch $@

$(VENV)/.test-packages: Makefile | $(BIN)/python
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

# 102 and 60 MB; where one cannot be had, tests that need it are skipped.
$(VENV)/.nvcc $(VENV)/.mca: $(VENV)/.%: | $(VENV)/.installed $(VENV)/.test-packages
	$(BIN)/python -m tensorop.provision $* || true
	@touch $@
