/* SPDX-License-Identifier: Apache-2.0 */
#include "pci.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"
#define FILE_PATH (PCI_PATH + 32)

static FILE *open_file(const struct pci *pci, const char *name, const char *mode)
{
	char path[FILE_PATH];
	snprintf(path, sizeof path, "%s/%s", pci->folder, name);
	return fopen(path, mode);
}

static unsigned read_number(const struct pci *pci, const char *name)
{
	unsigned number = 0;
	FILE *file = open_file(pci, name, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%x", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

/* The device's memory answers only once the device is enabled; drivers do that otherwise. */
static int enable(const struct pci *pci)
{
	FILE *file = open_file(pci, "enable", "w");
	if (!file)
		return 0;
	fputs("1", file);
	return fclose(file) == 0;
}

int pci_find(struct pci *pci, unsigned vendor, unsigned device)
{
	DIR *devices = opendir(DEVICES);
	int found = 0;
	for (const struct dirent *entry; devices && !found && (entry = readdir(devices));) {
		snprintf(pci->folder, sizeof pci->folder, DEVICES "/%s", entry->d_name);
		found = read_number(pci, "vendor") == vendor && read_number(pci, "device") == device;
	}
	if (devices)
		closedir(devices);
	if (!found)
		fprintf(stderr, "rtproof-guest: this kernel shows no PCI device %04x:%04x\n", vendor, device);
	else if (!enable(pci))
		fprintf(stderr, "rtproof-guest: %s cannot be enabled\n", pci->folder);
	else
		return 1;
	return 0;
}

/* Write-combining where there is such a mapping: ARM takes unaligned accesses there, and it is faster. */
static int open_region(const struct pci *pci, unsigned bar)
{
	static const char *const kinds[] = {"_wc", ""};
	int fd = -1;
	for (size_t i = 0; fd < 0 && i < sizeof kinds / sizeof *kinds; i++) {
		char path[FILE_PATH];
		snprintf(path, sizeof path, "%s/resource%u%s", pci->folder, bar, kinds[i]);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	return fd;
}

/* Small regions of several devices may share a page, which is what a mapping begins with. */
static size_t offset_in_page(const struct pci *pci, unsigned bar)
{
	unsigned long long begin = 0;
	FILE *file = open_file(pci, "resource", "r");
	if (!file)
		return 0;
	for (unsigned line = 0; line <= bar; line++)
		if (fscanf(file, "%llx %*x %*x", &begin) != 1)
			begin = 0;
	fclose(file);
	return (size_t)begin & ((size_t)sysconf(_SC_PAGESIZE) - 1);
}

volatile void *pci_map(const struct pci *pci, unsigned bar, size_t *size)
{
	int fd = open_region(pci, bar);
	struct stat stat;
	void *mapped = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &stat) == 0) {
		*size = (size_t)stat.st_size;
		mapped = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (mapped == MAP_FAILED)
		fprintf(stderr, "rtproof-guest: the memory of %s cannot be mapped: %s\n", pci->folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return mapped == MAP_FAILED ? NULL : (char *)mapped + offset_in_page(pci, bar);
}

int pci_configure(const struct pci *pci, unsigned offset, const void *bytes, size_t length)
{
	char path[FILE_PATH];
	snprintf(path, sizeof path, "%s/config", pci->folder);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int done = fd >= 0 && pwrite(fd, bytes, length, (off_t)offset) == (ssize_t)length;
	if (fd >= 0)
		close(fd);
	return done;
}
