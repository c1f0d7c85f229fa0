// The baselines: cuBLASLt's answers, found at run time by dlopen.
#pragma once
#include "gemm.h"

namespace lt {

// Empty when the library was found, else what to do. Looks at $CUBLASLT first.
std::string load();
size_t version();

constexpr size_t WORKSPACE = 32 << 20;

// What seven queries return: the default one, no workspace, at most 1 and at most 2 waves,
// operands aligned to 16 and to 2 bytes, and no workspace with at most 1 wave. Each answer once, in
// the order found, so that the first is the library's own choice.
std::vector<Candidate> algorithms(const Problem &p);

// A and B copied to rows of a multiple of 8 elements, the library's answers on that, C copied
// back: what a careful user does with odd sizes. Empty where nothing needs a copy.
std::vector<Candidate> padded(const Problem &p);

} // namespace lt
