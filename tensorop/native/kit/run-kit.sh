#!/bin/sh
# Measures this kit's library on this machine and writes one file for `tensorop import DIR FILE`.
# If it was stopped, start it again: it continues. README explains its variables, TENSOROP_KIT_*.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
out=${TENSOROP_KIT_OUT:-result.jsonl}
@MACHINE@
if command -v sha256sum >/dev/null 2>&1; then
    if ! sha256sum -c SHA256SUMS >/dev/null 2>&1; then
        echo "run-kit: a file of this kit is damaged (sha256sum -c SHA256SUMS); copy the kit to this machine again" >&2
        exit 2
    fi
fi
# $run has several words: an emulator and its options
# shellcheck disable=SC2086
$run ./kit @PLAN@ "$out" || exit $?
case $out in
/*) whole=$out ;;
*) whole=$(pwd)/$out ;;
esac
name=${out##*/}
case $name in
*[!A-Za-z0-9_.+-]*) name="'$(printf %s "$name" | sed "s/'/'\\\\''/g")'" ;; # quoted for a shell
esac
printf '%s\n' "$whole is complete; copy it back and run: tensorop import DIR $name"
