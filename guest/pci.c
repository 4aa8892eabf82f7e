/* SPDX-License-Identifier: Apache-2.0 */
#include "pci.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"

static unsigned read_number(const char *folder, const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	unsigned number = 0;
	if (!file)
		return 0;
	if (fscanf(file, "%x", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* The device's memory answers only once the device is enabled; drivers do that otherwise. */
static int enable(const char *folder)
{
	char path[512];
	snprintf(path, sizeof path, "%s/enable", folder);
	FILE *file = fopen(path, "w");
	if (!file)
		return 0;
	fputs("1", file);
	return fclose(file) == 0;
}

static int find(unsigned vendor, unsigned device, char *folder, size_t space)
{
	DIR *devices = opendir(DEVICES);
	if (!devices)
		return 0;
	int found = 0;
	for (const struct dirent *entry; !found && (entry = readdir(devices));) {
		snprintf(folder, space, DEVICES "/%s", entry->d_name);
		found = read_number(folder, "vendor") == vendor && read_number(folder, "device") == device;
	}
	closedir(devices);
	return found;
}

/* Write-combining where there is such a mapping: ARM takes unaligned accesses there, and it is faster. */
static int open_region(const char *folder, unsigned bar)
{
	static const char *const kinds[] = {"_wc", ""};
	int fd = -1;
	for (size_t i = 0; fd < 0 && i < sizeof kinds / sizeof *kinds; i++) {
		char path[512];
		snprintf(path, sizeof path, "%s/resource%u%s", folder, bar, kinds[i]);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	return fd;
}

/* Small regions of several devices may share a page, which is what a mapping begins with. */
static size_t offset_in_page(const char *folder, unsigned bar)
{
	char path[512];
	unsigned long long begin = 0;
	snprintf(path, sizeof path, "%s/resource", folder);
	FILE *file = fopen(path, "r");
	if (!file)
		return 0;
	for (unsigned line = 0; line <= bar; line++)
		if (fscanf(file, "%llx %*x %*x", &begin) != 1)
			begin = 0;
	fclose(file);
	return (size_t)begin & ((size_t)sysconf(_SC_PAGESIZE) - 1);
}

volatile void *pci_map(unsigned vendor, unsigned device, unsigned bar, size_t *size)
{
	char folder[sizeof DEVICES + 256];
	if (!find(vendor, device, folder, sizeof folder)) {
		fprintf(stderr, "rtproof-guest: this kernel shows no PCI device %04x:%04x\n", vendor, device);
		return NULL;
	}
	int fd = enable(folder) ? open_region(folder, bar) : -1;
	struct stat stat;
	void *mapped = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &stat) == 0) {
		*size = (size_t)stat.st_size;
		mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (mapped == MAP_FAILED)
		fprintf(stderr, "rtproof-guest: the memory of %s cannot be mapped: %s\n", folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return mapped == MAP_FAILED ? NULL : (char *)mapped + offset_in_page(folder, bar);
}
