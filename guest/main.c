/* SPDX-License-Identifier: Apache-2.0
 * The guest's end of the channel between a virtual machine and its host; the script `init` calls it step by step. */
#include "mailbox.h"
#include "stop.h"
#include "supervise.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_S 3
#define RESERVE (1u << 16)

static int explain(struct mail *mail, const char *sentence)
{
	mail_post(mail, MAIL_FAILED, sentence, strlen(sentence));
	return 0;
}

/* A kernel that has just booted is still busy with work it put off, and that would be measured with the rest. */
static int settle(struct mail *mail)
{
	mail_set_state(mail, MAIL_ALIVE);
	nanosleep(&(struct timespec){.tv_sec = SETTLE_S}, NULL);
	mail_set_state(mail, MAIL_READY);
	return !mail->header->stop || stop_machine();
}

static uint32_t crc32_add(uint32_t crc, const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

static int send(struct mail *mail)
{
	static unsigned char piece[1 << 16];
	struct {
		uint32_t length, crc;
	} sum = {0, ~0u};
	for (ssize_t length; (length = read(STDIN_FILENO, piece, sizeof piece)) > 0;) {
		if (mail_room(mail, RESERVE) < (size_t)length)
			return explain(mail, "the job left more in /out than the memory shared with the host can hold");
		mail_post(mail, MAIL_RESULT, piece, (size_t)length);
		sum.crc = crc32_add(sum.crc, piece, (size_t)length);
		sum.length += (uint32_t)length;
	}
	sum.crc = ~sum.crc;
	return mail_post(mail, MAIL_RESULT_END, &sum, sizeof sum);
}

static int obey(struct mail *mail, int count, char **words)
{
	if (count == 2 && !strcmp(words[1], "settle"))
		return settle(mail);
	if (count == 2 && !strcmp(words[1], "take"))
		return mail_take(mail, STDOUT_FILENO);
	if (count > 2 && !strcmp(words[1], "run"))
		return mail_set_state(mail, MAIL_RUNNING), supervise(mail, words + 2);
	if (count == 2 && !strcmp(words[1], "send"))
		return send(mail);
	if (count == 2 && !strcmp(words[1], "done"))
		return mail_set_state(mail, MAIL_DONE), 1;
	if (count == 3 && !strcmp(words[1], "fail"))
		return explain(mail, words[2]), 1;
	fprintf(stderr, "usage: %s settle | take | run PROGRAM... | send | done | fail SENTENCE\n", words[0]);
	return 0;
}

int main(int count, char **words)
{
	struct mail mail;
	return mail_open(&mail) && obey(&mail, count, words) ? 0 : 1;
}
