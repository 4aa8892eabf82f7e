/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes and counts one block. Included twice by scan.c: for values whose differences fit into 32 bits, as nearly always, and for
 * any others. ELEMENT holds a value, SUM a sum of products.
 */

/* The elements of the planes, without the base. */
static void NAME(read_planes)(ELEMENT *restrict out, const struct array *array)
{
	const uint32_t n = array->n;
	const uint8_t *at = array->planes;
	unsigned shift = 0;
	const UNSIGNED base = (UNSIGNED)array->base;

	for (uint32_t i = 0; i < n; i++)
		out[i] = (ELEMENT)base;
	if (array->width & 32 && sizeof(ELEMENT) == 8) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = (ELEMENT)((UNSIGNED)out[i] + get32(at + 4 * (size_t)i));
		at += 4 * (size_t)n;
		shift = 32;
	}
	if (array->width & 16) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = (ELEMENT)((UNSIGNED)out[i] + ((UNSIGNED)get16(at + 2 * (size_t)i) << shift));
		at += 2 * (size_t)n;
		shift += 16;
	}
	if (array->width & 8) {
		for (uint32_t i = 0; i < n; i++)
			out[i] = (ELEMENT)((UNSIGNED)out[i] + ((UNSIGNED)at[i] << shift));
		at += n;
		shift += 8;
	}
	for (unsigned p = 4; p; p >>= 1) {
		if (!(array->width & p))
			continue;
		const uint32_t m = (n + 8 / p - 1) / (8 / p);
		const UNSIGNED mask = (1u << p) - 1;

		for (uint32_t part = 0; part < 8 / p && part * m < n; part++) {
			const uint32_t rest = n - part * m, count = rest < m ? rest : m;
			ELEMENT *restrict to = out + part * m;

			for (uint32_t j = 0; j < count; j++)
				to[j] = (ELEMENT)((UNSIGNED)to[j] + (((UNSIGNED)at[j] >> (p * part) & mask) << shift));
		}
		at += m;
		shift += p;
	}
}

static void NAME(read)(ELEMENT *restrict out, const struct array *array)
{
	NAME(read_planes)(out, array);
	for (uint32_t i = 0; i < array->exceptions; i++)
		out[get16(array->positions + 2 * i)] = (ELEMENT)exception_value(array, i);
}

/* Counts the values of a part of a block, all due in one second and in one unit. due_ns: of the first. */
static void NAME(count_part)(struct scan *scan, const ELEMENT *v, uint32_t n, int64_t index, int64_t due_ns, int64_t second,
			     bool on_scale)
{
	ELEMENT largest = v[0];

	for (uint32_t i = 1; i < n; i++)
		largest = v[i] > largest ? v[i] : largest;
	add_second(scan, second, n, largest);
	if (scan->n_top < scan->k || (scan->k && largest > scan->top_value[0])) {
		int64_t due = due_ns;

		for (uint32_t i = 0; i < n; i++) {
			offer_top(scan, v[i], index + i, due);
			due += scan->period_ns + (scan->by_period ? 0 : (int64_t)v[i]);
		}
	}
	int64_t *above = scan->units ? scan->above + unit_of(scan, due_ns) * (scan->n_levels + 1) : NULL;

	if (!on_scale) {
		for (uint32_t i = 0; i < n; i++) {
			if (v[i] >= 0 && v[i] < scan->window)
				scan->counts[v[i]]++;
			else
				scan->rest[scan->n_rest++] = v[i];
			if (above)
				above[class_of(scan, v[i])]++;
		}
	} else if (!above) {
		for (uint32_t i = 0; i < n; i++)
			scan->counts[v[i]]++;
	} else {
		uint32_t i = 0;

		if (n >= 64) {
			/* Four rows, since one counter that is increased again at once makes the CPU wait. */
			uint32_t rows[4][64];

			for (int64_t c = 0; c <= scan->n_levels; c++)
				rows[0][c] = rows[1][c] = rows[2][c] = rows[3][c] = 0;
			for (; i + 4 <= n; i += 4) {
				for (uint32_t j = 0; j < 4; j++)
					rows[j][scan->counts[v[i + j]]++ >> COUNT_BITS]++;
			}
			for (int64_t c = 0; c <= scan->n_levels; c++)
				above[c] += (int64_t)rows[0][c] + rows[1][c] + rows[2][c] + rows[3][c];
		}
		for (; i < n; i++) {
			above[scan->counts[v[i]]++ >> COUNT_BITS]++;
		}
	}
}

/* Counts samples between which nothing was missed. due_ns: of the first; left behind it is that of the sample after the last. */
static int64_t NAME(count_run)(struct scan *scan, const ELEMENT *v, uint32_t n, int64_t index, int64_t *due_ns, bool on_scale)
{
	int64_t due = *due_ns;

	for (uint32_t i = 0; i < n;) {
		const int64_t second = floor_div(due, SECOND_NS);
		int64_t edge = (second + 1) * SECOND_NS, next = due;
		uint32_t end = i;

		if (scan->units) {
			const int64_t unit = unit_of(scan, due), unit_end = scan->origin_ns + (unit + 1) * scan->unit_ns;

			edge = unit < scan->units - 1 && unit_end < edge ? unit_end : edge;
		}
		if (scan->by_period) {
			const int64_t steps = (edge - due + scan->period_ns - 1) / scan->period_ns;

			end = steps < n - i ? i + (uint32_t)steps : n;
			next = due + (end - i) * scan->period_ns;
		} else {
			for (; end < n && next < edge; end++) {
				const int64_t step = scan->period_ns + v[end];

				if (step < 0 || step > FARTHEST_NS || next > FARTHEST_NS)
					return SCAN_UNSORTED;
				next += step;
			}
		}
		NAME(count_part)(scan, v + i, end - i, index + i, due, second, on_scale);
		due = next;
		i = end;
	}
	*due_ns = due;
	return SCAN_DONE;
}

/* The sample's own cycle has ended: counts it if it is short and the one before was long. parted: it begins a slice, or follows a hole. */
static void NAME(end_cycle)(struct scan *scan, int64_t value, int64_t wake_ns, bool parted, bool counts)
{
	const int64_t cycle = scan->chained_cycles ? scan->period_ns + value : wake_ns - scan->previous_wake_ns;

	if (counts && !parted && scan->was_long && 5 * cycle < 4 * scan->period_ns)
		scan->catch_up_pairs++;
	scan->was_long = !parted && 5 * cycle > 6 * scan->period_ns;
	scan->previous_wake_ns = wake_ns;
}

static void NAME(all_cycles)(struct scan *scan, const ELEMENT *v, const struct block *block, bool parted, bool counts)
{
	const uint32_t n = block->values.n;
	struct gap_cursor gaps;
	int64_t due = block->first_due_ns;

	open_gaps(&gaps, block);
	for (uint32_t i = 0; i < n; i++) {
		NAME(end_cycle)(scan, v[i], due + v[i], i == 0 && parted, counts);
		due += scan->period_ns + (scan->by_period ? 0 : (int64_t)v[i]);
		if (gaps.position == i) {
			due += scan->by_period ? gaps.missed * scan->period_ns : 0;
			next_gap(&gaps);
		}
	}
}

/*
 * Pairs of cycles of a block on the grid of periods in which nothing was missed: the first above 1.2 periods, the second below 0.8.
 * A cycle is longer than a period by what its second sample is later than its first. Only pairs of its own samples are counted.
 */
static int64_t NAME(catch_up_within)(const ELEMENT *v, uint32_t n, int64_t period_ns)
{
	const ELEMENT step = (ELEMENT)(period_ns / 5 + 1);
	UNSIGNED found = 0;

	for (uint32_t i = 2; i < n; i++)
		found += (UNSIGNED)((v[i - 1] - v[i] >= step) & (v[i - 1] - v[i - 2] >= step));
	return found;
}

static void NAME(add_products)(struct scan *scan, const ELEMENT *v, uint32_t n, ELEMENT low, ELEMENT high)
{
	scan->pairs += n - 1;
	if (low >= 0 && high < 1 << 23) {
		uint64_t sum = 0; /* 65,536 times 2^46 at most */

		for (uint32_t i = 1; i < n; i++)
			sum += (uint64_t)(uint32_t)v[i - 1] * (uint32_t)v[i];
		add_product(scan, sum);
	} else {
		__int128 sum = 0;

		for (uint32_t i = 1; i < n; i++)
			sum += (__int128)v[i - 1] * v[i];
		add_product(scan, sum);
	}
}

static int64_t NAME(count_block)(struct scan *scan, const struct block *block, bool leads)
{
	ELEMENT *v = scan->scratch;
	const uint32_t n = block->values.n;
	const bool parted = !scan->has_previous || block->first_index != scan->next_index ||
			    is_slice_start(scan, block->first_due_ns);
	const int64_t period_ns = scan->period_ns;

	if (scan->has_previous && block->first_due_ns < scan->previous_due_ns)
		return SCAN_UNSORTED;
	NAME(read)(v, &block->values);

	ELEMENT low = v[0], high = v[0];

	for (uint32_t i = 1; i < n; i++) {
		low = v[i] < low ? v[i] : low;
		high = v[i] > high ? v[i] : high;
	}
	const bool on_scale = low >= 0 && high < scan->window;
	/* Without gaps, and without a jump that is large enough, few cycles have to be looked at. */
	const bool even = scan->by_period && !block->positions.n && period_ns / 5 < INT32_MAX;
	const bool walk = leads || (scan->by_period ? !even : low <= -(period_ns / 5));

	if (walk) {
		NAME(all_cycles)(scan, v, block, parted, !leads);
	} else {
		NAME(end_cycle)(scan, v[0], block->first_due_ns + v[0], parted, true);
		if (scan->by_period && n > 1) {
			NAME(end_cycle)(scan, v[1], block->first_due_ns + period_ns + v[1], false, true);
			scan->catch_up_pairs += high - low > period_ns / 5 ? NAME(catch_up_within)(v, n, period_ns) : 0;
		}
	}
	if (!leads) {
		if (!parted) {
			scan->pairs++;
			add_product(scan, (__int128)scan->previous_value * v[0]);
		}
		NAME(add_products)(scan, v, n, low, high);
		scan->samples += n;
	}

	/* The samples from one gap to the next. due, last_due_ns, before_ns: of the next sample, the last one and the one before it. */
	struct gap_cursor gaps;
	int64_t due = block->first_due_ns, index = block->first_index, last_due_ns = due, before_ns = due;

	open_gaps(&gaps, block);
	for (uint32_t at = 0; at < n;) {
		const uint32_t end = gaps.left && gaps.position < n ? (uint32_t)gaps.position + 1 : n;
		const int64_t missed = gaps.left ? gaps.missed : 0, begin_ns = due;

		if (gaps.left && (gaps.position < at || gaps.position >= n || missed < 1))
			return SCAN_CHANGED;
		if (missed > scan->longest_gap_ns / period_ns)
			return SCAN_STALL;
		if (due > FARTHEST_NS || due < -FARTHEST_NS)
			return SCAN_UNSORTED;
		if (scan->by_period) {
			before_ns = end - at > 1 ? begin_ns + (end - at - 2) * period_ns : last_due_ns;
			last_due_ns = begin_ns + (end - at - 1) * period_ns;
		}
		if (leads && scan->by_period) {
			due += (end - at) * period_ns;
		} else if (leads) {
			for (uint32_t i = at; i < end; i++)
				due += period_ns + v[i];
		} else {
			const int64_t code = NAME(count_run)(scan, v + at, end - at, index, &due, on_scale);

			if (code != SCAN_DONE)
				return code;
		}
		if (!scan->by_period) {
			last_due_ns = due - period_ns - v[end - 1];
			before_ns = end > 1 ? last_due_ns - period_ns - v[end - 2] : last_due_ns;
		}
		if (missed && !leads) {
			scan->gap_due_ns[scan->n_gaps] = last_due_ns;
			scan->gap_value[scan->n_gaps] = v[end - 1];
			scan->gap_missed[scan->n_gaps++] = missed;
		}
		index += end - at + missed;
		due += scan->by_period ? missed * period_ns : 0;
		at = end;
		if (gaps.left)
			next_gap(&gaps);
	}
	if (gaps.left)
		return SCAN_CHANGED;
	if (!walk && n > 1) {
		scan->previous_wake_ns = before_ns + v[n - 2];
		NAME(end_cycle)(scan, v[n - 1], last_due_ns + v[n - 1], false, false);
	}
	if (!leads) {
		const int64_t end_ns = scan->on_grid ? block->first_due_ns + (index - block->first_index - 1) * period_ns : last_due_ns;

		scan->first_due_ns = scan->has_reach && scan->first_due_ns < block->first_due_ns ? scan->first_due_ns
												 : block->first_due_ns;
		scan->last_due_ns = scan->has_reach && scan->last_due_ns > end_ns ? scan->last_due_ns : end_ns;
		scan->has_reach = 1;
	}
	scan->has_previous = 1;
	scan->next_index = index;
	scan->previous_value = v[n - 1];
	scan->previous_due_ns = last_due_ns;
	return SCAN_DONE;
}
