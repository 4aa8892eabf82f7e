#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check_debian_packages.sh [ROOT]    builds the Debian packages, examines them with lintian, and installs, uses and purges them
# Each step works in a new root of Debian 13: a copy of ROOT, or of one that debootstrap makes. It needs root, a mirror of Debian and
# 6 GB, and takes 10 to 30 minutes. STEPS="build lint use module" chooses some. KEEP=FOLDER keeps the packages there.
set -eu
cd "$(dirname "$0")/.."
all="build lint use module"
steps=${STEPS:-$all}
patience_s=${GUEST_PATIENCE_S:-3000}
PATH=$PATH:/usr/sbin:/sbin

refuse() {
	echo "check_debian_packages.sh: $1" >&2
	exit 2
}

[ "$(id -u)" -eq 0 ] || refuse "only root can work in a new root of Debian"
if [ $# -eq 0 ]; then
	command -v debootstrap >/dev/null || refuse "debootstrap is missing (Debian: apt-get install debootstrap), or name a root of Debian 13"
else
	[ -x "$1/usr/bin/dpkg" ] || refuse "$1 is no root of Debian"
fi
for step in $steps; do
	case " $all " in *" $step "*) ;; *) refuse "there is no step $step; there are: $all" ;; esac
done
if [ -n "${steps##build*}" ] && [ -z "${KEEP:-}" ]; then
	refuse "without the step build, KEEP must name the folder with the packages"
fi
work=$(mktemp -d)
packages=${KEEP:-$work/packages}
mkdir -p "$packages/older"
packages=$(cd "$packages" && pwd)
guest=

# What is still mounted is not removed.
clean_up() {
	trap - EXIT
	[ -z "$guest" ] || kill "$guest" 2>/dev/null || true
	for folder in $(awk -v work="$work/" 'index($5, work) == 1 {print $5}' /proc/self/mountinfo | tac); do
		umount "$folder" || exit 1
	done
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say() {
	echo "== $*"
}

within() {
	root=$work/$1
	shift
	env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"
}

# What apt prints is shown only when it fails.
apt() {
	root_name=$1
	shift
	within "$root_name" apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@" >"$work/apt.log" 2>&1 </dev/null ||
		{ tail -n 40 "$work/apt.log" >&2 && return 1; }
}

# A folder $work/NAME with a system in which nothing of ours ever was. No daemon starts in it.
make_root() {
	cp -a "$base" "$work/$1"
	cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
	printf '#!/bin/sh\nexit 101\n' >"$work/$1/usr/sbin/policy-rc.d"
	chmod 755 "$work/$1/usr/sbin/policy-rc.d"
	apt "$1" update
}

# As a plain user and without a network.
build_packages() {
	within build chown -R builder "/build/$1"
	unshare --net env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$work/build" su builder -c \
		"cd /build/$1/rtproof && LC_ALL=C.UTF-8 dpkg-buildpackage -us -uc $2" >"$work/build.log" 2>&1 ||
		{ tail -n 40 "$work/build.log" >&2 && exit 1; }
}

check_build() {
	say "build in a root with the build dependencies alone"
	make_root build
	within build useradd --create-home builder
	sh tools/copy_source.sh "$work/build/build/new/rtproof"
	apt build build-dep /build/new/rtproof
	build_packages new ""
	cp "$work"/build/build/new/*.* "$packages"
	say "build an older version, to upgrade from"
	sh tools/copy_source.sh "$work/build/build/older/rtproof"
	(
		cd "$work/build/build/older/rtproof"
		sed -i "1s/($version)/($older)/" debian/changelog
		sed -i "s/\"$version\"/\"$older\"/" src/rtproof/__init__.py agent/record/record.h kmod/dkms.conf
	)
	build_packages older -b
	cp "$work"/build/build/older/*.deb "$packages/older"
	rm -rf "$work/build"
	ls -l "$packages"
}

check_lint() {
	say lintian
	make_root lint
	apt lint install lintian
	within lint useradd --create-home reader
	cp -r "$packages" "$work/lint/packages"
	within lint lintian --version
	within lint su reader -c "lintian -EvIL +pedantic --fail-on error,warning,info,pedantic /packages/*.changes"
	rm -rf "$work/lint"
}

# Every file, with what it is; not what each use of apt and dpkg leaves, whatever the package.
list_files() {
	within "$1" find / -xdev '(' -path /proc -o -path /packages -o -path /var/log -o -path /var/lib/apt -o -path /var/cache/apt \
		-o -path /tmp -o -path /trial ')' -prune -o -printf '%y %m %u %p %l\n' | LC_ALL=C sort
}

three() {
	(cd "$work/use" && echo "$1"/rtproof_*.deb "$1"/rtproof-agent_*.deb "$1"/rtproof-dkms_*.deb)
}

check_use() {
	make_root use
	mkdir "$work/use/trial"
	cp -r "$packages" "$work/use/packages"
	mount -t proc proc "$work/use/proc"
	mount -t tmpfs -o mode=1777 tmpfs "$work/use/dev/shm"

	say "the agent alone, in a system without Python"
	within use sh -euc '! command -v python3; dpkg -i /packages/rtproof-agent_*.deb; rtproof-agent version; rtproof-agent --help | head -n 3
		rtproof-agent run --duration 1s -o /trial/alone.rtrec; ls -l /trial/alone.rtrec; dpkg --purge rtproof-agent'

	say "what the packages depend on, and what this check needs"
	depends=$(dpkg-deb -f "$packages"/rtproof_*.deb Depends | sed 's/rtproof-agent ([^)]*), *//')
	apt use satisfy "$depends" "$(dpkg-deb -f "$packages"/rtproof-dkms_*.deb Depends)"
	apt use install man-db bash-completion zsh fish
	within use useradd --create-home person
	list_files use >"$work/before"

	say "install $older, upgrade to $version, install again"
	# shellcheck disable=SC2046 # each is a word
	within use dpkg -i $(three packages/older)
	within use rtproof --version
	# shellcheck disable=SC2046
	within use dpkg -i $(three packages)
	within use rtproof --version
	# shellcheck disable=SC2046
	within use dpkg -i $(three packages)
	within use dpkg --audit

	say use
	within use sh -eu <"tools/use_debian_packages.sh"
	say "remove rtproof: the agent stays"
	within use sh -euc 'dpkg --remove rtproof; rtproof-agent version; ! python3 -c "import rtproof" 2>/trial/said; tail -n 1 /trial/said'
	say "purge, and compare the files with those before"
	within use dpkg --purge rtproof rtproof-agent rtproof-dkms
	list_files use >"$work/after"
	diff "$work/before" "$work/after" | grep -v ' /var/lib/dpkg/\| /var/cache/man/' >"$work/left" || true
	if grep '^[<>]' "$work/left"; then
		echo "these files were left, lost or changed" >&2
		exit 1
	fi
	echo "nothing is left"
	umount "$work/use/dev/shm" "$work/use/proc"
	rm -rf "$work/use"
}

check_module() {
	command -v qemu-system-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ] ||
		refuse "the step module needs qemu-system-x86_64 on an x86_64 machine"
	say "make a guest with Debian's kernel, its headers and dkms"
	make_root module
	apt module install linux-image-amd64 linux-headers-amd64 kmod iproute2
	apt module satisfy "$(dpkg-deb -f "$packages"/rtproof_*.deb Depends | sed 's/rtproof-agent ([^)]*), *//')" \
		"$(dpkg-deb -f "$packages"/rtproof-dkms_*.deb Depends)"
	apt module clean
	cp -r "$packages" "$work/module/packages"
	install -m 755 tools/use_debian_module.sh "$work/module/check"
	cp "$work"/module/boot/vmlinuz-* "$work/kernel"
	cp "$work"/module/boot/initrd.img-* "$work/initrd"
	mke2fs -q -t ext4 -d "$work/module" "$work/disk" 4G
	rm -rf "$work/module"
	say "the guest builds, loads, upgrades and purges the module"
	timeout "$patience_s" qemu-system-x86_64 -accel tcg -cpu max -m 1024 -smp 2 -nodefaults -no-reboot -display none \
		-serial "file:$work/console" -drive "file=$work/disk,format=raw,if=virtio" -kernel "$work/kernel" -initrd "$work/initrd" \
		-append "console=ttyS0 root=/dev/vda rw panic=-1 quiet init=/check" &
	guest=$!
	wait "$guest" || echo "the guest did not end within $patience_s s" >&2
	guest=
	tr -d '\r' <"$work/console"
	grep -q '^the guest is done' "$work/console" || exit 1
}

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/rtproof/__init__.py)
older=0.0.9
base=${1:-$work/base}
if [ $# -eq 0 ]; then
	say "debootstrap"
	debootstrap --variant=minbase trixie "$base" >"$work/debootstrap.log" || { tail "$work/debootstrap.log" >&2 && exit 1; }
fi
for step in $steps; do
	"check_$step"
done
say "all is well: $steps"
