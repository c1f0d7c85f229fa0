/* The format of elements in a kit, for its kernels and its host code. */
#ifndef TENSOROP_KIT_FORMATS_H
#define TENSOROP_KIT_FORMATS_H

enum format { F16, BF16, FLOAT };

#endif
