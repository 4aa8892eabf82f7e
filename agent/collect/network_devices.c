/* SPDX-License-Identifier: Apache-2.0 */
#include "system/sys.h"

#include "collect/network_devices.h"

#include "collect/lines.h"
#include "system/text.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { DEVICES_MOST = 256, LIST_MOST = 65536, NAMES_AFTER = 2 };

/* Of linux/sockios.h and linux/ethtool.h, which differ by their age. */
enum { ASK_FLAGS = 0x8913, ASK_ETHTOOL = 0x8946 };
enum { GET_DRIVER = 0x03, GET_COALESCE = 0x0e, GET_CHANNELS = 0x3c, GET_EEE = 0x44 };
enum { COALESCE_WORDS = 24, EEE_WORDS = 10, CHANNEL_WORDS = 9 };
enum { RX_USECS = 1, TX_USECS = 5, ADAPTIVE_RX = 10, EEE_ENABLED = 5, RX_CHANNELS = 5, TX_CHANNELS, OTHER_CHANNELS, COMBINED_CHANNELS };

struct driver_info {
	uint32_t command;
	char driver[32], version[32], firmware[32], bus[32], rom[32], reserved[12];
	uint32_t counts[5];
};

static bool ask(int socket, const char *name, void *answer)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = answer;
	return ioctl(socket, ASK_ETHTOOL, &request) == 0;
}

static bool is_up(int socket, const char *name)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(socket, ASK_FLAGS, &request) == 0 && (request.ifr_flags & IFF_UP);
}

/* The kernel wakes a device to answer the questions of ethtool, which an audit must not. */
static bool is_asleep(const char *name)
{
	char path[96], status[24];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/power/runtime_status", name);
	return !text_read_line(path, status, sizeof(status)) && !strncmp(status, "suspend", strlen("suspend"));
}

static void put_answers(struct bytes *text, int socket, const char *name)
{
	struct driver_info driver = { .command = GET_DRIVER };
	uint32_t coalesce[COALESCE_WORDS] = { GET_COALESCE }, eee[EEE_WORDS] = { GET_EEE }, channels[CHANNEL_WORDS] = { GET_CHANNELS };

	if (ask(socket, name, &driver))
		put_format(text, " driver=%.31s", driver.driver);
	if (ask(socket, name, coalesce))
		put_format(text, " rx-usecs=%lu tx-usecs=%lu adaptive-rx=%d", (unsigned long)coalesce[RX_USECS],
			   (unsigned long)coalesce[TX_USECS], coalesce[ADAPTIVE_RX] != 0);
	if (ask(socket, name, eee))
		put_format(text, " eee=%d", eee[EEE_ENABLED] != 0);
	if (ask(socket, name, channels)) {
		uint32_t alone = channels[RX_CHANNELS] > channels[TX_CHANNELS] ? channels[RX_CHANNELS] : channels[TX_CHANNELS];

		put_format(text, " channels=%lu", (unsigned long)channels[COMBINED_CHANNELS] + alone);
	}
}

static void put_device(struct bytes *text, int socket, const char *name)
{
	char path[80], threaded[16];

	put_format(text, "%s", name);
	if (is_asleep(name))
		put_format(text, " asleep=1");
	else
		put_answers(text, socket, name);
	snprintf(path, sizeof(path), "/sys/class/net/%s/threaded", name);
	if (!text_read_line(path, threaded, sizeof(threaded)))
		put_format(text, " threaded=%s", threaded);
	put_u8(text, '\n');
}

/* "  NAME: NUMBERS" after two lines of names. False: it is none. */
static bool name_in_line(char *line, char name[IFNAMSIZ])
{
	line += strspn(line, " ");
	size_t length = strcspn(line, ": ");

	if (!length || length >= IFNAMSIZ || line[length] != ':')
		return false;
	memcpy(name, line, length);
	name[length] = '\0';
	return strcmp(name, "lo") != 0;
}

int collect_network_devices(struct bytes *text, int pid)
{
	struct bytes list = { NULL, 0, 0, false };
	char *rest, *line, name[IFNAMSIZ];
	int n = 0, err = put_file(&list, "/proc/self/net/dev", LIST_MOST); /* of its own namespace, as the calls are */
	int asked = err < 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)pid;
	if (err >= 0 && asked < 0)
		err = -errno;
	rest = (char *)list.data;
	for (int i = 0; err >= 0 && n < DEVICES_MOST && (line = next_line(&rest)); i++)
		if (i >= NAMES_AFTER && name_in_line(line, name) && is_up(asked, name)) {
			put_device(text, asked, name);
			n++;
		}
	if (asked >= 0)
		close(asked);
	bytes_free(&list);
	return n == DEVICES_MOST ? TEXT_IS_CUT : err;
}
