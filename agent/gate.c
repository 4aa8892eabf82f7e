/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

void gate_init(struct gate *gate, int done_fd)
{
	pthread_mutex_init(&gate->mutex, NULL);
	pthread_cond_init(&gate->changed, NULL);
	gate->ready = 0;
	gate->origin_ns = 0;
	gate->done_fd = done_fd;
}

void gate_arrive(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	gate->ready++;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
}

void gate_await(struct gate *gate, int n)
{
	pthread_mutex_lock(&gate->mutex);
	while (gate->ready < n)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	pthread_mutex_unlock(&gate->mutex);
}

void gate_open(struct gate *gate, int64_t origin_ns)
{
	pthread_mutex_lock(&gate->mutex);
	gate->origin_ns = origin_ns;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
}

int64_t gate_pass(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (!gate->origin_ns)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	int64_t origin_ns = gate->origin_ns;

	pthread_mutex_unlock(&gate->mutex);
	return origin_ns;
}
