/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of latmon, the latency monitor of the EVL project (today in Zephyr), and of latmus, which it measures. latmon gives
 * edges and measures the answers; it listens at TCP port 2306. latmus answers the edges; it connects, says how often edges shall
 * come, and gets the figures. Each side can be this agent's.
 *
 * All numbers are big-endian. latmus sends {u32 period_us, u32 cells}: a period starts the edges, 0 stops them. latmon sends a
 * bulk for each so many answers as make a second: {i32 sum_high, i32 sum_low, i32 min, i32 max, u32 overruns, u32 samples}, in
 * nanoseconds. After the stop come what is left, a bulk without samples, and the cells: u32 each, a microsecond wide, the last
 * one with all above. An overrun is a period that passed before an answer, or an edge without any.
 *
 * A thread of normal priority does the talking. The measuring thread only takes words of memory and puts answers into a queue.
 */
#ifndef RTPROOF_LATMON_H
#define RTPROOF_LATMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LATMON_PORT = 2306, LATMON_CELLS = 1000, LATMON_PERIOD_MOST_US = 1000000 };
enum { LATMON_REQUEST_BYTES = 8, LATMON_BULK_BYTES = 24, LATMON_WHY = 160 };

/* What a queue holds: an answer's time in nanoseconds, or that there was none. */
#define LATMON_UNANSWERED UINT32_MAX

struct latmon_bulk {
	int64_t sum_ns;
	int32_t min_ns, max_ns;
	uint32_t overruns, samples;
};

struct latmon_figures {
	struct latmon_bulk bulk;    /* since the last one was sent */
	uint32_t cells[LATMON_CELLS];
	uint32_t n_cells, period_us;
};

/* Adds an answer, or that there was none. Pure. */
void latmon_count(struct latmon_figures *figures, uint32_t answer_ns);

/* Pure. LATMON_BULK_BYTES each. */
void latmon_write_bulk(const struct latmon_bulk *bulk, uint8_t *bytes);
void latmon_read_bulk(const uint8_t *bytes, struct latmon_bulk *bulk);

/* Why such a request does not start edges at a period of so much, as a sentence; or NULL. Pure. */
const char *latmon_refusal(uint32_t period_us, uint32_t cells, uint32_t own_us, char *why, size_t room);

/* "192.168.1.2" or "192.168.1.2:2306". 0 or -EINVAL. */
int latmon_address(const char *text, struct sockaddr_in *address);

struct latmon_order {
	struct sockaddr_in address;
	bool listens;
	uint32_t period_us;
	int64_t ask_ns; /* for the side that asks: when */
};

struct latmon;

/*
 * Listens at the address, or connects to the latmon there and asks for edges, and starts the thread that talks. The calling
 * thread is the one that measures. 0, or -errno with a sentence in why.
 */
int latmon_open(struct latmon **latmon, const struct latmon_order *order, char *why, size_t room);

/* Whether edges shall be given now. */
bool latmon_runs(struct latmon *latmon);

/* Whether the other side has ended it; then the measuring thread shall leave, and why it did is told. */
bool latmon_over(struct latmon *latmon, char *why, size_t room);

/* For the measured loop: no call of the system. */
void latmon_put(struct latmon *latmon, int64_t answer_ns, bool answered);

/* For the side that asks: latmon shall stop. It runs until its last figures are there, or it has been silent for too long. */
void latmon_leave(struct latmon *latmon);

/* Says goodbye to the other side, waits for its last figures, and ends the thread. */
void latmon_end(struct latmon *latmon);

/* What there is to know, after latmon_end(): lines of a word and a value, from malloc(); or NULL. */
char *latmon_account(const struct latmon *latmon, size_t *length);

void latmon_free(struct latmon *latmon);

#endif
