# `make climb` times the CPU and GPU ladders; `make test` runs the quick tests, `make test-all` all of them; `make lint` checks the code.
# Each installs what it needs first. PYTHON=/path/to/python3.12 picks an interpreter for the virtual environment.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && { echo $$p; exit; }; done; echo python3)

# What the published figures are measured at; half an hour on a machine that does nothing else.
SIZES := 64,96,128,192,256,384,512,768,1000,1023,1024,1536,2048,3072
PACKED := 4x4096x4096,12x4096x4096,16x4096x4096,32x4096x4096,64x4096x4096,16x1024x1024,16x512x512,256x1024x1024,1024
SKINNY := 4096x64x4096,64x4096x4096,4096x4096x64,16x4096x4096,1x4096x4096
PEERS := openblas:best,mkl,onednn
SMALL := 32,64,96,128
SUMS := 2^10,2^12,2^14,2^16,2^18,2^20,2^22,2^24,2^26,2^28
# Caches are simulated beside and on powers of two; 128 rows are enough where B is larger than L2.
CACHED := 250,256,128x1000x1000,128x1024x1024
CACHES := --l1 48K/12 --l2 2M/16
# The sizes of the source's tables of one core, and the rungs on one.
SOURCE_SIZES := 64,128,256,512,1024
ONE_CORE := naive_ijk loop_reorder_ikj blas_naive cache_block packed microkernel
# A folder for each processor model. What the pages show is chosen in makers/blocks/records.py.
RESULTS = benchmarks/results/cpu-$(shell $(BIN)/python -c "from gemmlab.core.hardware import cpu_info; print(cpu_info().slug)")

EMULATED := benchmarks/results/emulated

# What the published figures of a GPU are measured at; half an hour. The ladder of float32, and that of tensor cores beside it.
H200 := benchmarks/results/h200
RUNGS = $$($(BIN)/gemmlab list --rungs --op gemm --device cuda --precision
SIMT = $(RUNGS) float32)
TENSOR = $(RUNGS) tf32)
CLOSE := )
PARTS = $(foreach p,by_tile f16x3 bf16x6 bf16x9 tf32x3,$(RUNGS) $(p)$(CLOSE))
GPU_SIZES := 64,128,256:4096:128,8192
GPU_SUMS := $(SUMS),2^25,2^30
# Sums along axes, OUTERxLENGTHxINNER: rows, columns, middle axes, few and many, aligned and not, and whole sums.
GPU_AXES := 4096x4096x1,1x4096x4096,2^20x16x1,1x2^20x16,16x2^20x1,1x16x2^20,1024x1024x64,64x65536x1,1x64x65536,1x65536x64
GPU_AXES := $(GPU_AXES),256x256x1,1x256x256,1000x1000x1,1x1000x1000,2^20x3x1,1x2^20x3,2^20x100x1,1x4095x4095,4095x4095x1
GPU_AXES := $(GPU_AXES),65536x16x3,128x512x1,32x3136x256,8x2^22x1,1x2^12x1,1x2^14x1,1x2^16x1,1x2^20x1,1x2^24x1,1x2^28x1
# Views: every second or fourth element of a row, every second column, rows of wider arrays. A transposed array is one of the others.
GPU_AXES := $(GPU_AXES),4096x4096x1:step2,1x4096x4096:step2,4096x1024x1:step4,1x2^22x1:step2,1024x512x64:step2
GPU_AXES := $(GPU_AXES),4096x4096x1:ld+4,4096x4095x1:ld+1,1x4096x4095:ld+1,2^18x16x1:ld+16,512x512x60:ld+4
ON_GPU := --device cuda --processes 1 --no-naive
# The libraries beside the library call; the last one is only quoted.
BESIDE := torch,cupy,cublas,cublaslt

.PHONY: climb test test-all fuzz fuzz-record lint wheel results source-tables gpu-results gpu-sweep corrections regret counts tables docs install clean
.DEFAULT_GOAL := climb

climb: $(STAMP)
	$(BIN)/gemmlab climb

# A process for each core; the tests of one file stay together, since they share what was compiled and run.
PYTEST = $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

# Slow tests are left out and long lists of cases thinned: five minutes on two cores. It needs no GPU.
test: $(STAMP)
	$(PYTEST) --quick

# Every test and every case, some seventy minutes on two cores; its result is recorded.
test-all: $(STAMP)
	$(PYTEST) --record-run=benchmarks/results/tests.json
	$(BIN)/python makers/build_tables.py

# Look for wrong results with random input: each fuzzer of tests/fuzz for SECONDS, one after another on each core.
SECONDS := 600
fuzz: $(STAMP)
	$(BIN)/python -m pytest tests/fuzz --numprocesses auto --timeout 0 --fuzz-seconds $(SECONDS) $(FUZZ)

# Check a million random products one after the other, some ten minutes on one core, and leave a record of them.
PRODUCTS := 1000000
fuzz-record: $(STAMP)
	$(BIN)/python makers/fuzz_products.py --products $(PRODUCTS)
	$(BIN)/python makers/build_tables.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

# The wheel in dist/, with the machine code of the GPU kernels; minutes for the first one, which compiles them.
wheel: $(STAMP)
	GEMMLAB_MACHINE_CODE=require $(BIN)/python -m build --wheel --no-isolation

# Measure everything that README.md and docs/ show, then fill it in.
results: $(STAMP)
	mkdir -p $(RESULTS)
	$(BIN)/gemmlab climb --out $(RESULTS)
	rm -f $(RESULTS)/climb.png
	$(BIN)/gemmlab bench --sizes $(SIZES),$(SKINNY) --peers $(PEERS) --threads 1,2 --save $(RESULTS)/gemm.json
	$(BIN)/gemmlab bench --packed --sizes $(PACKED) --peers $(PEERS) --threads 1,2 --no-naive --rounds 11 --save $(RESULTS)/packs.json
	$(BIN)/gemmlab bench --precision float32 --sizes $(SIZES) --peers $(PEERS) --threads 1,2 --save $(RESULTS)/float32.json
	$(BIN)/gemmlab bench --sizes $(SMALL) --peers numpy:best --threads 1,2 --save $(RESULTS)/small.json
	$(BIN)/gemmlab bench --op reduce --sizes $(SUMS) --threads 1,2 --rounds 9 --save $(RESULTS)/reduce.json
	$(MAKE) source-tables
	$(BIN)/python makers/many_cores.py $(RESULTS)/many-cores.json 120
	$(BIN)/gemmlab cache --sizes $(CACHED) $(CACHES) --save $(RESULTS)/cache.json
	$(BIN)/gemmlab cache packed microkernel --sizes 128,256,512,1024 $(CACHES) --save $(RESULTS)/packing.json
	$(BIN)/python makers/build_tables.py

# The tables of the CPU ladder's source, made again: every rung at every size, its AVX2 tile, oneDNN. Some five minutes.
source-tables: $(STAMP)
	mkdir -p $(RESULTS)
	$(BIN)/gemmlab bench $(ONE_CORE) --sizes $(SOURCE_SIZES) --peers onednn --rounds 5 --processes 2 --no-naive \
		--save $(RESULTS)/ladder.json
	$(BIN)/gemmlab bench microkernel --config LANES=8 --config LANES=0 --sizes $(SOURCE_SIZES) --peers onednn --no-naive \
		--save $(RESULTS)/ladder-tiles.json
	$(BIN)/python makers/build_tables.py

# The same on a GPU: the ladders by size, configurations, sums, and what Nsight Compute says. No table is written over.
gpu-results: $(STAMP)
	$(BIN)/gemmlab climb --device cuda --out $(H200)
	$(BIN)/gemmlab bench $(SIMT) $(ON_GPU) --sizes $(GPU_SIZES) --peers cublas,torch --rounds 5 --save $(H200)/gemm.json
	$(BIN)/gemmlab bench $(TENSOR) $(ON_GPU) --sizes 256,512,1024,2048,4096,8192 --peers cublas:tf32,torch:tf32 --rounds 7 \
		--save $(H200)/tf32.json
	$(BIN)/gemmlab bench $(PARTS) $(ON_GPU) --sizes 1024,2048,4096,8192 --peers cublas --rounds 5 --save $(H200)/parts.json
	$(BIN)/gemmlab bench wmma_tf32_pipelined $(ON_GPU) $(foreach s,2 3 4,--config STAGES=$s,MODULO=0 --config STAGES=$s,MODULO=1) \
		--sizes 2048,4096 --peers none --rounds 7 --save $(H200)/tf32-stages.json
	$(BIN)/gemmlab bench $(ON_GPU) --suite --reproducible --peers $(BESIDE) --rounds 7 --save $(H200)/suite.json
	$(BIN)/gemmlab bench --op batch $(ON_GPU) --suite --peers $(BESIDE) --rounds 7 --save $(H200)/suite-batches.json
	$(BIN)/gemmlab bench --op group $(ON_GPU) --suite --peers torch,cupy,cublas --rounds 7 --save $(H200)/suite-groups.json
	$(BIN)/gemmlab bench $(ON_GPU) --suite --precision tf32 --peers torch:tf32,cublas:tf32 --rounds 7 --save $(H200)/suite-tf32.json
	$(BIN)/gemmlab bench $(ON_GPU) --suite --precision float32,highest --peers cublas --rounds 5 --no-verify \
		--save $(H200)/suite-float32.json
	$(BIN)/gemmlab bench --op reduce $(ON_GPU) --sizes $(GPU_SUMS) --peers torch,cupy --rounds 7 --save $(H200)/reduce.json
	$(BIN)/gemmlab bench --op sums $(ON_GPU) --sizes $(GPU_AXES) --peers torch,cupy --rounds 7 --save $(H200)/reduce-axes.json
	$(BIN)/gemmlab bench $(SIMT) $(ON_GPU) --configs 8 --sizes 512,1024,2048,4096 --peers cublas --rounds 3 \
		--save $(H200)/configs.json
	$(BIN)/gemmlab bench block_swizzle $(ON_GPU) --config ORDER=0 --config ORDER=1,GROUP=8 --config ORDER=2,GROUP=4 \
		--config ORDER=2,GROUP=8 --config ORDER=2,GROUP=16 --sizes 4096,8192 --peers cublas --rounds 3 \
		--save $(H200)/configs-swizzle.json
	$(BIN)/python makers/gpu_overhead.py $(H200)/overhead.json
	$(BIN)/python makers/time_claims.py --again
	$(BIN)/python makers/block_to_sm.py
	$(BIN)/python makers/compiler_options.py
	$(BIN)/python makers/streams.py
	$(BIN)/python makers/triton_beside.py $(H200)/triton.json
	$(BIN)/python makers/ncu_ladder.py profile $(H200)/ncu.json --sizes 512,2048,4096
	$(BIN)/python tests/emulated/counters/ncu_record.py --out $(H200)

# Time the kernels that the library may choose on a GPU, some twelve minutes, and make the tables of its choice anew.
SWEEP = $(BIN)/python makers/sweep_kernels.py --repeats 7
CANDIDATES := --kernels @makers/candidates
DECODE := 256*1x2048x128:nt,256*1x128x2048,256*4x2048x128:nt,256*8x128x2048
SEAMS := 769,1537,3073,1025x2049x513,2049x513x1025:nt,1537x1025x2000:tn,4097x1025x300:tt
VECTORS := 1x1x65536,1x1x4194304,1000x1x1000,256x1x16384,4096x1x4096:tn,1x1000x1000,1x65536x256
LARGE := 640,896,1152,1280,1408,1664,1792,2049,3073,12288,16384
TILES := 512:1024:128,1000,1023,1152:1792:128,1920,2047,2048,2049,2304,2560,3072
FLAT := 4095x4096x31,4096x4097x32,4096x4096x32,4096x4096x31
SHORT := 65536x64x64:nt,64x65536x64:tn,65536x64x64:tt:ld+4,16384x128x128,128x16384x128:nt,20000x96x33,300000x24x24
SHORT := $(SHORT),46872x296x12,32x218044x4:tt,92x143392x8,346764x12x108,72161x1365x2:tt,273160x64x62
gpu-sweep: $(STAMP)
	$(SWEEP) $(H200)/sweep.jsonl $(CANDIDATES).txt --suite --random 20261122:120 --most-steps 35
	$(SWEEP) $(H200)/sweep-random.jsonl --kernels table --random 4711:100
	$(SWEEP) $(H200)/sweep-random.jsonl --kernels table --random 20261123:160 --most-steps 34
	$(SWEEP) $(H200)/sweep-hopper.jsonl $(CANDIDATES)-hopper.txt --suite --random 20261122:40 --most-steps 35
	$(SWEEP) $(H200)/sweep-batches.jsonl $(CANDIDATES)-batches.txt --op batch --family batches \
		--sizes '32*512x64x512,32*512x512x64:nt,128*256,$(DECODE)'
	$(SWEEP) $(H200)/sweep-shapes.jsonl $(CANDIDATES).txt --sizes '$(SEAMS),$(VECTORS),$(FLAT)'
	$(SWEEP) $(H200)/sweep-tiles.jsonl $(CANDIDATES)-tiles.txt --sizes '$(TILES)' --layouts nn,nt,tn,tt
	$(SWEEP) $(H200)/sweep-tiles.jsonl $(CANDIDATES)-tiles.txt --suite --random 20261122:120 --most-steps 35
	$(SWEEP) $(H200)/sweep-tiles.jsonl $(CANDIDATES)-tiles.txt --random 4711:100
	$(SWEEP) $(H200)/sweep-tiles.jsonl $(CANDIDATES)-tiles.txt --random 20261123:160 --most-steps 34
	$(SWEEP) $(H200)/sweep-short.jsonl $(CANDIDATES).txt --family flat --sizes '$(SHORT)' --random 20261124:150 --most-k 128
	$(SWEEP) $(H200)/sweep-large.jsonl $(CANDIDATES)-large.txt --suite --sizes '$(LARGE)'
	gzip -9f $(H200)/sweep.jsonl $(H200)/sweep-random.jsonl $(H200)/sweep-batches.jsonl $(H200)/sweep-shapes.jsonl \
		$(H200)/sweep-hopper.jsonl $(H200)/sweep-tiles.jsonl $(H200)/sweep-large.jsonl $(H200)/sweep-short.jsonl
	rm -f $(H200)/sweep-hopper-later.jsonl.gz  # kernels that were added since: they are in sweep-hopper now
	$(BIN)/python makers/choices.py

# Trees that correct the library's estimates on a GPU, from times at random products, the most doubtful of others among them. It
# needs lightgbm; see docs/dependencies.md. The record likely-wide has 32 candidates a product; more than 20 gained nothing.
LIKELY = $(BIN)/python makers/likely_times.py $(H200)/likely
DOUBTFUL = $(BIN)/python makers/doubtful_products.py
FIT = $(BIN)/python makers/correction_fit.py
corrections: $(STAMP)
	$(LIKELY).jsonl.gz --random 20261130:10000 --seconds 530
	$(FIT)
	$(LIKELY)-near.jsonl.gz --random 20261201:12000 --within 1.25 --seconds 300
	$(FIT)
	$(DOUBTFUL) 20261203:30000 $(H200)/doubtful.jsonl.gz --keep 6000
	$(LIKELY)-doubtful.jsonl.gz --products $(H200)/doubtful.jsonl.gz --within 1.3 --seconds 330
	$(LIKELY)-wide.jsonl.gz --random 20261202:6000 --seconds 330
	$(FIT)
	$(DOUBTFUL) 20261204:30000 $(H200)/doubtful.jsonl.gz --keep 7000
	$(LIKELY)-doubtful-2.jsonl.gz --products $(H200)/doubtful.jsonl.gz --within 1.3 --seconds 340
	rm $(H200)/doubtful.jsonl.gz
	$(FIT)

# How far the library call's kernel is from the best of all on a GPU, at products drawn from SEED. No table is written over.
regret: $(STAMP)
	@test -n "$(SEED)" || { echo "Name a seed that no rule was fitted to: make regret SEED=123" >&2; exit 1; }
	$(BIN)/python makers/regret.py $(SEED) $(H200)/regret.json

# Count the GPU's rungs on the emulator: in their reference configurations, and in those that the claims ask for.
counts: $(STAMP)
	$(BIN)/gemmlab bench --device emulated:sm_90 --sizes 256x256x1024 --save $(EMULATED)/counters.json
	$(BIN)/gemmlab bench --op reduce --device emulated:sm_90 --sizes 2^16 --save $(EMULATED)/reduce.json
	$(BIN)/gemmlab bench --op sums --device emulated:sm_90 --sizes 256x256x1,1x256x256 --save $(EMULATED)/sums.json
	$(BIN)/python makers/count_configurations.py
	$(BIN)/python makers/count_tensor_code.py
	$(BIN)/python makers/try_source_test.py
	$(BIN)/python makers/build_tables.py

# Regenerate the tables and plots of README.md and docs/ from the records in benchmarks/results.
tables: $(STAMP)
	$(BIN)/python makers/build_tables.py

# The documentation as a site, from docs/ and the catalog; half a minute. Open build/book/html/index.html: no server is needed.
docs: $(STAMP)
	$(BIN)/python makers/build_book.py

install: $(STAMP)

$(STAMP): pyproject.toml
	@python='$(PYTHON)'; "$$python" -c '$(SUPPORTED)' || { \
		echo "gemmlab needs Python 3.11 to 3.13, and '$$python' is $$("$$python" --version 2>&1 || true)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	"$(BIN)/python" -c '$(SUPPORTED)' 2>/dev/null || "$$python" -m venv --clear $(VENV) || { \
		echo "No virtual environment could be made (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@# The pip that comes with Python 3.11 takes twice the processor time. Without a newer one this goes on.
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --upgrade pip 2>/dev/null || true
	@echo "Installing gemmlab and what its tests need into $(VENV), some 2 GB; a minute or two ..."
	@# Python compiles what is imported; that is a seventh of all files.
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
