#!/bin/sh
# Measures this kit's library on this machine and writes one file for `tensorop import DIR FILE`.
# If it was stopped, start it again: it continues. README explains BOARD, CPU, OUT and RUN.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
out=${OUT:-result.jsonl}
RUN=${RUN:-}
export RUN
case " @ARCH@ " in
*" $(uname -m) "*) ;;
*)
    if [ -z "$RUN" ]; then
        echo "run-kit: this kit is for @PLATFORM@ (@ARCH@), this machine is $(uname -m)" >&2
        echo "         run it on such a board, or under an emulator with RUN=\"qemu-... -cpu ...\"" >&2
        exit 2
    fi
    ;;
esac
if command -v sha256sum >/dev/null 2>&1; then
    if ! sha256sum -c SHA256SUMS >/dev/null 2>&1; then
        echo "run-kit: a file of this kit is damaged (sha256sum -c SHA256SUMS); copy the kit to this machine again" >&2
        exit 2
    fi
fi
# $RUN has several words: an emulator and its options
# shellcheck disable=SC2086
$RUN ./kit plan.bin "$out" || exit $?
case $out in
/*) whole=$out ;;
*) whole=$(pwd)/$out ;;
esac
name=${out##*/}
case $name in
*[!A-Za-z0-9_.+-]*) name="'$(printf %s "$name" | sed "s/'/'\\\\''/g")'" ;; # quoted for a shell
esac
printf '%s\n' "$whole is complete; copy it back and run: tensorop import DIR $name"
