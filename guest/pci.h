/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PCI_H
#define PCI_H

#include <stddef.h>

/* Map a memory region of a PCI device into this process: no driver, and so no interrupt, has a part in its use.
 * `bar`: number of the region. `size`: receives its bytes. NULL, with a sentence on stderr, if that cannot be done. */
volatile void *pci_map(unsigned vendor, unsigned device, unsigned bar, size_t *size);

#endif
