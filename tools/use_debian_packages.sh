# SPDX-License-Identifier: Apache-2.0
# Run by check_debian_packages.sh in a root with the three packages: uses what they bring.
# A failure at the left of a pipe is not seen, so what matters stands alone.
cd /trial
must_fail() {
	if "$@"; then
		echo "this should have failed: $*" >&2
		exit 1
	fi
}

rtproof --version
rtproof-agent --help | head -n 3
man rtproof | head -n 8
man rtproof-agent | head -n 8
ls -l "$(rtproof agent path)"
[ "$(readlink -f "$(rtproof agent path)")" = /usr/bin/rtproof-agent ]
python3 -c 'from rtproof.record.compiled_scanner import scanner; assert scanner()' && echo "the scanner is loaded"

rtproof run --duration 1s --output run >/trial/printed
grep '^rtproof: NOT ASKED' /trial/printed
rtproof show run >/trial/printed
ls run
rtproof export run --format csv --output - | head -n 3
must_fail rtproof export run --format parquet
su person -c 'cd && rtproof run --duration 1s --allow-unprivileged --output run' >/trial/printed
tail -n 3 /trial/printed
rm -rf /home/person/run /home/person/run.html
[ ! -e /root/.cache/rtproof ] && [ ! -e /home/person/.cache/rtproof ]

bash -euc '. /usr/share/bash-completion/completions/rtproof; complete -p rtproof
	COMP_WORDS=(rtproof ru) COMP_CWORD=1; _rtproof_completion rtproof; echo "bash: ${COMPREPLY[*]}"; [ "${COMPREPLY[*]}" = run ]'
zsh -n /usr/share/zsh/vendor-completions/_rtproof
zsh -c 'autoload -Uz compinit; compinit -D -u; [ "$_comps[rtproof]" = _rtproof ] && echo "zsh: $_comps[rtproof]"'
HOME=/trial fish -c 'complete -C "rtproof ru"' | grep '^run'

dkms status
ls "/usr/src/rtproof-$(dpkg-query -W -f '${Version}' rtproof-dkms)"
