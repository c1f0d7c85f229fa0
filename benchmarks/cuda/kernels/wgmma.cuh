// wgmma.mma_async m64nNk16 with fp32 sums: one specialisation for every N. nvcc knows no names for
// operands of asm, so that the registers are spelled out by macros.
#pragma once
#include <cstdint>

// D (N / 2 registers a thread) = A B + (scale ? D : 0); TA, TB: the operand is stored along M or N.
template <int N, bool BF16, int TA, int TB> struct Wgmma;

// clang-format off
#define WG_L1 "%0,%1,%2,%3,%4,%5,%6,%7"
#define WG_L2 WG_L1 "," "%8,%9,%10,%11,%12,%13,%14,%15"
#define WG_L3 WG_L2 "," "%16,%17,%18,%19,%20,%21,%22,%23"
#define WG_L4 WG_L3 "," "%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_L5 WG_L4 "," "%32,%33,%34,%35,%36,%37,%38,%39"
#define WG_L6 WG_L5 "," "%40,%41,%42,%43,%44,%45,%46,%47"
#define WG_L7 WG_L6 "," "%48,%49,%50,%51,%52,%53,%54,%55"
#define WG_L8 WG_L7 "," "%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_L9 WG_L8 "," "%64,%65,%66,%67,%68,%69,%70,%71"
#define WG_L10 WG_L9 "," "%72,%73,%74,%75,%76,%77,%78,%79"
#define WG_L11 WG_L10 "," "%80,%81,%82,%83,%84,%85,%86,%87"
#define WG_L12 WG_L11 "," "%88,%89,%90,%91,%92,%93,%94,%95"
#define WG_L13 WG_L12 "," "%96,%97,%98,%99,%100,%101,%102,%103"
#define WG_L14 WG_L13 "," "%104,%105,%106,%107,%108,%109,%110,%111"
#define WG_L15 WG_L14 "," "%112,%113,%114,%115,%116,%117,%118,%119"
#define WG_L16 WG_L15 "," "%120,%121,%122,%123,%124,%125,%126,%127"
#define WG_R8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WG_O1 WG_R8(0)
#define WG_O2 WG_O1, WG_R8(8)
#define WG_O3 WG_O2, WG_R8(16)
#define WG_O4 WG_O3, WG_R8(24)
#define WG_O5 WG_O4, WG_R8(32)
#define WG_O6 WG_O5, WG_R8(40)
#define WG_O7 WG_O6, WG_R8(48)
#define WG_O8 WG_O7, WG_R8(56)
#define WG_O9 WG_O8, WG_R8(64)
#define WG_O10 WG_O9, WG_R8(72)
#define WG_O11 WG_O10, WG_R8(80)
#define WG_O12 WG_O11, WG_R8(88)
#define WG_O13 WG_O12, WG_R8(96)
#define WG_O14 WG_O13, WG_R8(104)
#define WG_O15 WG_O14, WG_R8(112)
#define WG_O16 WG_O15, WG_R8(120)
#define WG_ASM(N, TYPE, I, A, B, S, X, Y)                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " S ", 0;\n"                                     \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                     \
                 " {" WG_L##I "}, " A ", " B ", p, 1, 1, " X ", " Y ";\n}\n"                         \
                 : WG_O##I                                                                          \
                 : "l"(a), "l"(b), "r"(scale), "n"(TA), "n"(TB))
#define WG_CASE(N, I, A, B, S, X, Y)                                                                 \
    template <bool BF16, int TA, int TB> struct Wgmma<N, BF16, TA, TB> {                             \
        static __device__ __forceinline__ void mma(float (&d)[N / 2], uint64_t a, uint64_t b,        \
                                                   int scale) {                                      \
            if constexpr (BF16)                                                                      \
                WG_ASM(N, "bf16", I, A, B, S, X, Y);                                                 \
            else                                                                                     \
                WG_ASM(N, "f16", I, A, B, S, X, Y);                                                  \
        }                                                                                            \
    };
WG_CASE(16, 1, "%8", "%9", "%10", "%11", "%12")
WG_CASE(32, 2, "%16", "%17", "%18", "%19", "%20")
WG_CASE(48, 3, "%24", "%25", "%26", "%27", "%28")
WG_CASE(64, 4, "%32", "%33", "%34", "%35", "%36")
WG_CASE(80, 5, "%40", "%41", "%42", "%43", "%44")
WG_CASE(96, 6, "%48", "%49", "%50", "%51", "%52")
WG_CASE(112, 7, "%56", "%57", "%58", "%59", "%60")
WG_CASE(128, 8, "%64", "%65", "%66", "%67", "%68")
WG_CASE(144, 9, "%72", "%73", "%74", "%75", "%76")
WG_CASE(160, 10, "%80", "%81", "%82", "%83", "%84")
WG_CASE(176, 11, "%88", "%89", "%90", "%91", "%92")
WG_CASE(192, 12, "%96", "%97", "%98", "%99", "%100")
WG_CASE(208, 13, "%104", "%105", "%106", "%107", "%108")
WG_CASE(224, 14, "%112", "%113", "%114", "%115", "%116")
WG_CASE(240, 15, "%120", "%121", "%122", "%123", "%124")
WG_CASE(256, 16, "%128", "%129", "%130", "%131", "%132")
// clang-format on
