# make demo and make test do all the set-up they need. `make help` lists the rest.

.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/.ready ## Build .venv and fetch the JVM parts (demo and test do it by themselves)

# The environment is made with the Python that PYTHON names, and made anew when that is another one than before.
ifdef PYTHON
WHICH := -c 'import sys; print(sys.version, sys.base_prefix)'
ifneq ($(shell "$(PYTHON)" $(WHICH) 2>&1),$(shell $(BIN)/python $(WHICH) 2>&1))
.PHONY: .venv/.ready .venv/.tools
endif
endif
export PYTHON

.venv/.ready: requirements.lock pyproject.toml deploy/ivy.xml deploy/setup.sh
	@deploy/setup.sh

.venv/.tools: requirements.lock pyproject.toml deploy/setup.sh
	@deploy/setup.sh tools

.PHONY: demo
demo: setup ## Start a real Kafka, inject faults into its groups, and show which the monitor finds
	@$(BIN)/rebalance-monitor demo $(ARGS)

# Tests start Python some hundreds of times: it keeps what it compiles, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

# Of what is tried with random input, a sample; see tests/samples.py.
SAMPLE := HYPOTHESIS_PROFILE=sample $(BIN)/python -m pytest -n 4 --max-worker-restart 2 --dist loadfile -m "not long and not exhaustive"

# Workers with brokers, JVMs and Spark beside each other can hold up a third process for half a minute. So what failed (1; not a run that
# broke off, 2) is run once more, alone; what fails alone has failed.
ONCE_MORE := { [ $$? = 1 ] && echo "=== What failed, once more, alone" && \
    $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

.PHONY: test test-all quick
test: setup ## Run the tests (PYTHON=python3.13 with that Python); nine minutes on two cores, and two to set up
	@$(SAMPLE) $(ARGS) || $(ONCE_MORE) -m "not long and not exhaustive"; }

test-all: setup ## The same with all cases, and short runs of the laboratory and of the kills, as CI does
	@$(BIN)/python -m pytest -n 2 --max-worker-restart 2 --dist loadfile -m "not lab" $(ARGS) || $(ONCE_MORE) -m "not lab"; }

quick: .venv/.tools ## The tests of the model alone, without Java and Spark, in two minutes
	@$(SAMPLE) tests/coordinator_model tests/test_golden.py tests/test_layers.py $(ARGS)

.PHONY: coverage
coverage: .venv/.tools ## How much of the model its own tests run; fails below the floor in pyproject.toml
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 2 --dist loadfile -m "not long and not exhaustive" tests/coordinator_model \
	    tests/test_golden.py tests/test_layers.py $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered --include "coordinator_model/*"

.PHONY: lint format
format: .venv/.tools ## Bring the code into its form, and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: .venv/.tools ## Style and types, without Java and Spark
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file tests/mypy.ini

.PHONY: docs
docs: setup ## Write the rule catalogue and the protocol anew from the code
	@$(BIN)/python -m streaming.commands.docs

.PHONY: histories
histories: setup ## 20,000 random lawful lives of a group, 2,000 with each unlawful act; 100,000 records of each kind with a restart after each
	@HYPOTHESIS_PROFILE=histories $(BIN)/python -m pytest tests/coordinator_model/test_histories.py \
	    tests/coordinator_model/test_consumer_histories.py tests/coordinator_model/test_epoch_histories.py -o timeout=0 -q $(ARGS)
	@$(BIN)/python -m tests.coordinator_model.restored

.PHONY: dialogues
dialogues: setup ## Ask running brokers what the reference coordinator was asked, and compare the answers (ARGS="--version 4.1")
	@$(BIN)/python -m tests.real.dialogues $(ARGS)

.PHONY: mutants
mutants: setup ## Change the model in a hundred places, one at a time, and show which no test notices (ARGS="--sample 300 --seed 7")
	@$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: cells
cells: setup ## Change every cell of both tables of the protocol, one at a time, and show which no test notices (two minutes)
	@$(BIN)/python -m tests.cells $(ARGS)

.PHONY: lab
lab: setup ## Real brokers, real clients, chaos and lies for ten minutes (ARGS="--minutes 60 --seed 7")
	@$(BIN)/python -m tests.real.lab $(ARGS)

.PHONY: hour
hour: setup ## An hour of an operator's life in eleven minutes: what a webhook is sent while groups and the monitor's surroundings break
	@$(BIN)/python -m tests.real.hour $(ARGS)

.PHONY: everyday
everyday: setup ## What keeps groups from consuming in an ordinary week, caused with real clients, and how soon it is said (ARGS="--only killed")
	@$(BIN)/python -m tests.real.everyday $(ARGS)

.PHONY: three-inputs
three-inputs: setup ## One run of the laboratory by tap, as packets and in the broker's log, compared
	@$(BIN)/python -m pytest -m lab tests/real/test_three_inputs.py $(ARGS)

.PHONY: conformance
conformance: setup ## Every client library through lawful scenarios, and who breaks the protocol (ARGS="--client franz-go --broker 4.3.1 --seed 7")
	@$(BIN)/python -m tests.conformance $(ARGS)

.PHONY: kills
kills: setup ## Kill the running job twenty times, and compare what it knows with an undisturbed run (ARGS="--kills 5 --seed 7")
	@$(BIN)/python -m tests.real.kills $(ARGS)

.PHONY: cluster
cluster: setup ## Submit the job to a Spark standalone cluster of two workers, kill each part of it, and compare with a local run (ARGS="--kills 20")
	@$(BIN)/python -m tests.real.cluster $(ARGS)

.PHONY: s3
s3: setup ## Keep the state in S3, on a server that runs here; kill the job, turn a second one away, and compare with a local run
	@$(BIN)/python -m tests.real.s3 $(ARGS)

.PHONY: sparks
sparks: setup ## The job's story under other releases of Spark, each in an environment of its own (ARGS="3.5.9 4.0.5")
	@$(BIN)/python -m tests.real.sparks $(ARGS)

.PHONY: screenshots
screenshots: setup ## Run the demo, and take the pictures of its page that the documents show
	@$(BIN)/python -m tests.screenshots $(ARGS)

.PHONY: bench soak bench-decode bench-model bench-tap bench-replay bench-log bench-watch bench-day bench-page bench-report bench-events
bench: setup ## Latency, highest rate and catching up beside an empty model and one row per group; then partitions and groups, side by side
	@$(BIN)/python -m tests.bench.job $(ARGS)
soak: setup ## Two hours of steady load; fails if memory, threads, file handles or checkpoint grew (ARGS="--minutes 30")
	@$(BIN)/python -m tests.bench.soak $(ARGS)
bench-decode: setup ## The decoder beside kio, kafka-python and tshark
	@$(BIN)/python -m tests.coordinator_model.wire.bench_decode $(ARGS)
bench-model: setup ## The model alone: frames a second, snapshot sizes, memory
	@$(BIN)/python -m tests.bench.model $(ARGS)
bench-tap: setup ## Clients through the tap beside clients without it
	@$(BIN)/python tests/bench/tap.py $(ARGS)
bench-replay: setup ## Reading a packet capture of 100 MB
	@$(BIN)/python tests/bench/replay.py $(ARGS)
bench-log: setup ## What the request log costs the broker that writes it, and reading one
	@$(BIN)/python -m tests.bench.request_log $(ARGS)
bench-events: setup ## What events cost the model, over golden transcripts
	@$(BIN)/python -m tests.bench.events $(ARGS)
bench-watch: setup ## watch on packets and on the mirror topic beside the Spark job: cores, memory, latency, seconds to the first group; as root
	@$(BIN)/python -m tests.bench.watch $(ARGS)
bench-day: setup ## A day of 1,000 frames a second in time-lapse through watch; fails if memory is not level at its end (an hour)
	@$(BIN)/python -m tests.bench.watch_day $(ARGS)
bench-page: setup ## The page with 1,000 groups: bytes, first paint in Chromium, and what 20 viewers cost
	@$(BIN)/python -m tests.bench.page $(ARGS)
bench-report: setup ## The report on 1,000 groups with 10,000 rebalances: seconds and bytes of each form
	@$(BIN)/python -m tests.bench.report $(ARGS)

.PHONY: layouts fixtures fuzz
layouts: setup ## Write the wire layouts anew from Kafka's message definitions
	@$(BIN)/python deploy/make_layouts.py $(ARGS)
fixtures: setup ## Let Kafka's own classes write new frames for the decoder's tests (needs a JDK)
	@$(BIN)/python tests/oracle/make_frames.py $(ARGS)
fuzz: setup ## Throw bytes at the decoder (needs atheris)
	@$(BIN)/python -m tests.coordinator_model.wire.fuzz_decode -runs=1000000 $(ARGS)

.PHONY: release-check
release-check: setup ## Build wheel and sdist from a clean clone, install and use them, and write the bill of materials to dist/
	@$(BIN)/python -m tests.release

.PHONY: deploy-check
deploy-check: setup ## Build the image without a registry and run it, render the chart in many ways, ask every query; says what it skips
	@$(BIN)/python -m pytest -v --no-header -o python_files="image.py test_*.py" tests/deploy tests/streaming/metrics tests/real/test_metrics.py \
	    $(ARGS)

.PHONY: lock
lock: ## Write requirements.lock anew (needs uv)
	@uv pip compile pyproject.toml --extra job --extra traces --group dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --fork-strategy fewest --upgrade --quiet -o requirements.lock
