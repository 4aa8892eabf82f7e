# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# tuned calls this with start, verify or stop, and a unit with hold. Only a boot undoes what this sets.
case ${1-start} in start | hold) ;; *) exit 0 ;; esac

# VALUE FILE...; the value @NAME is what the file NAME beside it says
put() {
	value=$1 taken=
	shift
	for file; do
		case $value in @*) line=$(cat "${file%/*}/${value#@}") ;; *) line=$value ;; esac
		{ echo "$line" > "$file"; } 2> /dev/null && taken=yes
	done
	[ "$taken" ] || echo "$0: none takes $value: $*" >&2
}

# PATTERN COMMAND...: for the number of each thread with such a name
threads() {
	pattern=$1 taken=
	shift
	for task in /proc/[0-9]*/task/[0-9]*; do
		{ read -r name < "$task/comm"; } 2> /dev/null || continue
		# shellcheck disable=SC2254 # a pattern
		case $name in $pattern) "$@" "${task##*/}" > /dev/null 2>&1 && taken=yes ;; esac
	done
	[ "$taken" ] || echo "$0: no thread $pattern takes $*" >&2
}

# PATTERN FIELD VALUE: for each network device with such a name
links() {
	taken=
	for device in /sys/class/net/$1; do
		ethtool -C "${device##*/}" "$2" "$3" > /dev/null 2>&1 && taken=yes
	done
	[ "$taken" ] || echo "$0: no device $1 takes $2 $3" >&2
}

# The kernel keeps CPUs from slow idle states for as long as a process has this file open.
hold() {
	[ "$1" != hold ] || [ ! -c /dev/cpu_dma_latency ] || { printf '\0\0\0\0' >&3 && exec sleep 2147483647; } 3> /dev/cpu_dma_latency
}

