/* A crash is reported with its call and buffer. Then the process ends, since no later result
 * could be trusted. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK = 1 << 16 };

void fault_watch(const struct request *request) { state()->watched = request; }

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    if (STEPS && path_signal(number, info->si_addr))
        return;
    state_writable(1);
    const struct request *request = state()->watched;
    state()->watched = NULL;
    if (!request)
        _exit(128 + number);
    struct wire_reply reply;
    memset(&reply, 0, sizeof reply);
    reply.magic = MAGIC_REPLY;
    reply.index = request->wire.index;
    reply.nonce = state()->nonce;
    reply.status = SIGNALLED;
    reply.signal = number;
    reply.buffer = -1;
    if (number == SIGSYS)
        reply.offset = info->si_syscall;
    if (number == SIGSEGV || number == SIGBUS) {
        for (unsigned i = 0; i < request->wire.buffers && reply.fault == FAULT_ELSEWHERE; i++) {
            reply.fault = (int32_t)guarded_fault(&request->buffer[i], info->si_addr, &reply.offset);
            if (reply.fault != FAULT_ELSEWHERE)
                reply.buffer = (int32_t)i;
        }
        const uint8_t *at = info->si_addr, *own = (const uint8_t *)state();
        const uint8_t *book = request->book;
        if ((at >= own && at < own + sizeof(struct state)) ||
            (at >= book && at < book + request->book_size))
            reply.fault = FAULT_HARNESS;
    }
    wire_write(&reply, sizeof reply);
    _exit(128 + number);
}

int fault_install(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    void *room = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return -1;
    stack_t alternative = {.ss_sp = room, .ss_size = STACK};
    sigaltstack(&alternative, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (STEPS ? 0 : SA_RESETHAND);
    if (STEPS)
        sigfillset(&action.sa_mask); /* then a fault of the handler itself ends the process */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    return 0;
}
