run=${TENSOROP_KIT_RUN:-}
case " @ARCH@ " in
*" $(uname -m) "*) ;;
*)
    if [ -z "$run" ]; then
        echo "run-kit: this kit is for @PLATFORM@ (@ARCH@), this machine is $(uname -m)" >&2
        echo "         run it on such a board, or under an emulator with TENSOROP_KIT_RUN=\"qemu-... -cpu ...\"" >&2
        exit 2
    fi
    ;;
esac
