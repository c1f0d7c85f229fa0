#!/bin/sh
# Measures this kit's library on this machine's GPU and writes one file, which goes back to `tensorop import DIR FILE`.
# Stopped and started again, it goes on. See README for BOARD, CUBLASLT and OUT.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")"
out=${OUT:-result.jsonl}
if [ "$(uname -m)" != "x86_64" ]; then
    echo "run-kit: this kit is for @PLATFORM@ in an x86-64 machine, this one is $(uname -m)" >&2
    exit 2
fi
if command -v sha256sum >/dev/null 2>&1; then
    if ! sha256sum -c SHA256SUMS >/dev/null 2>&1; then
        echo "run-kit: a file of this kit is damaged (sha256sum -c SHA256SUMS); copy it here again" >&2
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
*[!A-Za-z0-9_.+-]*) name="'$(printf %s "$name" | sed "s/'/'\\\\''/g")'" ;; # as a shell reads it
esac
printf '%s\n' "$whole is whole; bring it back: tensorop import DIR $name"
