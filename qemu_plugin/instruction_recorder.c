/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU that records which code the guest ran between two passes of one address. The guest cannot notice it: in
 * virtual time each instruction takes 1 ns, however long the host needs for it.
 *
 * Arguments: mark=ADDRESS (hexadecimal), pass=N+N... (in increasing order, from 0 on), before=K, blocks=N (how many blocks to
 * keep), out=FILE, cpu=C (count only the passes on this processor; without it, all). There is a recording for each pass N. It begins
 * at pass N - K of the mark, or at the first block if there is no such pass, and ends at pass N. Its file is FILE.N.
 *
 * A file, in the byte order of the host: "RTPB", u32 2, u64 blocks dropped, u64 place of the end, then for each block of code, in
 * order: u64 address, u64 place. A place has the number of the processor in its highest 8 bits. The others count the instructions
 * that all processors of the guest had run before: QEMU runs them in turn, in one thread, so there is one order. The address IDLE
 * stands for a processor that waits. A pass that never comes leaves no file.
 */
#include "qemu_plugin_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
#define IDLE UINT64_MAX

PUBLIC extern int qemu_plugin_version;
PUBLIC int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments);

/* QEMU 9.0 and newer refuses version 1 of the interface, and older ones refuse version 2. */
int qemu_plugin_version = 1;

__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_scoreboard_new)
		qemu_plugin_version = 2;
}

#define CPU_SHIFT 56

struct entry {
	uint64_t address, place;
};

/* A translated block. QEMU never says when it forgets one, so it stays until QEMU ends: some MiB for a guest's whole life. */
struct block {
	uint64_t address, last_address;
	uint64_t length;
};

/*
 * begins: the count of blocks at the last passes, at the number of the pass modulo before + 1. next: the place in passes of the
 * recording that ends next. at: count modulo room, without a division for each block. cpu: the processor whose passes count; -1:
 * every one's.
 */
static struct {
	uint64_t mark, before, passed;
	uint64_t *passes, *begins;
	size_t passes_count, next;
	struct entry *entries;
	uint64_t room, count, at;
	const char *path;
	bool recording;
	int64_t cpu;
} recorder = { .cpu = -1 };

#define MOST_CPUS 256

/*
 * Which processor runs. QEMU 10 tells a plugin the one that translated the block, if all take turns in one thread: its
 * gen_cpu_index() takes the number for a constant then. So QEMU's own variable current_cpu is read, which every QEMU has that can
 * load modules, and which points to the structure of the processor. current: NULL for a guest with one.
 */
static struct {
	unsigned int count;
	void *const *current;
	void *last, *all[MOST_CPUS];
	unsigned int last_number;
} cpus;

typedef void *(*get_cpu_t)(int number);

static void *symbol_of_qemu(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/* current_cpu is different in each thread, so this is to be called in the one that runs the processors. */
static void find_cpus(void)
{
	get_cpu_t get_cpu = (get_cpu_t)symbol_of_qemu("qemu_get_cpu");

	cpus.current = symbol_of_qemu("current_cpu");
	for (unsigned int i = 0; i < cpus.count; i++)
		cpus.all[i] = get_cpu((int)i);
}

static unsigned int cpu_now(void)
{
	if (cpus.count < 2)
		return 0;
	if (!cpus.current)
		find_cpus();
	if (*cpus.current == cpus.last)
		return cpus.last_number;
	for (unsigned int i = 0; i < cpus.count; i++)
		if (cpus.all[i] == *cpus.current)
			cpus.last_number = i;
	cpus.last = *cpus.current;
	return cpus.last_number;
}

/*
 * Each instruction counts itself, because a block that an exception ends has not run to its end. An instruction that faults counts
 * here, and again when it is repeated; QEMU's clock has it only once. again: those, since recording began. last: the block that
 * runs; NULL if none is known. last_begin: the count at its begin.
 */
static struct {
	uint64_t instructions, again, last_begin;
	const struct block *last;
} counted;

static void add_instruction(unsigned int translator, void *none)
{
	(void)translator, (void)none;
	counted.instructions++;
}

/* QEMU 9.0 and newer adds only to numbers of its own, and QEMU 10.0.2 died of that. */
static void count_instruction(struct qemu_plugin_insn *instruction)
{
	if (qemu_plugin_register_vcpu_insn_exec_inline)
		qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, &counted.instructions, 1);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, add_instruction, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

/*
 * See whether the block before this one ended early. If this one is a part of it, the last instruction spoke to a device: QEMU
 * repeats such a one without telling plugins.
 */
static void count_block(const struct block *block)
{
	const struct block *last = counted.last;
	uint64_t now = counted.instructions;

	if (last && now - counted.last_begin < last->length &&
	    !(block->address > last->address && block->address <= last->last_address))
		counted.again++;
	counted.last = block;
	counted.last_begin = now;
}

static uint64_t place_now(unsigned int cpu)
{
	return (uint64_t)cpu << CPU_SHIFT | (counted.instructions - counted.again);
}

static void keep(unsigned int cpu, uint64_t address)
{
	recorder.entries[recorder.at++] = (struct entry){ address, place_now(cpu) };
	recorder.count++;
	if (recorder.at == recorder.room)
		recorder.at = 0;
}

static bool write_entries(FILE *file, unsigned int cpu, uint64_t first)
{
	const uint32_t version = 2;
	const uint64_t end = place_now(cpu);
	uint64_t oldest = recorder.count > recorder.room ? recorder.count - recorder.room : 0;
	uint64_t dropped = oldest > first ? oldest - first : 0;
	bool good = fwrite("RTPB", 4, 1, file) == 1 && fwrite(&version, sizeof(version), 1, file) == 1 &&
		    fwrite(&dropped, sizeof(dropped), 1, file) == 1 &&
		    fwrite(&end, sizeof(end), 1, file) == 1;

	for (uint64_t i = first + dropped; good && i < recorder.count; i++)
		good = fwrite(&recorder.entries[i % recorder.room], sizeof(struct entry), 1, file) == 1;
	return good;
}

/* A file that cannot be written whole is removed: the reader then says that there is none. */
static void finish(unsigned int cpu, uint64_t pass)
{
	char path[4096];
	int length = snprintf(path, sizeof(path), "%s.%llu", recorder.path, (unsigned long long)pass);
	FILE *file = length > 0 && (size_t)length < sizeof(path) ? fopen(path, "wb") : NULL;

	if (!file)
		return;
	uint64_t first = pass < recorder.before ? 0 : recorder.begins[(pass - recorder.before) % (recorder.before + 1)];
	bool good = write_entries(file, cpu, first);

	if (fclose(file) != 0 || !good)
		remove(path);
}

static void pass_mark(unsigned int cpu)
{
	recorder.begins[recorder.passed % (recorder.before + 1)] = recorder.count;
	if (recorder.next < recorder.passes_count && recorder.passed == recorder.passes[recorder.next]) {
		finish(cpu, recorder.passed);
		recorder.next++;
	}
	recorder.recording = recorder.next < recorder.passes_count &&
			     recorder.passed + recorder.before >= recorder.passes[recorder.next];
	recorder.passed++;
}

static void run_block(unsigned int translator, void *argument)
{
	const struct block *block = argument;
	unsigned int cpu = cpu_now();

	(void)translator;
	if (recorder.recording)
		count_block(block);
	if (block->address == recorder.mark && (recorder.cpu < 0 || recorder.cpu == cpu))
		pass_mark(cpu);
	if (recorder.recording)
		keep(cpu, block->address);
	else
		counted.last = NULL;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block = malloc(sizeof(*block));
	size_t length = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (!block)
		abort(); /* the host has no memory left; a recording with a hole would name the wrong cause */
	*block = (struct block){ qemu_plugin_tb_vaddr(tb), qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, length - 1)), length };
	for (size_t i = 0; i < length; i++)
		count_instruction(qemu_plugin_tb_get_insn(tb, i));
	qemu_plugin_register_vcpu_tb_exec_cb(tb, run_block, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void wait_idle(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	if (recorder.recording)
		keep(cpu, IDLE);
}

/* The value behind "name=" of an argument; NULL if the argument has another name. */
static const char *value_of(const char *argument, const char *name)
{
	size_t length = strlen(name);

	return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

/* Take numbers joined by "+". False if they do not increase, or if there is no memory for them. */
static bool take_passes(const char *text)
{
	size_t most = 1;

	for (const char *at = text; *at; at++)
		most += *at == '+';
	recorder.passes = calloc(most, sizeof(*recorder.passes));
	recorder.passes_count = 0;
	for (char *end; recorder.passes && recorder.passes_count < most; text = end + 1) {
		uint64_t pass = strtoull(text, &end, 10);

		if (end == text || (*end && *end != '+'))
			return false;
		if (recorder.passes_count && pass <= recorder.passes[recorder.passes_count - 1])
			return false;
		recorder.passes[recorder.passes_count++] = pass;
	}
	return recorder.passes != NULL;
}

static bool take_argument(const char *argument)
{
	const char *value;

	if ((value = value_of(argument, "mark")))
		recorder.mark = strtoull(value, NULL, 16);
	else if ((value = value_of(argument, "pass")))
		return take_passes(value);
	else if ((value = value_of(argument, "before")))
		recorder.before = strtoull(value, NULL, 10);
	else if ((value = value_of(argument, "blocks")))
		recorder.room = strtoull(value, NULL, 10);
	else if ((value = value_of(argument, "cpu")))
		recorder.cpu = (int64_t)strtoull(value, NULL, 10);
	else if ((value = value_of(argument, "out")))
		recorder.path = strdup(value);
	else
		return false;
	return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **arguments)
{
	cpus.count = info && info->system_emulation ? (unsigned int)info->system.smp_vcpus : 1;
	if (cpus.count > MOST_CPUS || (cpus.count > 1 && !(symbol_of_qemu("current_cpu") && symbol_of_qemu("qemu_get_cpu")))) {
		fprintf(stderr, "the recorder of instructions cannot tell the processors of this QEMU apart\n");
		return -1;
	}
	for (int i = 0; i < count; i++)
		if (!take_argument(arguments[i])) {
			fprintf(stderr, "the recorder of instructions cannot use the argument %s\n", arguments[i]);
			return -1;
		}
	recorder.entries = recorder.room ? calloc(recorder.room, sizeof(struct entry)) : NULL;
	recorder.begins = calloc(recorder.before + 1, sizeof(*recorder.begins));
	if (!recorder.mark || !recorder.passes_count || !recorder.path || !recorder.entries || !recorder.begins) {
		fprintf(stderr, "the recorder of instructions needs mark=, pass=, blocks= and out=, and memory for the blocks\n");
		return -1;
	}
	recorder.recording = recorder.passes[0] < recorder.before;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_vcpu_idle_cb(id, wait_idle);
	return 0;
}
