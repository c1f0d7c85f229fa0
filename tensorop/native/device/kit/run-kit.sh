#!/bin/sh
# Measures this kit's library on this machine's GPU and writes one file for `tensorop import DIR FILE`.
# If it was stopped, start it again: it continues. README explains its variables, TENSOROP_KIT_*.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
out=${TENSOROP_KIT_OUT:-result.jsonl}
if [ "$(uname -m)" != "x86_64" ]; then
    echo "run-kit: this kit is for @PLATFORM@ in an x86-64 machine, this one is $(uname -m)" >&2
    exit 2
fi
if command -v sha256sum >/dev/null 2>&1; then
    if ! sha256sum -c SHA256SUMS >/dev/null 2>&1; then
        echo "run-kit: a file of this kit is damaged (sha256sum -c SHA256SUMS); copy the kit to this machine again" >&2
        exit 2
    fi
fi
./kit plan.txt "$out" || exit $?
case $out in
/*) whole=$out ;;
*) whole=$(pwd)/$out ;;
esac
name=${out##*/}
case $name in
*[!A-Za-z0-9_.+-]*) name="'$(printf %s "$name" | sed "s/'/'\\\\''/g")'" ;; # quoted for a shell
esac
printf '%s\n' "$whole is complete; copy it back and run: tensorop import DIR $name"
