#include "board.h"

#define NAME(name, report, vector) #name,
const char *const cost_names[COSTS] = {COST_CLASSES(NAME)};
#define REPORTED(name, report, vector) REPORT_##report,
const uint8_t cost_report[COSTS] = {COST_CLASSES(REPORTED)};
#define IS_VECTOR(name, report, vector) vector,
const uint8_t cost_is_vector[COSTS] = {COST_CLASSES(IS_VECTOR)};
#define REPORT_NAME(name) #name,
const char *const report_names[REPORTS] = {REPORT_CLASSES(REPORT_NAME)};
const char *const lmul_names[LMULS] = {"mf8", "mf4", "mf2", "m1", "m2", "m4", "m8"};

extern const struct decoder decoder_rv64, decoder_aarch64;
const struct decoder *const decoders[] = {&decoder_rv64, &decoder_aarch64, NULL};
