/* SPDX-License-Identifier: Apache-2.0 */
#include "mailbox.h"

#include "pci.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IVSHMEM_VENDOR 0x1af4
#define IVSHMEM_DEVICE 0x1110
#define IVSHMEM_MEMORY 2
#define FRAME_HEAD 8u
#define POLL_NS 10000000

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

int mail_open(struct mail *mail)
{
	struct pci pci;
	mail->area = pci_find(&pci, IVSHMEM_VENDOR, IVSHMEM_DEVICE) ? pci_map(&pci, IVSHMEM_MEMORY, &mail->size) : NULL;
	if (!mail->area)
		return 0;
	mail->header = (volatile struct mail_header *)mail->area;
	if (mail->header->magic != MAIL_MAGIC)
		fprintf(stderr, "rtproof-guest: the memory shared with the host does not begin with our mark\n");
	return mail->header->magic == MAIL_MAGIC;
}

void mail_set_state(struct mail *mail, enum mail_state state)
{
	atomic_thread_fence(memory_order_seq_cst);
	mail->header->state = state;
}

static size_t frames_begin(const struct mail *mail)
{
	return MAIL_PAGE + round_up(mail->header->job_length, MAIL_PAGE);
}

size_t mail_room(const struct mail *mail, size_t reserve)
{
	size_t used = frames_begin(mail) + mail->header->written + FRAME_HEAD + reserve;
	return used < mail->size ? (mail->size - used) & ~(size_t)7 : 0;
}

int mail_post(struct mail *mail, enum mail_kind kind, const void *payload, size_t length)
{
	if (length > mail_room(mail, 0))
		return 0;
	volatile uint32_t *to = mail->area + (frames_begin(mail) + mail->header->written) / 4;
	*to++ = kind;
	*to++ = (uint32_t)length;
	for (size_t at = 0; at < length; at += 4) {
		uint32_t word = 0;
		memcpy(&word, (const char *)payload + at, length - at < 4 ? length - at : 4);
		*to++ = word;
	}
	/* The host reads while we write: it must see the bytes before their number. */
	atomic_thread_fence(memory_order_seq_cst);
	mail->header->written += (uint32_t)(FRAME_HEAD + round_up(length, 8));
	return 1;
}

int mail_take(const struct mail *mail, int fd)
{
	while (!mail->header->job_length)
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	atomic_thread_fence(memory_order_seq_cst);
	size_t length = mail->header->job_length;
	const volatile uint32_t *from = mail->area + MAIL_PAGE / 4;
	uint32_t piece[1024];
	for (size_t at = 0; at < length;) {
		size_t bytes = length - at < sizeof piece ? length - at : sizeof piece;
		for (size_t i = 0; i < round_up(bytes, 4) / 4; i++)
			piece[i] = *from++;
		ssize_t done = write(fd, piece, bytes);
		if (done != (ssize_t)bytes)
			return 0;
		at += bytes;
	}
	return 1;
}
