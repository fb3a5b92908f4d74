# Everything here needs Python 3.11 or later and a C compiler, and no more: each target makes .venv, installs
# what it needs into it once, and runs.
#
#   make demo    digits: trained, saved, read from C              make lint    ruff and mypy
#   make test    the whole test suite (JOBS=2 processes)           make docs    rewrite the generated pages
#   make test-gpu  the tests of GPUs on the machine's own, which `make test` runs over a fake of its driver; then those
#                of layers and gradients with all of their tensors there
#   make test-gpu-sanitized  the table of ops on a GPU under NVIDIA's compute-sanitizer (SANITIZER=/path/to/it)
#   make bench   measure beside the peers that are installed       make clean   remove what was built
#   make array-api-tests  the conformance tests of the array API standard, cloned into build/ or from SUITE=path, and the
#                table of them in docs/numpy.md
#   make onnx-tests  ONNX's own tests of its ops, and the table of them in docs/onnx.md
#   make web-tests   the pages of tf.export.web in Chromium (TWOFOLD_BROWSER=/path/to/it), their libraries in Node.js
#   make clients     the tests of libraries that are written for TensorFlow, on it and on twofold under its name, in an
#                environment that is made in CLIENTS=~/.cache/twofold-clients, and the table of them in docs/coverage.md
#   make keras-files  files of models between tf.keras, Keras on twofold and Keras on TensorFlow, in that environment
#   make serve-load  requests a second of `twofold serve`, and their times, as docs/serving.md has them
#   make fuzz    random programs in both modes, bad values, integer arguments, threads, gradients in every placement of
#                tapes and decorators; each for TIME=600 seconds, from SEED=...;
#                10,000 damaged ONNX files and 5,000 damaged folders of TensorFlow's
#
# PYTHON=... picks the interpreter for a new .venv; VENV=... puts it elsewhere; ARGS=... reaches pytest or the benchmark.

VENV ?= .venv
JOBS ?= 2
ARGS ?=
BIN := $(VENV)/bin
SANITIZER ?= compute-sanitizer
ON_GPUS := tests/keras/test_layers.py tests/keras/test_fit.py tests/tracer/test_gradients_ops.py
ROOMS := ir codegen runtime eager tracer

# The first interpreter that runs, is recent enough and can make environments.
define FIND_PYTHON
for python in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3; do \
    "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
        >/dev/null 2>&1 && echo "$$python" && exit 0; \
done; \
echo "twofold needs Python 3.11 or later with the venv module; there is none (PYTHON=/path/to/python names one)" >&2; \
exit 1
endef

.PHONY: demo test test-gpu test-gpu-sanitized lint bench docs array-api-tests onnx-tests fuzz clean web-tests serve-load \
    clients keras-files
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python examples/digits.py

test: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

test-gpu: $(VENV)/.dev
	TWOFOLD_TEST_GPU=1 $(BIN)/pytest $(ARGS) tests/gpu
	TWOFOLD_TEST_GPU=1 PYTHONPATH=tests $(BIN)/pytest -p gpu.everywhere $(ARGS) $(ON_GPUS)

test-gpu-sanitized: $(VENV)/.dev
	for tool in memcheck racecheck synccheck; do \
	    TWOFOLD_TEST_GPU=1 $(SANITIZER) --tool $$tool --error-exitcode 1 $(BIN)/python -m pytest $(ARGS) \
	        tests/gpu/test_ops.py -k test_the_op_table || exit 1; \
	done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	rm -rf build/types && mkdir -p build/types/twofold
	ln -s "$(CURDIR)"/twofold/* build/types/twofold/
	for room in $(ROOMS); do ln -s "$(CURDIR)/$$room" build/types/twofold/$$room; done
	$(BIN)/mypy

bench: $(VENV)/.demo
	$(BIN)/python benchmarks/runner.py $(ARGS)

fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/run.py --time $(or $(TIME),600) $(if $(SEED),--seed $(SEED)) $(ARGS)
	$(BIN)/python tests/fuzz/bad_values.py --time $(or $(TIME),600) $(if $(SEED),--seed $(SEED))
	$(BIN)/python tests/fuzz/run_integers.py --time $(or $(TIME),600) $(if $(SEED),--seed $(SEED))
	$(BIN)/python tests/fuzz/threads.py --time $(or $(TIME),600) $(if $(SEED),--seed $(SEED))
	$(BIN)/python tests/fuzz/placements.py --time $(or $(TIME),600) $(if $(SEED),--seed $(SEED))
	$(BIN)/python tests/fuzz/onnx_mutations.py --count 10000 $(if $(SEED),--seed $(SEED))
	$(BIN)/python tests/fuzz/saved_model_mutations.py --count 5000 $(if $(SEED),--seed $(SEED))

docs: $(VENV)/.demo
	$(BIN)/python docs/generate.py

onnx-tests: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python tests/onnx_files/node_tests.py --write
	PYTHONPATH=tests $(BIN)/python tests/onnx_files/node_tests.py --kind=simple --kind=pytorch-operator \
		--kind=pytorch-converted

array-api-tests: $(VENV)/.dev
	$(BIN)/python tests/standard/suite.py $(SUITE) --jobs $(JOBS) --write $(ARGS)

web-tests: $(VENV)/.dev
	$(BIN)/pytest $(ARGS) tests/export/test_web.py tests/export/test_web_threads.py tests/cli/test_draw_a_digit.py

clients: $(VENV)/.dev
	$(BIN)/python tests/clients/run.py $(if $(CLIENTS),--folder $(CLIENTS)) --jobs $(JOBS) $(ARGS)
	$(BIN)/python docs/generate.py

keras-files: $(VENV)/.dev
	$(BIN)/python tests/clients/keras_files.py $(if $(CLIENTS),--python $(CLIENTS)/environment/bin/python) $(ARGS)

serve-load: $(VENV)/.dev
	$(BIN)/python benchmarks/serve.py load $(or $(ARGS),--rounds 5 --seconds 2)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	python=$$($(FIND_PYTHON)) && "$$python" -m venv --clear $(VENV)
	touch $@

# One stamp for the environment and one for each extra, which is installed again when pyproject.toml changes.
$(VENV)/.%: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@
