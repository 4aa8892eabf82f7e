/* SPDX-License-Identifier: Apache-2.0 */
#include "sys.h"

#include "facts.h"
#include "facts_parts.h"

#include "run.h"
#include "text.h"
#include "version.h"

#include <string.h>
#include <sys/utsname.h>

void facts_begin(struct run *run)
{
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_BEGIN);
	struct utsname name;
	uint8_t id[16] = { 0 };

	memset(&name, 0, sizeof(name));
	uname(&name);
	/* Without a source of randomness two runs can still be told apart by their times. */
	text_read_file("/dev/urandom", (char *)id, sizeof(id));
	put_u16(chunk, RECORD_MAJOR);
	put_u16(chunk, RECORD_MINOR);
	put_bytes(chunk, id, sizeof(id));
	put_i64(chunk, clock_wall_ns() + run->origin_ns - clock_now_ns());
	put_i64(chunk, run->origin_ns);
	put_string(chunk, AGENT_VERSION);
	put_string(chunk, name.machine);
	put_string(chunk, name.release);
	put_string(chunk, name.version);
	chunk_end(&run->record);
}

void facts_series(struct run *run)
{
	int fields = run->config->fields;

	for (int i = 0; i < run->config->threads * fields; i++) {
		const struct worker *worker = &run->workers[i / fields];
		const struct method *method = worker->method;
		struct bytes *chunk = chunk_begin(&run->record, CHUNK_SERIES);

		put_u16(chunk, (uint16_t)i);
		put_u16(chunk, (uint16_t)(i / fields));
		put_u32(chunk, (uint32_t)worker->cpu);
		put_u8(chunk, (uint8_t)(method->on_grid | run->config->keep_samples << 1 | method->external << 2 | method->loop << 3));
		put_i64(chunk, worker->period_ns);
		put_i64(chunk, worker->phase_ns);
		put_string(chunk, worker->probe->name);
		put_string(chunk, method->name);
		put_string(chunk, method_field(worker->probe, method, i % fields));
		put_string(chunk, worker->probe->unit);
		chunk_end(&run->record);
		if (run->captures[i].above)
			above_announce(run->captures[i].above, &run->record, worker->phase_ns);
	}
}

void facts_finish(struct run *run)
{
	struct bytes *chunk = chunk_begin(&run->record, CHUNK_END);

	put_i64(chunk, run_time_ns(run));
	put_u8(chunk, (uint8_t)run->reason);
	put_string(chunk, run->reason_text);
	put_u16(chunk, (uint16_t)(run->config->threads * run->config->fields));
	for (int i = 0; i < run->config->threads * run->config->fields; i++) {
		put_u16(chunk, run->captures[i].series);
		put_number(chunk, run->captures[i].obtained, 8);
		put_number(chunk, run->captures[i].missed, 8);
		put_number(chunk, run->captures[i].lost, 8);
	}
	chunk_end(&run->record);
}
