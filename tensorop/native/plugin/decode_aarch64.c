#include "board.h"
static void decode(uint32_t w, unsigned width, struct insn *o) { (void)w; (void)width; (void)o; }
const struct decoder decoder_aarch64 = {"aarch64", decode, false};
