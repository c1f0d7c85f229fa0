run=
if [ "$(uname -m)" != "@ARCH@" ]; then
    echo "run-kit: this kit is for @PLATFORM@ in a machine of @ARCH@, this one is $(uname -m)" >&2
    exit 2
fi
