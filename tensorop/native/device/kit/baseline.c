/* No library to compare with. An operator with one has a file of this name. */
#include "kit.h"

const char baseline_name[] = "none";

size_t baseline_version(void) { return 0; }

int baseline_arms(const struct judged *p, struct arm *arms, int most) {
    return (void)p, (void)arms, (void)most, 0;
}

void baseline_release(struct arm *arms, int count) { (void)arms, (void)count; }
