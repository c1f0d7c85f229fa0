/* The driver, the kit's kernels, and the properties of the board. */
#define _GNU_SOURCE
#include "kit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda cu;
extern const unsigned char tensorop_kit_kernels[];
__asm__(".section .rodata,\"a\",@progbits\n.balign 64\n.globl tensorop_kit_kernels\n"
        "tensorop_kit_kernels:\n.incbin \"kernels.bin\"\n.byte 0\n.previous\n");
enum { MAJOR = 75, MINOR = 76, MULTIPROCESSORS = 16, CLOCKS = 400 };

static void *module;
static struct {
    void *device;
    int (*clock)(void *, int, unsigned *);
    int (*power)(void *, unsigned *), (*limit)(void *, unsigned *);
    int (*temperature)(void *, int, unsigned *);
    char driver[96];
} board = {.driver = "unknown"};
static double sampled[3][CLOCKS];
static int samples[3];

void must(int status, const char *doing) {
    if (status) {
        fprintf(stderr, "kit: %s: driver error %d\n", doing, status);
        exit(3);
    }
}

const char *driver_open(void) {
    static const char *const names[] = {
        "cuInit",
        "cuDriverGetVersion",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceGetAttribute",
        "cuDeviceGetPCIBusId",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuCtxSynchronize",
        "cuMemGetInfo_v2",
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuMemHostAlloc",
        "cuMemcpyHtoD_v2",
        "cuMemcpyDtoH_v2",
        "cuMemcpyDtoDAsync_v2",
        "cuMemsetD8_v2",
        "cuModuleLoadData",
        "cuModuleGetFunction",
        "cuLaunchKernel",
        "cuStreamCreate",
        "cuStreamSynchronize",
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "cuGraphDestroy",
        "cuGraphExecDestroy",
        "cuEventCreate",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuEventElapsedTime",
    };
    static char said[200];
    int device;
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    _Static_assert(sizeof cu == sizeof(void *) * (sizeof names / sizeof *names), "a name for each");
    if (!library)
        return "libcuda.so.1 cannot be loaded: install NVIDIA's driver";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(library, names[i]);
        if (!found) {
            snprintf(said, sizeof said,
                     "the driver lacks %s: install a driver for CUDA 12 or later", names[i]);
            return said;
        }
        memcpy((char *)&cu + i * sizeof found, &found, sizeof found);
    }
    if (cu.cuInit(0) || cu.cuDeviceGet(&device, 0))
        return "the driver finds no device: run nvidia-smi for a list of devices";
    if (cu.cuDevicePrimaryCtxRetain(&context, device) || cu.cuCtxSetCurrent(context))
        return "a context on the device cannot be created: another program may use it exclusively";
    if (cu.cuModuleLoadData(&module, tensorop_kit_kernels))
        return "this kit's kernels are for another GPU architecture: make a kit for the platform "
               "of this device";
    return NULL;
}

void launch(const char *kernel, unsigned x, unsigned y, unsigned z, unsigned threads, stream on,
            void **arguments) {
    static struct {
        const char *name;
        void *at;
    } known[16];
    int i = 0;
    while (known[i].name && strcmp(known[i].name, kernel) != 0)
        i++;
    if (!known[i].name) {
        must(cu.cuModuleGetFunction(&known[i].at, module, kernel), kernel);
        known[i].name = kernel;
    }
    must(cu.cuLaunchKernel(known[i].at, x, y, z, threads, 1, 1, 0, on, arguments, NULL), kernel);
}

static void board_open(void) {
    static bool tried;
    char bus[32];
    void *library = tried ? NULL : dlopen("libnvidia-ml.so.1", RTLD_NOW);
    tried = true;
    if (!library)
        return;
    int (*init)(void), (*get)(const char *, void **), (*version)(char *, unsigned);
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&get = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&version = dlsym(library, "nvmlSystemGetDriverVersion");
    *(void **)&board.clock = dlsym(library, "nvmlDeviceGetClockInfo");
    *(void **)&board.power = dlsym(library, "nvmlDeviceGetPowerUsage");
    *(void **)&board.limit = dlsym(library, "nvmlDeviceGetPowerManagementLimit");
    *(void **)&board.temperature = dlsym(library, "nvmlDeviceGetTemperature");
    if (!init || !get || !version || !board.clock || !board.power || !board.limit ||
        !board.temperature || init() || cu.cuDeviceGetPCIBusId(bus, sizeof bus, 0) ||
        get(bus, &board.device))
        board.device = NULL;
    if (board.device && version(board.driver, sizeof board.driver))
        strcpy(board.driver, "unknown");
}

void board_members(void) {
    char name[128] = "unknown";
    int major = 0, minor = 0, many = 0, device = 0, driver = 0;
    unsigned watts = 0;
    size_t left = 0, total = 0;
    const char *named = getenv("TENSOROP_KIT_BOARD");
    board_open();
    cu.cuDeviceGet(&device, 0), cu.cuDeviceGetName(name, sizeof name, device),
        cu.cuDriverGetVersion(&driver);
    cu.cuDeviceGetAttribute(&major, MAJOR, device), cu.cuDeviceGetAttribute(&minor, MINOR, device);
    cu.cuDeviceGetAttribute(&many, MULTIPROCESSORS, device), cu.cuMemGetInfo_v2(&left, &total);
    if (board.device)
        board.limit(board.device, &watts);
    row_add("\"board\":"), row_text(named && *named ? named : name);
    row_add(",\"device\":"), row_text(name);
    row_add(",\"driver\":"), row_text(board.driver);
    row_add(",\"capability\":%d,\"multiprocessors\":%d,\"memory\":%zu,\"watts\":%u,\"cuda\":%d,"
            "\"%s\":%zu",
            10 * major + minor, many, total, watts / 1000, driver, baseline_name,
            baseline_version());
}

void board_sample(void) {
    unsigned v;
    if (!board.device)
        return;
    if (!board.clock(board.device, 1, &v) && samples[0] < CLOCKS)
        sampled[0][samples[0]++] = v;
    if (!board.power(board.device, &v) && samples[1] < CLOCKS)
        sampled[1][samples[1]++] = v / 1000.0;
    if (!board.temperature(board.device, 0, &v) && samples[2] < CLOCKS)
        sampled[2][samples[2]++] = v;
}

void board_forget(void) { board_open(), memset(samples, 0, sizeof samples); }

static int ascending(const void *x, const void *y) {
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

void board_sampled(void) {
    double middle[3] = {0};
    for (int i = 0; i < 3; i++) {
        qsort(sampled[i], (size_t)samples[i], sizeof **sampled, ascending);
        middle[i] = samples[i] ? sampled[i][samples[i] / 2] : 0;
    }
    row_add("\"mhz\":%.0f,\"watts\":%.0f,\"celsius\":%.0f", middle[0], middle[1], middle[2]);
}
