/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PCI_H
#define PCI_H

#include <stddef.h>

#define PCI_PATH 300

/* A PCI device in use by this process: no driver, and so no interrupt of it, has a part in that. */
struct pci {
	char folder[PCI_PATH];
};

/* The first device of that kind, enabled. 0, with a sentence on stderr, if there is none. */
int pci_find(struct pci *pci, unsigned vendor, unsigned device);

/* Map a memory region of the device. `bar`: number of the region. `size`: receives its bytes.
 * NULL, with a sentence on stderr, if that cannot be done. */
volatile void *pci_map(const struct pci *pci, unsigned bar, size_t *size);

/* Write bytes into the device's configuration. 0 if that cannot be done. */
int pci_configure(const struct pci *pci, unsigned offset, const void *bytes, size_t length);

#endif
