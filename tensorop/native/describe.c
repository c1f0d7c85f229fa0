/* Prints facts of a BLAS library, one `key=value` a line: describe LIB PREFIX SUFFIX.
 *
 * Only the library knows the kernels that it chose for this CPU, and the choice can halve its
 * speed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jail.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *handle;
static const char *prefix, *suffix;

static void *find(const char *name, int decorated) {
    char symbol[160];
    snprintf(symbol, sizeof symbol, "%s%s%s", decorated ? prefix : "", name,
             decorated ? suffix : "");
    return dlsym(handle, symbol);
}

static void openblas(void) {
    const char *(*core)(void) = (const char *(*)(void))find("openblas_get_corename", 1);
    const char *(*config)(void) = (const char *(*)(void))find("openblas_get_config", 1);
    int (*threads)(void) = (int (*)(void))find("openblas_get_num_threads", 1);
    if (core)
        printf("core=%s\n", core());
    if (config)
        printf("config=%s\n", config());
    if (threads)
        printf("threads=%d\n", threads());
}

static void mkl(void) {
    void (*version)(char *, int) = (void (*)(char *, int))find("MKL_Get_Version_String", 0);
    char text[256] = "";
    if (version) {
        version(text, sizeof text - 1);
        printf("config=%s\n", text);
    }
}

static void blis(void) {
    const char *(*version)(void) = (const char *(*)(void))find("bli_info_get_version_str", 0);
    int (*query)(void) = (int (*)(void))find("bli_arch_query_id", 0);
    const char *(*name)(int) = (const char *(*)(int))find("bli_arch_string", 0);
    void (*init)(void) = (void (*)(void))find("bli_init", 0);
    if (init) /* BLIS aborts on queries before it */
        init();
    if (version)
        printf("config=BLIS %s\n", version());
    if (query && name)
        printf("core=%s\n", name(query()));
}

static void dnnl(void) {
    struct version {
        int major, minor, patch;
        const char *hash;
        unsigned cpu_runtime;
    };
    const struct version *(*version)(void) =
        (const struct version *(*)(void))find("dnnl_version", 0);
    int (*isa)(void) = (int (*)(void))find("dnnl_get_effective_cpu_isa", 0);
    if (version)
        printf("config=oneDNN %d.%d.%d %.12s; %s\n", version()->major, version()->minor,
               version()->patch, version()->hash,
               version()->cpu_runtime == 4 /* DNNL_RUNTIME_TBB */
                   ? "TBB, which takes a thread for each processor it may use"
                   : "");
    if (isa)
        printf("core=dnnl_cpu_isa 0x%x\n", (unsigned)isa());
}

/* libstdc++'s std::string, which is returned like a C struct of its size */
struct string {
    const char *data;
    size_t size;
    char small[16]; /* a text of at most 15 bytes is here */
};

static void torch_line(const char *key, const char *function) {
    struct string (*call)(void) = (struct string(*)(void))find(function, 0);
    if (!call)
        return;
    const struct string text = call();
    printf("%s=%s\n", key, text.size < sizeof text.small ? text.small : text.data);
}

static void torch(void) {
    torch_line("config", "_ZN2at15get_mkl_versionB5cxx11Ev");
    torch_line("core", "_ZN2at18get_cpu_capabilityB5cxx11Ev");
}

static void xsmm(void) {
    const char *(*arch)(void) = (const char *(*)(void))find("libxsmm_get_target_arch", 0);
    if (arch)
        printf("core=%s\n", arch());
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "describe LIB PREFIX SUFFIX\n");
        return 2;
    }
    prefix = argv[2];
    suffix = argv[3];
    jail_open(JAIL_THREADS | JAIL_READS);
    handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    jail_enter(JAIL_THREADS | JAIL_READS);
    openblas();
    mkl();
    blis();
    dnnl();
    torch();
    xsmm();
    return 0;
}
