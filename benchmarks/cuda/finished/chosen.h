// A finished product as arms of the clock: "product" by its own choice, "one:..." by each variant.
#pragma once
#include "../gemm.h"

namespace finished {

// The configuration that the product's own choice takes; not set where none is linked.
inline std::function<std::string(const Problem &)> chosen;

} // namespace finished
