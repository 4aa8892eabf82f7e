/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "trace/windows.h"

#include <stdlib.h>
#include <string.h>

static int n_slots(const struct windows_plan *plan)
{
	return plan->cpus * plan->lane_pages + plan->held_pages + 1;
}

static int most_windows(const struct windows_plan *plan)
{
	int most = plan->ordinary + plan->held_pages;

	return most < WINDOWS_MOST ? most : WINDOWS_MOST;
}

/* One window finds room, however long it is. */
static int most_pages(const struct windows_plan *plan)
{
	int most = plan->held_pages / (plan->own_cpu_only ? 1 : plan->cpus);

	return most > WINDOW_PAGES ? WINDOW_PAGES : most < 1 ? 1 : most;
}

int64_t windows_space(const struct windows_plan *plan, const struct page_layout *layout)
{
	int64_t of_slot = layout->size + (int64_t)(sizeof(struct slot) + sizeof(uint32_t));
	int64_t of_window = (int64_t)(sizeof(struct window) + (size_t)plan->cpus * sizeof(struct window_lane));

	return n_slots(plan) * of_slot + most_windows(plan) * of_window;
}

static bool allocate(struct windows *windows)
{
	const struct windows_plan *plan = &windows->plan;
	size_t cpus = (size_t)plan->cpus;

	windows->n_slots = (uint32_t)n_slots(plan);
	windows->n_windows = most_windows(plan);
	windows->bytes = malloc(windows->n_slots * (size_t)windows->layout.size);
	windows->slots = calloc(windows->n_slots, sizeof(*windows->slots));
	windows->free = calloc(windows->n_slots, sizeof(*windows->free));
	windows->lanes = calloc(cpus, sizeof(*windows->lanes));
	windows->windows = calloc((size_t)windows->n_windows, sizeof(*windows->windows));
	windows->all_lanes = calloc((size_t)windows->n_windows * cpus, sizeof(*windows->all_lanes));
	if (!windows->bytes || !windows->slots || !windows->free || !windows->lanes || !windows->windows || !windows->all_lanes)
		return false;
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		windows->lanes[cpu].slots = calloc((size_t)plan->lane_pages, sizeof(uint32_t));
		if (!windows->lanes[cpu].slots)
			return false;
	}
	return true;
}

int windows_open(struct windows *windows, const struct windows_plan *plan, const struct page_layout *layout, uint64_t seed)
{
	memset(windows, 0, sizeof(*windows));
	windows->plan = *plan;
	windows->layout = *layout;
	windows->random = seed * 2 + 1;
	windows->floor = windows->top_floor = INT64_MIN;
	windows->most_pages = most_pages(plan);
	if (!allocate(windows)) {
		windows_close(windows);
		return -ENOMEM;
	}
	memset(windows->bytes, 0, windows->n_slots * (size_t)layout->size); /* every page of it is had now */
	for (int i = 0; i < windows->n_windows; i++)
		windows->windows[i].lanes = windows->all_lanes + (ptrdiff_t)i * plan->cpus;
	for (uint32_t slot = 1; slot < windows->n_slots; slot++)
		windows->free[windows->n_free++] = slot;
	return 0;
}

void windows_close(struct windows *windows)
{
	for (int cpu = 0; windows->lanes && cpu < windows->plan.cpus; cpu++)
		free(windows->lanes[cpu].slots);
	free(windows->bytes);
	free(windows->slots);
	free(windows->free);
	free(windows->lanes);
	free(windows->windows);
	free(windows->all_lanes);
	memset(windows, 0, sizeof(*windows));
}

uint8_t *windows_room(struct windows *windows)
{
	return windows->bytes + windows->spare * (size_t)windows->layout.size;
}

const uint8_t *windows_page(const struct windows *windows, uint32_t slot)
{
	return windows->bytes + slot * (size_t)windows->layout.size;
}

static uint32_t *at(const struct windows *windows, const struct lane *lane, int i)
{
	return &lane->slots[(lane->first + i) % windows->plan.lane_pages];
}

static struct slot *slot_at(const struct windows *windows, const struct lane *lane, int i)
{
	return &windows->slots[*at(windows, lane, i)];
}

static void free_if_unused(struct windows *windows, uint32_t number)
{
	const struct slot *slot = &windows->slots[number];

	if (!slot->newest && !slot->users)
		windows->free[windows->n_free++] = number;
}

static void forget_oldest(struct windows *windows, struct lane *lane)
{
	uint32_t oldest = lane->slots[lane->first];

	lane->first = (lane->first + 1) % windows->plan.lane_pages;
	lane->n--;
	lane->forgot = true;
	windows->slots[oldest].newest = false;
	free_if_unused(windows, oldest);
}

void windows_add(struct windows *windows, int cpu, int64_t begins_ns)
{
	struct lane *lane = &windows->lanes[cpu];
	struct page_head head = page_head(&windows->layout, windows_room(windows));

	windows->pages_read++;
	if (head.empty || windows->plan.lane_pages <= 0) /* there is no room in a lane without pages */
		return;
	if (lane->n)
		slot_at(windows, lane, lane->n - 1)->next = windows->spare;
	if (lane->n == windows->plan.lane_pages)
		forget_oldest(windows, lane);
	windows->slots[windows->spare] = (struct slot){
		.begins_ns = begins_ns, .stamp = head.stamp, .cpu = (uint16_t)cpu, .lost = head.lost, .newest = true,
	};
	*at(windows, lane, lane->n++) = windows->spare;
	windows->spare = windows->free[--windows->n_free]; /* there is one: see n_slots() */
}

void windows_read_to(struct windows *windows, int cpu, int64_t time_ns)
{
	windows->lanes[cpu].read_to_ns = time_ns;
}

static void release(struct windows *windows, struct window *window)
{
	if (!window->used)
		return;
	for (int cpu = 0; cpu < windows->plan.cpus; cpu++) {
		uint32_t number = window->lanes[cpu].first;

		for (int i = 0; i < window->lanes[cpu].pages; i++) {
			uint32_t next = windows->slots[number].next;

			if (!--windows->slots[number].users) {
				windows->held--;
				free_if_unused(windows, number);
			}
			number = next;
		}
	}
	window->used = false;
	windows->tops -= window->of.reason == WINDOW_TOP;
}

/* The window with the smallest value among those that are late, or of reason top only; NULL: there is none. */
static struct window *smallest(const struct windows *windows, bool top_only)
{
	struct window *found = NULL;

	for (int i = windows->plan.ordinary; i < windows->n_windows; i++) {
		struct window *one = &windows->windows[i];

		if (one->used && !one->taken && (!top_only || one->of.reason == WINDOW_TOP) && (!found || one->of.value < found->of.value))
			found = one;
	}
	return found;
}

/* Makes room by giving up a window that is less late than this activation. */
static bool give_one_up(struct windows *windows, const struct wanted *of, bool top_only)
{
	struct window *least = smallest(windows, top_only);

	if (!least || (of->reason != WINDOW_ORDINARY && least->of.value >= of->value))
		return false;
	windows->lost[LOST_MEMORY] += least->of.reason == WINDOW_THRESHOLD;
	release(windows, least);
	return true;
}

/* The newest page that begins at or before a time; -1: none does. */
static int last_before(const struct windows *windows, const struct lane *lane, int64_t time_ns)
{
	int i = lane->n - 1;

	while (i >= 0 && slot_at(windows, lane, i)->begins_ns > time_ns)
		i--;
	return i;
}

int64_t wanted_from_ns(const struct wanted *of, int cpu)
{
	return of->cpu < 0 || of->cpu == cpu || of->others_from_ns < of->from_ns ? of->from_ns : of->others_from_ns;
}

/* Which pages of a CPU have the events of a window. */
static struct window_lane find_pages(const struct windows *windows, int cpu, const struct wanted *of)
{
	const struct lane *lane = &windows->lanes[cpu];
	struct window_lane found = { .asked = true };
	int from = last_before(windows, lane, wanted_from_ns(of, cpu)), last = last_before(windows, lane, of->to_ns);
	int first = from > 0 ? from : 0;

	found.whole = (from >= 0 || !lane->forgot) && lane->read_to_ns >= of->to_ns;
	for (int i = from + 1; i <= last + 1 && i < lane->n; i++) /* what the page behind the window lost may be of its time */
		if (slot_at(windows, lane, i)->lost)
			found.whole = false;
	if (last - first >= windows->most_pages) {
		first = last - windows->most_pages + 1;
		found.whole = false;
	}
	if (last >= 0) {
		found.first = *at(windows, lane, first);
		found.pages = (uint16_t)(last - first + 1);
	}
	return found;
}

/* How many of the pages no window has yet. */
static uint32_t count_new(const struct windows *windows, const struct window_lane *lane)
{
	uint32_t number = lane->first, n = 0;

	for (int i = 0; i < lane->pages; i++, number = windows->slots[number].next)
		n += !windows->slots[number].users;
	return n;
}

static void use(struct windows *windows, const struct window_lane *lane)
{
	uint32_t number = lane->first;

	for (int i = 0; i < lane->pages; i++, number = windows->slots[number].next)
		windows->held += !windows->slots[number].users++;
}

static struct window *free_window(struct windows *windows, const struct wanted *of)
{
	if (of->reason == WINDOW_ORDINARY) {
		release(windows, &windows->windows[of->place]);
		return &windows->windows[of->place];
	}
	if (of->reason == WINDOW_TOP && windows->tops >= windows->plan.top && !give_one_up(windows, of, true))
		return NULL;
	for (int tries = 0; tries < 2; tries++) {
		for (int i = windows->plan.ordinary; i < windows->n_windows; i++)
			if (!windows->windows[i].used)
				return &windows->windows[i];
		if (!give_one_up(windows, of, false))
			return NULL;
	}
	return NULL;
}

static bool is_asked(const struct windows *windows, const struct wanted *of, int cpu)
{
	return !windows->plan.own_cpu_only || of->cpu < 0 || of->cpu == cpu;
}

static bool fill(struct windows *windows, struct window *window, const struct wanted *of)
{
	uint32_t needed;

	memset(window->lanes, 0, (size_t)windows->plan.cpus * sizeof(*window->lanes));
	for (int cpu = 0; cpu < windows->plan.cpus; cpu++)
		if (is_asked(windows, of, cpu))
			window->lanes[cpu] = find_pages(windows, cpu, of);
	do {
		needed = 0;
		for (int cpu = 0; cpu < windows->plan.cpus; cpu++)
			needed += count_new(windows, &window->lanes[cpu]);
		if (windows->held + needed <= (uint32_t)windows->plan.held_pages)
			break;
	} while (give_one_up(windows, of, false));
	if (windows->held + needed > (uint32_t)windows->plan.held_pages)
		return false;
	for (int cpu = 0; cpu < windows->plan.cpus; cpu++)
		use(windows, &window->lanes[cpu]);
	window->of = *of;
	window->used = true;
	window->taken = false;
	windows->tops += of->reason == WINDOW_TOP;
	return true;
}

static uint64_t next_random(struct windows *windows)
{
	windows->random ^= windows->random << 13;
	windows->random ^= windows->random >> 7;
	windows->random ^= windows->random << 17;
	return windows->random;
}

/* Each of those that were seen so far is among the drawn ones with the same chance. */
static bool draw(struct windows *windows, int *place)
{
	uint64_t number = windows->seen++;

	if (number >= (uint64_t)windows->plan.ordinary)
		number = next_random(windows) % windows->seen;
	*place = (int)number;
	return number < (uint64_t)windows->plan.ordinary;
}

static void raise_floor(int64_t *floor, int64_t value)
{
	if (value > *floor)
		*floor = value;
}

/* An activation that is no later than one without room need not ask for room again. True if this one has found some. */
static bool claim(struct windows *windows, const struct wanted *of)
{
	struct window *window = free_window(windows, of);
	bool found = window && fill(windows, window, of);

	if (!found && of->reason == WINDOW_THRESHOLD) {
		windows->lost[LOST_MEMORY]++;
		raise_floor(&windows->floor, of->value);
	}
	if (!found && of->reason == WINDOW_TOP)
		raise_floor(&windows->top_floor, of->value);
	if (found && windows->tops >= windows->plan.top) {
		const struct window *least = smallest(windows, true);

		raise_floor(&windows->top_floor, least ? least->of.value : INT64_MIN);
	}
	return found;
}

/* One that was taken for one of the largest, and was not, is an ordinary one. */
static void claim_or_draw(struct windows *windows, struct wanted of)
{
	if (claim(windows, &of) || of.reason != WINDOW_TOP || !draw(windows, &of.place))
		return;
	of.reason = WINDOW_ORDINARY;
	claim(windows, &of);
}

static bool is_read(const struct windows *windows, const struct wanted *of)
{
	for (int cpu = 0; cpu < windows->plan.cpus; cpu++)
		if (is_asked(windows, of, cpu) && windows->lanes[cpu].read_to_ns < of->to_ns)
			return false;
	return true;
}

void windows_claim(struct windows *windows, bool end)
{
	int left = 0;

	for (int i = 0; i < windows->n_waiting; i++) {
		if (end || is_read(windows, &windows->waiting[i]))
			claim_or_draw(windows, windows->waiting[i]);
		else
			windows->waiting[left++] = windows->waiting[i];
	}
	windows->n_waiting = left;
}

/* False: it gets no window, which is counted. */
static bool may_have_one(struct windows *windows, struct wanted *of, int64_t threshold)
{
	bool late = of->value > threshold;

	windows->above += late;
	if (of->from_ns < windows->began_ns) {
		windows->lost[LOST_BEFORE] += late;
		return false;
	}
	if (late) {
		of->reason = WINDOW_THRESHOLD;
		windows->lost[LOST_MEMORY] += of->value <= windows->floor;
		return of->value > windows->floor;
	}
	of->reason = windows->plan.top && of->value > windows->top_floor ? WINDOW_TOP : WINDOW_ORDINARY;
	return of->reason == WINDOW_TOP || draw(windows, &of->place);
}

void windows_offer(struct windows *windows, const struct wanted *wanted, int64_t threshold)
{
	struct wanted of = *wanted;

	if (!may_have_one(windows, &of, threshold))
		return;
	if (windows->n_waiting == WINDOWS_WAITING) /* who hands them over was kept from it for a while */
		windows_claim(windows, false);
	if (windows->n_waiting < WINDOWS_WAITING)
		windows->waiting[windows->n_waiting++] = of;
	else
		windows->lost[LOST_QUEUE] += of.reason == WINDOW_THRESHOLD;
}

struct window *windows_largest(const struct windows *windows, enum window_reason reason)
{
	struct window *found = NULL;

	for (int i = 0; i < windows->n_windows; i++) {
		struct window *one = &windows->windows[i];

		if (one->used && !one->taken && one->of.reason == reason && (!found || one->of.value > found->of.value))
			found = one;
	}
	return found;
}

uint64_t windows_count(const struct windows *windows, enum window_reason reason)
{
	uint64_t n = 0;

	for (int i = 0; i < windows->n_windows; i++)
		n += windows->windows[i].used && windows->windows[i].of.reason == reason;
	return n;
}

bool windows_fits_one_more(const struct windows *windows)
{
	int longest = windows->most_pages * (windows->plan.own_cpu_only ? 1 : windows->plan.cpus);

	return windows->held + (uint32_t)longest <= (uint32_t)windows->plan.held_pages;
}

void windows_take(struct window *window)
{
	window->taken = true;
}

void windows_written(struct windows *windows, struct window *window)
{
	release(windows, window);
	windows->floor = windows->top_floor = INT64_MIN; /* there is room again */
}
