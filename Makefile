# SPDX-License-Identifier: Apache-2.0
# make demo    measure this machine for 20 s and judge it
# make lab-demo  compare two kernels in virtual time
# make test    the short set of tests, in at most 6 minutes; needs no root and installs nothing but Python packages into .venv
# make test-repeatable  what CI runs besides: guests in virtual time, simulations, damaged records, packages
# make test-all    every test, in about 35 minutes; installs what they need (Debian packages as root); durations in build/test-all.xml
# make lint    every analyser, Python and C
# make bench   compare the cost and the numbers with other tools
# make profile-table  measure the table of docs/profiles.md anew, in virtual time
# make bench-explain  whether the causes of lateness are right; PARTS=matrix,truth SYSTEMS=6.1-rt choose some
# make bench-stats  whether the statements hold as often as they say, by simulation; PARTS=01a,11 chooses some
# make bench-audit  whether the audit finds planted misconfigurations and nothing else; PARTS=finds,guests-find plants them in guests, too
# make docs    the documentation as HTML in build/docs/html, without a network; looks for links that lead nowhere
# make docs-links  ask the web for every address that the documentation links to
# make man     the man pages in build/docs/man
# make deb     the Debian packages, in build/deb; needs their build dependencies
# make packages-check  builds, examines, installs and purges the Debian packages in new roots of Debian 13; BASE=ROOT names one to copy
# make wheel   the wheel to hand out and the source package, in dist/; the wheel has the agent for every architecture
# make wheel-check  install that wheel with pip, pipx and uv (PYTHONS='python3.11 python3.13'; ARM64_ROOT=...), use it, remove it
# make fuzz    read damaged files of every kind for MINUTES=10, and fail if one breaks a promise (docs/fuzz.md)
# make faults  let the n-th system call of the agent and of rtproof fail, and replay write logs (docs/fuzz.md)
# PYTHON=... chooses the interpreter for .venv, JOBS=... the number of test processes.
JOBS ?= $(shell expr $$(nproc) + 1)
MINUTES ?= 10
export PYTHON
LAB_PACKAGES := qemu-system-x86 qemu-system-arm make gcc libelf1 gnupg cpio
CROSS_PACKAGES := gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf
AGENT_PACKAGES := gcc libc6-dev qemu-user-static chromium trace-cmd
LOAD_PACKAGES := stress-ng rt-tests iperf3 iputils-ping
# What the tests of the pages need: the linters of man pages, and a tool that the comparison with other tools runs.
DOCS_PACKAGES := man-db groff mandoc jitterdebugger
BOARD_PACKAGES := openssh-server dropbear-bin busybox-static sudo iproute2 e2fsprogs
TOGETHER = $(MAKE) --silent --jobs=$(shell nproc) --output-sync=target

.PHONY: docs docs-links man demo lab-demo test check-agent test-short test-repeatable test-all test-agent environment agent-checks check-plain check-memory check-threads lint bench \
	profile-table bench-explain bench-stats bench-audit fuzz faults deb packages-check clean

demo:
	@sh tools/demo.sh

lab-demo:
	@sh tools/lab-demo.sh

# NO_APT: what is missing is named and not installed.
test:
	@NO_APT=1 sh tools/venv.sh dev
	@$(MAKE) --silent --jobs=2 --keep-going check-agent test-short

check-agent:
	@sh tools/check_agent.sh

test-short:
	@.venv/bin/python -m pytest -q -n $(JOBS) --set short

test-repeatable:
	@sh tools/apt.sh $(AGENT_PACKAGES) $(LAB_PACKAGES)
	@sh tools/venv.sh dev
	@sh tools/kernels.sh debian-6.1-rt debian-6.1
	@.venv/bin/python -m pytest -q -n $(JOBS) --set repeatable

test-all:
	@sh tools/apt.sh $(AGENT_PACKAGES) $(LAB_PACKAGES) $(LOAD_PACKAGES) $(BOARD_PACKAGES) $(DOCS_PACKAGES)
	@mkdir -p build
	@sh tools/parts.sh \
		'$(TOGETHER) --keep-going agent-checks environment' \
		'.venv/bin/python -m pytest -q -n $(JOBS) --durations=100 --durations-min=1 --junitxml=build/test-all.xml'

environment:
	@sh tools/venv.sh dev
	@sh tools/kernels.sh debian-6.1-rt debian-6.1

test-agent:
	@sh tools/apt.sh $(AGENT_PACKAGES)
	@$(TOGETHER) agent-checks

agent-checks: check-plain check-memory check-threads

check-plain:
	$(MAKE) --silent -C agent check

check-memory:
	$(MAKE) --silent -C agent check SANITIZE=address,undefined

# Without address randomisation, which ThreadSanitizer of gcc 12 does not get along with on newer kernels.
check-threads:
	$(MAKE) --silent -C agent check SANITIZE=thread RUN="setarch -R"

lint:
	@sh tools/apt.sh gcc libc6-dev cppcheck clang-14 clang-tidy-14 clang-tools-14
	@sh tools/venv.sh dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy src tests tools hatch_build.py $(wildcard bench)
	.venv/bin/codespell
	@sh tools/lint-agent.sh

bench:
	@sh tools/apt.sh gcc libc6-dev make rt-tests jitterdebugger $(LAB_PACKAGES)
	@sh tools/venv.sh dev
	.venv/bin/python bench/run.py cost
	.venv/bin/python bench/run.py lab

profile-table:
	@sh tools/apt.sh $(LAB_PACKAGES)
	@sh tools/venv.sh dev
	.venv/bin/python tools/profile_table.py

bench-explain:
	@sh tools/apt.sh $(LAB_PACKAGES) $(CROSS_PACKAGES) gcc libc6-dev
	@sh tools/venv.sh dev
	.venv/bin/python bench/run.py explain $(if $(PARTS),--parts $(PARTS)) $(SYSTEMS) $(ITEMS)

bench-stats:
	@sh tools/apt.sh gcc libc6-dev make
	@sh tools/venv.sh dev
	.venv/bin/python bench/run.py stats $(if $(PARTS),--parts $(PARTS))

bench-audit:
	@sh tools/apt.sh gcc libc6-dev $(LAB_PACKAGES)
	@sh tools/venv.sh dev
	.venv/bin/python bench/run.py audit $(if $(PARTS),--parts $(PARTS))

fuzz:
	@sh tools/venv.sh dev
	@nice .venv/bin/python bench/fuzz.py --minutes $(MINUTES)

faults:
	@sh tools/apt.sh gcc libc6-dev
	@sh tools/venv.sh dev
	@nice .venv/bin/python bench/run.py faults

docs:
	@sh tools/apt.sh gcc libc6-dev
	@sh tools/venv.sh dev
	.venv/bin/python -m sphinx -q -W --keep-going -b html docs build/docs/html
	.venv/bin/python tools/check_site.py build/docs/html

docs-links:
	@sh tools/apt.sh gcc libc6-dev
	@sh tools/venv.sh dev
	.venv/bin/python -m sphinx -q -b linkcheck docs build/docs/linkcheck

man:
	@sh tools/apt.sh gcc libc6-dev
	@sh tools/venv.sh dev
	.venv/bin/python -m sphinx -q -W --keep-going -b man -c docs -D root_doc=rtproof docs/man build/docs/man

deb:
	@sh tools/build_debian_packages.sh

packages-check:
	@[ -n '$(BASE)' ] || sh tools/apt.sh debootstrap
	@sh tools/apt.sh qemu-system-x86 e2fsprogs
	@nice sh tools/check_debian_packages.sh $(BASE)

.PHONY: wheel wheel-check

# In time stamps there is nothing of now: SOURCE_DATE_EPOCH, or else a fixed day.
wheel:
	@sh tools/venv.sh cross
	RTPROOF_WHEEL=complete .venv/bin/python -m hatchling build -d dist -t sdist -t wheel

wheel-check: wheel
	@nice sh tools/check_wheel.sh $(PYTHONS)

clean:
	rm -rf build dist .venv
