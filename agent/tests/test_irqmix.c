/* SPDX-License-Identifier: Apache-2.0 */
#include "loads/irqmix.h"

#include "check.h"

#include <string.h>

enum { STEPS = 10000 };

static void draw(uint32_t seed, uint32_t worker, struct irqmix_step *steps)
{
	uint32_t state = irqmix_start(seed, worker);

	for (int i = 0; i < STEPS; i++)
		steps[i] = irqmix_next(&state);
}

static int differing(const struct irqmix_step *a, const struct irqmix_step *b)
{
	int n = 0;

	for (int i = 0; i < STEPS; i++)
		n += a[i].kind != b[i].kind || a[i].amount != b[i].amount || a[i].choice != b[i].choice;
	return n;
}

static void the_same_seed_gives_the_same_steps_and_another_does_not(void)
{
	static struct irqmix_step first[STEPS], again[STEPS];

	draw(7, 0, first);
	draw(7, 0, again);
	CHECK(differing(first, again) == 0);
	draw(8, 0, again);
	CHECK(differing(first, again) > STEPS / 2);
	draw(7, 1, again);
	CHECK(differing(first, again) > STEPS / 2);
}

static void every_kind_comes_and_the_medium_least(void)
{
	static struct irqmix_step steps[STEPS];
	int seen[MIX_KINDS] = { 0 };

	draw(1, 0, steps);
	for (int i = 0; i < STEPS; i++) {
		CHECK(steps[i].kind < MIX_KINDS && steps[i].amount >= 1 && steps[i].amount <= 16);
		seen[steps[i].kind]++;
	}
	for (int kind = 0; kind < MIX_DISK; kind++)
		CHECK(seen[kind] > STEPS / (2 * MIX_DISK) && seen[kind] > 8 * seen[MIX_DISK]);
	CHECK(seen[MIX_DISK] > 0);
}

static void no_seed_stands_still(void)
{
	for (uint32_t seed = 0; seed < STEPS; seed++)
		CHECK(irqmix_start(seed, seed % 64) != 0);
	CHECK(irqmix_start(UINT32_MAX, 0) != 0);
}

int main(void)
{
	the_same_seed_gives_the_same_steps_and_another_does_not();
	every_kind_comes_and_the_medium_least();
	no_seed_stands_still();
	return EXIT_SUCCESS;
}
