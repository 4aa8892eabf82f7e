/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STOP_H
#define STOP_H

/* Let the machine be stopped, at an instant that depends on nothing but the guest, and come back when it goes on.
 * 0, with a sentence on stderr, if the device for that is not there. */
int stop_machine(void);

#endif
